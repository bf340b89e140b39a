"""Where a claim that holds up to some number ceases to."""

from __future__ import annotations

from collections.abc import Callable

_HALVINGS = 80
"""Of an interval, until its ends are as near as floating point tells apart."""


def crossing(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The two numbers, as near to each other as can be, between which a claim ceases to hold.

    Args:
        holds: The claim; true below some number and false above it.
        low: Where it holds.
        high: Where it does not.

    Example:
        >>> low, high = crossing(lambda number: number * number < 2, 0.0, 2.0)
        >>> round(low, 9), round(high, 9)
        (1.414213562, 1.414213562)
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
        if high - low <= high * 1e-15:
            break
    return low, high
