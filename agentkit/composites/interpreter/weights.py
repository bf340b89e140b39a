"""How much a value is, all that it contains counted as often as it is reachable.

Sharing makes small values large: thirty times ``a = [a, a]`` is thirty small lists, and a text of
a billion brackets. Building such a value is cheap and allowed. Everything that looks through it,
prints it or hands it on asks for its weight first, and the weighing itself stops at the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from agentkit.composites.interpreter.guard import Guard

ATOMS = frozenset({NoneType, bool, float})
NUMBERS = frozenset({bool, int, float})
SCALARS = frozenset({NoneType, bool, int, float, str})
CONTAINERS = frozenset({list, tuple, dict})
VALUES = SCALARS | CONTAINERS
"""The types of values, exactly: an instance of a subclass may behave in its own way."""

DEEPEST_VALUE = 100
"""Levels of containers in containers that are looked through; Python's own limit is near 1,000
and depends on the caller."""

_CONTAINER = 3
"""What a container weighs beside its items: opening one takes as long as many items do."""

_WORTH_A_LOOK = 16
"""From this length on, asking for the set of types first is quicker than item by item."""


def weigh(value: Any, budget: int) -> int:
    """About the number of eight-byte words of a value, contents counted with multiplicity.

    Raises:
        Guard: It is more than ``budget``, nested too deeply, or holds what is no JSON data.
    """
    if type(value) not in CONTAINERS:
        words, _ = _weigh_level((value,))
        return 1 + words
    total = 1
    containers: Sequence[Any] = (value,)
    for _ in range(DEEPEST_VALUE):
        items: list[Any] = []
        for container in containers:
            total += _CONTAINER + len(container)
            if total > budget:
                break
            items.extend(container)
            if type(container) is dict:
                items.extend(container.values())
                total += len(container)
        words, containers = _weigh_level(items)
        total += words
        if total > budget:
            raise Guard("fuel", "the value is too large for the work that is left")
        if not containers:
            return total
    raise Guard("nesting", f"the value is nested more than {DEEPEST_VALUE} levels deep")


def _weigh_level(items: Sequence[Any]) -> tuple[int, Sequence[Any]]:
    """The words of texts and numbers beyond the first of each, and the containers."""
    if len(items) > _WORTH_A_LOOK:
        kinds = set(map(type, items))
        if kinds <= ATOMS:
            return 0, []
        if kinds == {int}:
            return sum(map(int.bit_length, items)) >> 6, []
        if kinds <= CONTAINERS:
            return 0, items
    words = 0
    containers: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is str:
            words += len(item) >> 3
        elif kind is int:
            words += item.bit_length() >> 6
        elif kind in CONTAINERS:
            containers.append(item)
        elif kind not in ATOMS:
            raise Guard("opaque_value", f"a {kind.__name__} is no JSON data")
    return words, containers
