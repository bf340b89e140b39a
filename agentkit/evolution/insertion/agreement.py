"""When two results are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def agree(one: Any, other: Any, *, tolerance: float) -> bool:
    """Whether two JSON values are the same, numbers up to a tolerance.

    The tolerance is relative for numbers beyond 1 and absolute below it, as in ``is_close`` of
    the composite language. ``1`` equals ``1.0`` but not ``true``; a tuple equals a list.

    Example:
        >>> agree({"total": 0.1 + 0.2}, {"total": 0.3}, tolerance=1e-9)
        True
        >>> agree(1, True, tolerance=1e-9)
        False
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return _close(one, other, tolerance)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            agree(left, right, tolerance=tolerance) for left, right in zip(one, other, strict=True)
        )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            agree(one[key], other[key], tolerance=tolerance) for key in one
        )
    return bool(one == other)


def _close(one: float, other: float, tolerance: float) -> bool:
    if one == other:
        return True
    if isinstance(one, int) and isinstance(other, int) and tolerance < 1:
        return False  # whole numbers are exact, and may be too large for a float
    try:
        difference, largest = abs(one - other), max(1.0, abs(one), abs(other))
        return bool(difference <= tolerance * largest)
    except OverflowError:
        return False
