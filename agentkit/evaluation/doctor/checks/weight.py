"""Tools that cost so much that they crowd out the others."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.weights import FIELDS, Weight

DEFAULT_BUDGET = 1600
"""Tokens that ``CascadeRetriever`` lets cards and full schemas cost together, by default."""

_HEAVY = 600
_NAMED_FIELDS = 2

UNAFFORDABLE = Kind(
    code="unaffordable",
    severity="warning",
    title="never offered within the default token budget",
    why="Its schema alone costs more than cards and schemas may cost together, so the default "
    "retriever passes it over even when it ranks first.",
    advice="Shorten it where its tokens go, split it, or raise token_budget.",
)
HEAVY = Kind(
    code="heavy",
    severity="note",
    title="costs more than a third of the default token budget",
    why="Each request that offers it pays for it, and has room for few other tools.",
    advice="Look where its tokens go; shorten that field first.",
)


def heavy_tools(catalogue: Catalogue) -> Iterator[Finding]:
    """Tools above a third of the default budget, and above all of it."""
    for name, weight in catalogue.weights.items():
        if weight.tokens > DEFAULT_BUDGET:
            yield _finding(UNAFFORDABLE, name, weight)
        elif weight.tokens > _HEAVY:
            yield _finding(HEAVY, name, weight)


def _finding(kind: Kind, name: str, weight: Weight) -> Finding:
    most = sorted(zip(FIELDS, weight.by_field, strict=True), key=lambda pair: -pair[1])
    shares = " and ".join(f"{tokens:,} in {field}" for field, tokens in most[:_NAMED_FIELDS])
    return Finding(
        kind=kind,
        tools=(name,),
        what=f"{weight.tokens:,} tokens, {shares}",
        tokens=weight.tokens,
    )
