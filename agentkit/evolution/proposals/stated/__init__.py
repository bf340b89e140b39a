"""Reading what tools say about their arguments: in their errors, and in their descriptions.

Texts of tools are foreign. They are searched with patterns whose repetitions are bounded, and cut
before that; nothing in them is ever followed or run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from agentkit.evolution.proposals.stated.forms import form_of_pattern, stated_forms
from agentkit.evolution.proposals.stated.ranges import stated_ranges
from agentkit.evolution.proposals.stated.relations import stated_needs, stated_orders
from agentkit.evolution.proposals.stated.sets import slashed_sets, stated_sets
from agentkit.evolution.proposals.stated.statements import (
    StatedForm,
    StatedNeed,
    StatedOrder,
    StatedRange,
    StatedSet,
    Statement,
)

__all__ = [
    "LONGEST_TEXT",
    "StatedForm",
    "StatedNeed",
    "StatedOrder",
    "StatedRange",
    "StatedSet",
    "Statement",
    "form_of_pattern",
    "slashed_sets",
    "stated_in_description",
    "stated_in_error",
    "stated_values",
]

LONGEST_TEXT = 4_000
"""Characters of a text that are read."""


def stated_in_error(text: str, names: Collection[str] = ()) -> tuple[Statement, ...]:
    """What an error says about arguments.

    Args:
        text: The error.
        names: Names of the tool's parameters, by which statements about two of them are known.

    Example:
        >>> stated_in_error("ValueError: unit must be 'celsius' or 'kelvin', got 'F'")
        (StatedSet(values=('celsius', 'kelvin'), is_closed=True, start=17),)
    """
    return tuple(_statements(text[:LONGEST_TEXT], names))


def stated_in_description(text: str) -> tuple[Statement, ...]:
    """What the text of a parameter says about its values; lists in brackets count too."""
    shown = text[:LONGEST_TEXT]
    return (*_statements(shown, ()), *slashed_sets(shown))


def stated_values(texts: Iterable[str]) -> frozenset[str]:
    """Every value that texts of a tool state themselves, as texts: list members and bounds.

    Example:
        >>> sorted(stated_values(["must be one of 36, 48, got 31", "at most 90"]))
        ['36', '48', '90']
    """
    found: set[str] = set()
    for text in texts:
        for one in stated_in_error(text):
            if isinstance(one, StatedSet):
                found.update(map(str, one.values))
            elif isinstance(one, StatedRange):
                bounds = (one.minimum, one.maximum, one.multiple_of)
                found.update(f"{bound:g}" for bound in bounds if bound is not None)
    return frozenset(found)


def _statements(text: str, names: Collection[str]) -> Iterator[Statement]:
    sets = tuple(stated_sets(text))
    yield from sets
    yield from stated_ranges(text)
    yield from stated_forms(text)
    yield from stated_orders(text, names)
    yield from stated_needs(text, names)
