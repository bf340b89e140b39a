"""Fitting what is shown into a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.retrieval.cards import card, schema_text
from agentkit.retrieval.retriever import Hit
from agentkit.retrieval.survivors import Survivors
from agentkit.retrieval.tokens import TokenCounter
from agentkit.tools.definition import ToolDefinition

_REMEMBERED = 10_000
"""Cards that are kept made: about four megabytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """What fits.

    Attributes:
        hits: The tools that are shown at all, best first.
        offered: Those of them that are shown in full, best first.
        cards: One line for each of ``hits``.
        card_tokens: What ``cards`` cost, line breaks included.
        schema_tokens: What the full schemas of ``offered`` cost.
    """

    hits: tuple[Hit, ...]
    offered: tuple[ToolDefinition, ...]
    cards: str
    card_tokens: int
    schema_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PricedCard:
    """A one-line card and its tokens, the line break after it included."""

    definition: ToolDefinition
    text: str
    tokens: int


class PriceList:
    """What showing a tool costs. The tools that were shown last are remembered.

    Args:
        count_tokens: Counts the tokens of one text.
    """

    def __init__(self, count_tokens: TokenCounter) -> None:
        self._count = count_tokens
        self._cards: dict[int, PricedCard] = {}  # by identity; a card keeps its definition alive

    def card(self, definition: ToolDefinition) -> PricedCard:
        """The card of a tool and what it costs."""
        known = self._cards.pop(id(definition), None) or self._priced(definition)
        self._cards[id(definition)] = known  # the one used last stands last
        if len(self._cards) > _REMEMBERED:
            self._cards.pop(next(iter(self._cards)), None)
        return known

    def schema(self, definition: ToolDefinition) -> int:
        """Tokens of a full schema."""
        return self._count(schema_text(definition))

    def _priced(self, definition: ToolDefinition) -> PricedCard:
        text = card(definition)
        return PricedCard(definition=definition, text=text, tokens=self._count(text + "\n"))


def pack(
    survivors: Survivors, *, shortlist: int, offer: int, token_budget: int, prices: PriceList
) -> Packed:
    """Choose what to show so that cards and schemas cost at most ``token_budget``.

    Full schemas come first, best tool first, each with its card; a tool whose schema does not fit
    into what is left is passed over for the next one. The rest of the budget goes to the cards of
    the other tools, best first, up to the first that does not fit.
    """
    hits = survivors.hits[:shortlist]
    cards = [prices.card(hit.definition) for hit in hits]
    full = _in_full(cards, offer, token_budget, prices)
    left = token_budget - sum(full.values()) - sum(cards[place].tokens for place in full)
    shown = set(full)
    for place, priced in enumerate(cards):
        if place in full:
            continue
        if priced.tokens > left:
            break
        shown.add(place)
        left -= priced.tokens
    places = sorted(shown)
    return Packed(
        hits=tuple(hits[place] for place in places),
        offered=tuple(cards[place].definition for place in full),
        cards="\n".join(cards[place].text for place in places),
        card_tokens=sum(cards[place].tokens for place in places),
        schema_tokens=sum(full.values()),
    )


def _in_full(
    cards: Sequence[PricedCard], offer: int, token_budget: int, prices: PriceList
) -> dict[int, int]:
    """Places of the tools given in full, best first, with the price of each schema."""
    full: dict[int, int] = {}
    left = token_budget
    for place, priced in enumerate(cards):
        if len(full) == offer:
            break
        price = prices.schema(priced.definition)
        if price + priced.tokens <= left:
            full[place] = price
            left -= price + priced.tokens
    return full
