"""What tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from agentkit.messages import Usage

_MILLION = 1_000_000


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
