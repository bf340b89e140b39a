"""How alike the words of two tools are."""

from __future__ import annotations

from collections.abc import Callable

from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition


def similarity(one: ToolDefinition, other: ToolDefinition) -> float:
    """Dice coefficient of the terms in names, summaries and tags: 0 for none shared, 1 for all.

    Example:
        >>> from agentkit.tools.definition import Description
        >>> total = ToolDefinition(name="total", description=Description(summary="Sum a list."))
        >>> sum_ = ToolDefinition(name="sum_list", description=Description(summary="The sum."))
        >>> similarity(total, sum_)
        0.8
    """
    return similarity_to(one)(other)


def similarity_to(one: ToolDefinition) -> Callable[[ToolDefinition], float]:
    """``similarity`` with one tool, for comparing it with many."""
    ours = description_terms(one)

    def likeness(other: ToolDefinition) -> float:
        theirs = description_terms(other)
        return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours and theirs else 0.0

    return likeness


def description_terms(definition: ToolDefinition) -> frozenset[str]:
    """The terms by which a tool is described."""
    words = definition.description
    return frozenset(terms(" ".join((definition.name, words.summary, *words.tags))))
