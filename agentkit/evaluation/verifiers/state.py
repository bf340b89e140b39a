"""Where two states of a world differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

DifferenceKind = Literal["missing", "unexpected", "different"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StateDifference:
    """One place in which a state is not the expected one.

    Attributes:
        path: Where, such as ``orders[2].status``; empty for the state as a whole.
        kind: Whether something is not there, should not be there, or is something else.
        expected: What should have been there; None when nothing should.
        actual: What is there; None when nothing is.
    """

    path: str
    kind: DifferenceKind
    expected: Any = None
    actual: Any = None


def state_differences(
    actual: Any, expected: Any, path: str = "", *, is_partial: bool = False
) -> Iterator[StateDifference]:
    """The places in which ``actual`` is not ``expected``, both JSON data.

    Numbers are equal by value (``1`` and ``1.0``), a boolean is no number, NaN is equal to itself.
    The order of keys does not count, that of lists does.

    Args:
        actual: The state that was reached.
        expected: The state that should have been.
        path: Where in the whole state these two stand.
        is_partial: Whether keys that ``expected`` does not name are free, at each level.

    Example:
        >>> reached = {"orders": [{"id": 1, "status": "open"}], "clock": 9}
        >>> wanted = {"orders": [{"status": "cancelled"}]}
        >>> [one.path for one in state_differences(reached, wanted, is_partial=True)]
        ['orders[0].status']
    """
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        yield from _of_objects(actual, expected, path, is_partial=is_partial)
    elif _is_list(actual) and _is_list(expected):
        yield from _of_lists(actual, expected, path, is_partial=is_partial)
    elif not _same(actual, expected):
        yield StateDifference(path=path, kind="different", expected=expected, actual=actual)


def _of_objects(
    actual: Mapping[str, Any], expected: Mapping[str, Any], path: str, *, is_partial: bool
) -> Iterator[StateDifference]:
    for key, wanted in expected.items():
        where = f"{path}.{key}" if path else str(key)
        if key in actual:
            yield from state_differences(actual[key], wanted, where, is_partial=is_partial)
        else:
            yield StateDifference(path=where, kind="missing", expected=wanted)
    for key, found in () if is_partial else actual.items():
        if key not in expected:
            where = f"{path}.{key}" if path else str(key)
            yield StateDifference(path=where, kind="unexpected", actual=found)


def _of_lists(
    actual: Sequence[Any], expected: Sequence[Any], path: str, *, is_partial: bool
) -> Iterator[StateDifference]:
    for at, wanted in enumerate(expected):
        where = f"{path}[{at}]"
        if at < len(actual):
            yield from state_differences(actual[at], wanted, where, is_partial=is_partial)
        else:
            yield StateDifference(path=where, kind="missing", expected=wanted)
    for at in range(len(expected), len(actual)):
        yield StateDifference(path=f"{path}[{at}]", kind="unexpected", actual=actual[at])


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _same(actual: Any, expected: Any) -> bool:
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, float) and isinstance(expected, float) and math.isnan(expected):
        return math.isnan(actual)
    return bool(actual == expected)
