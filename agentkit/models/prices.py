"""Prices of answers, from litellm's table or ours, and what models accept by litellm's.

Our table, ``prices.json``, has a date. Prices set with ``agentkit models prices`` take precedence
over both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from agentkit.errors import UsageError
from agentkit.fetch import cache_directory
from agentkit.messages import Usage
from agentkit.models.base import DOCUMENTS, IMAGES, SPEECH, ChatModel

_MILLION = 1_000_000
_OURS = Path(__file__).with_name("prices.json")
_OF_LITELLM = "model_prices_and_context_window_backup.json"
_CAPABILITIES = {
    "supports_vision": IMAGES,
    "supports_audio_input": SPEECH,
    "supports_pdf_input": DOCUMENTS,
}
_DATED = re.compile(r"(-\d{4}-\d\d-\d\d|-\d{8}|-latest)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """US dollars per million tokens, as providers print them.

    Attributes:
        prompt: Tokens read.
        completion: Tokens written.
        cached: Tokens read from the provider's prompt cache; None charges them as any other.

    Example:
        >>> usage = Usage(prompt_tokens=1_000_000, cached_tokens=500_000, completion_tokens=100_000)
        >>> Price(prompt=0.15, cached=0.075, completion=0.60).cost_of(usage)
        0.1725
    """

    prompt: float
    completion: float
    cached: float | None = None

    def cost_of(self, usage: Usage) -> float:
        """The price of a usage in US dollars."""
        cached_price = self.prompt if self.cached is None else self.cached
        return (
            (usage.prompt_tokens - usage.cached_tokens) * self.prompt
            + usage.cached_tokens * cached_price
            + usage.completion_tokens * self.completion
        ) / _MILLION


Prices: TypeAlias = Price | Mapping[str, Price]
"""One price, or prices by model name."""


def priced(usage: Usage, prices: Prices | None, *models: str) -> Usage:
    """The usage with its cost, when a price is known for one of the names (the first that is)."""
    if prices is None:
        return usage
    if isinstance(prices, Price):
        return replace(usage, cost_usd=prices.cost_of(usage))
    price = next((prices[model] for model in models if model in prices), None)
    return usage if price is None else replace(usage, cost_usd=price.cost_of(usage))


def limit_price(model: ChatModel) -> Price | None:
    """The price used to enforce a cost limit; None for a model that states costs itself.

    A model states them when its attribute ``reports_cost`` is true. Of several models that answer
    in each other's place the highest prices count.

    Raises:
        UsageError: No price is known, so that the limit could not be held.
    """
    silent = [
        one for one in getattr(model, "models", [model]) if not getattr(one, "reports_cost", False)
    ]
    found = [_price_of(one.name) for one in silent]
    if not found:
        return None
    return Price(
        prompt=max(one.prompt for one in found),
        completion=max(one.completion for one in found),
        cached=max(one.prompt if one.cached is None else one.cached for one in found),
    )


def _price_of(name: str) -> Price:
    price = known_price(name)
    if price is None:
        raise UsageError(
            f"max_cost_usd cannot be held: no price is known for the model {name!r}. Give the "
            "model prices=Price(...), tell 'agentkit models prices' what it costs, or set "
            "reports_cost = True on a model that states Usage.cost_usd itself"
        )
    return price


def known_price(name: str) -> Price | None:
    """The price of a model by its name, with or without its date, from the first table it is in."""
    return next((price for price, _ in _found(name)), None)


def all_prices(*names: str) -> Iterator[tuple[str, Price, str]]:
    """Name, price and source of these models; without names of our table's and the user's."""
    for name in names or sorted({*_user_prices(), *_own()["models"]}):
        for price, source in islice(_found(name), 1):
            yield name, price, source


def _found(name: str) -> Iterator[tuple[Price, str]]:
    own = _own()
    tables = (_user_prices(), "yours"), (_of_litellm(), "litellm"), (own["models"], own["date"])
    for table, source in tables:
        for one in (name, _DATED.sub("", name)):
            if one in table:
                prompt, completion, cached = table[one]
                yield Price(prompt=prompt, completion=completion, cached=cached), source


def tell_price(name: str, price: Price) -> None:
    """Remember the price of a model on this machine."""
    record = {**_user_prices(), name: (price.prompt, price.completion, price.cached)}
    path = _user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1), encoding="utf-8")


def _user_file() -> Path:
    return cache_directory() / "prices.json"


def _user_prices() -> Mapping[str, Any]:
    path = _user_file()
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
    except ValueError as error:
        raise UsageError(f"{path} is not a table of prices ({error}); fix or delete it") from error


def listed_media(name: str) -> frozenset[str] | None:
    """What a model accepts beside text by litellm's table; None for a model it does not list."""
    row = _litellm_rows().get(name)
    if row is None:
        return None
    return frozenset[str]().union(*(of for field, of in _CAPABILITIES.items() if row.get(field)))


@cache
def _own() -> Mapping[str, Any]:
    return dict(json.loads(_OURS.read_text(encoding="utf-8")))


@cache
def _of_litellm() -> Mapping[str, Any]:
    rows = _litellm_rows()
    return {name: per_million for name, row in rows.items() if (per_million := _per_million(row))}


@cache
def _litellm_rows() -> Mapping[str, Any]:
    """The table that an installed litellm carries; it is read, and litellm not imported."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).with_name(_OF_LITELLM)
    if not path.is_file():
        return {}
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _per_million(row: Mapping[str, Any]) -> tuple[float, float, float | None] | None:
    fields = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    costs = [row.get(field) for field in fields]
    prompt, completion, cached = (
        one * _MILLION if isinstance(one, int | float) else None for one in costs
    )
    return None if prompt is None or completion is None else (prompt, completion, cached)
