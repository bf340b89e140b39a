"""What came of a call of a program, and how two outcomes differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.composites.problems import RunCode
from agentkit.testing.random_programs.children import CHILDREN, ChildError, LoggedCall

CODES: tuple[tuple[type[Exception], RunCode], ...] = (
    (ChildError, "child_failed"),
    (ZeroDivisionError, "zero_division"),
    (OverflowError, "overflow"),
    (IndexError, "index_error"),
    (KeyError, "key_error"),
    (ValueError, "value_error"),
    (TypeError, "type_error"),
    (AttributeError, "type_error"),  # a method that the value's type does not have
)
"""The code that stands for each of Python's exceptions, the first that fits."""

GUARDS: frozenset[RunCode] = frozenset(
    {
        "in_place_list",
        "string_format",
        "complex_number",
        "opaque_value",
        "fuel",
        "integer_bits",
        "string_chars",
        "collection_items",
        "child_calls",
        "deadline",
        "nesting",
        "unserialisable_result",
    }
)
"""Codes where the language stops by design, and Python goes on."""

_WRITERS = {child.name for child in CHILDREN if child.writes}

Order = Literal["exact", "concurrent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one call.

    Attributes:
        value: What was returned.
        code: The code of the failure; None when it returned.
        log: The children's calls.
    """

    value: Any = None
    code: str | None = None
    log: Sequence[LoggedCall] = ()


def code_of(error: Exception) -> str:
    """The code that stands for an exception; its class name when none does."""
    return next((code for kind, code in CODES if isinstance(error, kind)), type(error).__name__)


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same down to types, signs of zero and the order of dicts.

    Example:
        >>> same([1, float("nan")], [1, float("nan")]), same(1, True), same(0.0, -0.0)
        (True, False, False)
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return same([*left.items()], [*right.items()])
    return bool(left == right)


def difference(expected: Outcome, actual: Outcome, *, order: Order = "exact") -> str:
    """How ``actual`` differs, in words; empty when it does not.

    With ``concurrent`` order, children that change nothing may be called in another order, and
    some more of them when the program fails.
    """
    if expected.code != actual.code:
        return f"ends with {_ending(actual)} instead of {_ending(expected)}"
    if not same(expected.value, actual.value):
        return f"returns {actual.value!r} instead of {expected.value!r}"
    return _log_difference(expected, actual, order)


def _ending(outcome: Outcome) -> str:
    return outcome.code or f"the value {outcome.value!r}"


def _log_difference(expected: Outcome, actual: Outcome, order: Order) -> str:
    wanted, made = _keys(expected.log), _keys(actual.log)
    if order == "exact":
        agree = wanted == made
    else:
        agree = _writes(wanted) == _writes(made)
        missing, extra = Counter(wanted), Counter(made)
        agree &= missing <= extra if expected.code else missing == extra
    return "" if agree else f"calls {made} instead of {wanted}"


def _keys(log: Sequence[LoggedCall]) -> list[tuple[str, str]]:
    """The calls in a form that can be counted; the order of arguments does not matter."""
    return [(call.name, repr(sorted(call.arguments.items()))) for call in log]


def _writes(calls: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [call for call in calls if call[0] in _WRITERS]
