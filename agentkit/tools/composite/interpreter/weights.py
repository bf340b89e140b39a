"""How much a value is, all that it contains counted as often as it is reachable.

Sharing makes small values large: thirty times ``a = [a, a]`` is thirty small lists, and a text of
a billion brackets. Building such a value is cheap and allowed. Everything that looks through it,
prints it or hands it on asks for its weight first, and the weighing itself stops at the budget.
"""

from __future__ import annotations

from collections.abc import Collection
from types import NoneType
from typing import Any

from agentkit.tools.composite.interpreter.guard import Guard

ATOMS = frozenset({NoneType, bool, float})
NUMBERS = frozenset({bool, int, float})
SCALARS = frozenset({NoneType, bool, int, float, str})
CONTAINERS = frozenset({list, tuple, dict})
VALUES = SCALARS | CONTAINERS
"""The types of values, exactly: an instance of a subclass may behave in its own way."""

DEEPEST_VALUE = 100
"""Levels of containers in containers that are looked through; Python's own limit is near 1,000
and depends on the caller."""

_WORTH_A_LOOK = 16
"""From this length on, asking for the set of types first is quicker than item by item."""


def weigh(value: Any, budget: int, depth: int = 0) -> int:
    """About the number of eight-byte words of a value, contents counted with multiplicity.

    Raises:
        Guard: It is more than ``budget``, nested too deeply, or holds what is no JSON data.
    """
    kind = type(value)
    if kind is dict:
        total = _weigh_items(value, budget, depth)
        return total + _weigh_items(value.values(), budget - total, depth)
    if kind is list or kind is tuple:
        return _weigh_items(value, budget, depth)
    if kind not in SCALARS:
        raise Guard("opaque_value", f"a {kind.__name__} is no JSON data")
    return 1 + _weigh_scalar(value)


def _weigh_scalar(value: Any) -> int:
    """The words of a number or text beyond the first."""
    kind = type(value)
    if kind is str:
        return len(value) >> 3
    return int.bit_length(value) >> 6 if kind is int else 0


def _weigh_items(items: Collection[Any], budget: int, depth: int) -> int:
    total = 1 + len(items)
    if total > budget:
        raise _too_heavy()
    if total > _WORTH_A_LOOK:
        kinds = set(map(type, items))
        if kinds <= ATOMS:
            return total
        if kinds == {int}:
            return total + (sum(map(int.bit_length, items)) >> 6)
        if kinds == {str}:
            return total + (sum(map(len, items)) >> 3)
    return _weigh_each(items, total, budget, depth)


def _weigh_each(items: Collection[Any], total: int, budget: int, depth: int) -> int:
    for item in items:
        kind = type(item)
        if kind is str:
            total += len(item) >> 3
        elif kind is int:
            total += item.bit_length() >> 6
        elif kind not in ATOMS:  # those are counted by the length
            if depth >= DEEPEST_VALUE:
                raise Guard("nesting", f"the value is nested over {DEEPEST_VALUE} levels deep")
            total += weigh(item, budget - total, depth + 1) - 1
    if total > budget:
        raise _too_heavy()
    return total


def _too_heavy() -> Guard:
    return Guard("fuel", "the value is too large for the work that is left")
