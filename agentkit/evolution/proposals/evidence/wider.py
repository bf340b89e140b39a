"""Whether one rule allows all that another one does, and more."""

from __future__ import annotations

from math import inf

from agentkit.tools.canonical import canonical_json
from agentkit.tools.rules import Between, OneOf, Rule


def allows_more(rule: Rule, other: Rule) -> bool:
    """Whether a list or range is a wider one of its kind; False where that can not be told.

    Example:
        >>> allows_more(OneOf(parameter="n", values=(1, 2, 3)), OneOf(parameter="n", values=(3, 1)))
        True
        >>> closed, open_ = Between(parameter="n", minimum=0), Between(parameter="n", minimum=1)
        >>> allows_more(closed, open_), allows_more(open_, closed), allows_more(closed, closed)
        (True, False, False)
    """
    match rule, other:
        case OneOf(), OneOf():
            return _members(other) < _members(rule)
        case Between(), Between():
            mine, yours = (_low(rule), _high(rule)), (_low(other), _high(other))
            is_wider = mine[0] <= yours[0] and mine[1] >= yours[1] and mine != yours
            is_alike = rule.measure == other.measure and rule.multiple_of == other.multiple_of
            return is_wider and is_alike
        case _:
            return False


def _members(rule: OneOf) -> set[bytes]:
    return {canonical_json(value) for value in rule.values}


def _low(rule: Between) -> tuple[float, bool]:
    """The lower bound, and whether it is itself left out."""
    bounds = ((rule.minimum, False), (rule.exclusive_minimum, True))
    return max(((n, is_open) for n, is_open in bounds if n is not None), default=(-inf, False))


def _high(rule: Between) -> tuple[float, bool]:
    """The upper bound, and whether it is itself allowed."""
    bounds = ((rule.maximum, True), (rule.exclusive_maximum, False))
    return min(((n, is_in) for n, is_in in bounds if n is not None), default=(inf, True))
