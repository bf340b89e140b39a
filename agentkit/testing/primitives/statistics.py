"""Primitives on a list of values, of which they give one."""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from agentkit.errors import ModelRetry
from agentkit.testing.primitives.common import PURE, Values, finite, not_empty, worked
from agentkit.tools.decorator import tool

_TAGS = ("statistics",)
_TOLERANCE = "1e-9 * max(1, sum(abs(value) for value in values))"
_PLACE = "((len(values) - 1) * percent / 100)"
_INTERPOLATED = (
    f"is_close(result, sorted(values)[int({_PLACE})] * (1 - {_PLACE} % 1)"
    f" + sorted(values)[min(int({_PLACE}) + 1, len(values) - 1)] * ({_PLACE} % 1))"
)
_STEINER = (
    "abs(result * (len(values) - (1 if sample else 0)) + sum(values) ** 2 / len(values)"
    " - sum(value * value for value in values))"
    " <= 1e-9 * max(1, sum(value * value for value in values))"
)
"""Sum of squares = spread around the mean + n times the squared mean."""


@tool(
    effects=PURE,
    tags=_TAGS,
    post=(f"abs(result - sum(values)) <= {_TOLERANCE}",),
    complexity="O(n)",
    examples=(
        worked(31.5, "What do items at 10, 20 and 1.50 cost altogether?", values=[10, 20, 1.5]),
        worked(1.0, values=[0.1] * 10),
        worked(0, values=[]),
    ),
)
def sum_list(values: list[float]) -> float:
    """Sum of a list of numbers.

    Args:
        values: Numbers; none at all sum up to 0.

    Returns:
        All numbers added up.

    Raises:
        ModelRetry: The sum is beyond the largest number.
    """
    return _total(values)


@tool(
    effects=PURE,
    tags=_TAGS,
    post=("result == len(values)",),
    complexity="O(1)",
    examples=(
        worked(3, "How many orders are in this list?", values=["A-7", "A-9", "B-1"]),
        worked(2, values=[None, [1, 2, 3]]),
        worked(0, values=[]),
    ),
)
def count_items(values: list[Any]) -> int:
    """Number of items in a list.

    Args:
        values: Items of any kind, such as rows of a table.

    Returns:
        How many there are.
    """
    return len(values)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(values) > 0",),
    post=(f"abs(result * len(values) - sum(values)) <= {_TOLERANCE}",),
    complexity="O(n)",
    examples=(
        worked(7.0, "What is my average grade with 6, 7 and 8?", values=[6, 7, 8]),
        worked(-0.5, values=[1, -2]),
        worked(4.0, values=[4]),
    ),
)
def mean(values: list[float]) -> float:
    """Average of a list of numbers.

    Args:
        values: At least one number.

    Returns:
        The sum divided by how many there are.

    Raises:
        ModelRetry: The list is empty.
    """
    not_empty(values, "mean")
    return _total(values) / len(values)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(values) > 0",),
    post=(
        "2 * sum(1 for value in values if value < result) <= len(values)",
        "2 * sum(1 for value in values if value > result) <= len(values)",
        "min(values) <= result <= max(values)",
    ),
    complexity="O(n log n)",
    examples=(
        worked(3, "What is the middle price of 9, 1 and 3?", values=[9, 1, 3]),
        worked(2.5, values=[4, 1, 2, 3]),
        worked(5, values=[5]),
    ),
)
def median(values: list[float]) -> float:
    """Middle of a list of numbers: half of them are not above it, half not below.

    Args:
        values: At least one number, in any order.

    Returns:
        The middle number; between the two middle ones when their count is even.

    Raises:
        ModelRetry: The list is empty.
    """
    not_empty(values, "median")
    return _percentile(values, 50)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(values) > 0",),
    post=(
        "result in values",
        "not any(a == b for a, b in zip(sorted(values), sorted(values)[values.count(result) :]))",
    ),
    complexity="O(n)",
    examples=(
        worked(
            "red", "Which colour was chosen most: red, blue, red?", values=["red", "blue", "red"]
        ),
        worked(2, values=[1, 2, 2, 3]),
        worked(7, values=[7, 5]),
    ),
)
def mode(values: Values) -> float | str:
    """The value that occurs most often in a list; the first of them on a tie.

    Args:
        values: At least one number, or at least one text.

    Returns:
        The most frequent value.

    Raises:
        ModelRetry: The list is empty.
    """
    not_empty(values, "mode")
    counts: Counter[float | str] = Counter(values)
    return max(counts, key=lambda value: counts[value])


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(values) > 0", "len(values) > 1 or not sample"),
    post=(
        "result >= 0",
        _STEINER,
    ),
    complexity="O(n)",
    examples=(
        worked(4.0, "How much do 2, 4, 4, 4, 5, 5, 7 and 9 vary?", values=[2, 4, 4, 4, 5, 5, 7, 9]),
        worked(1.0, values=[1, 2, 3], sample=True),
        worked(0.0, values=[5]),
    ),
)
def variance(values: list[float], sample: bool = False) -> float:  # noqa: FBT001, FBT002 - a tool's parameters are called by name
    """Mean squared distance of numbers from their mean; its square root is the standard deviation.

    Args:
        values: At least one number; at least two for a sample.
        sample: Whether the numbers are a sample of more; then the sum is divided by one less.

    Returns:
        The variance, not negative.

    Raises:
        ModelRetry: There are too few values, or their squares are beyond the largest number.
    """
    divisor = len(values) - 1 if sample else len(values)
    if divisor < 1:
        needed = "two values, or set sample to false" if sample else "one value"
        raise ModelRetry(f"{len(values)} values have no variance; give at least {needed}")
    middle = _total(values) / len(values)
    return _total([(value - middle) * (value - middle) for value in values]) / divisor


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(values) > 0",),
    post=("result in values", "all(result <= value for value in values)"),
    complexity="O(n)",
    examples=(
        worked(12.4, "What is the cheapest of 13.9, 12.4 and 17.8?", values=[13.9, 12.4, 17.8]),
        worked(-3, values=[0, -3, 2]),
        worked(6, values=[6]),
    ),
)
def minimum(values: list[float]) -> float:
    """Smallest of a list of numbers.

    Args:
        values: At least one number.

    Returns:
        The number that none is below.

    Raises:
        ModelRetry: The list is empty.
    """
    not_empty(values, "minimum")
    return min(values)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(values) > 0",),
    post=("result in values", "all(result >= value for value in values)"),
    complexity="O(n)",
    examples=(
        worked(17.8, "What is the dearest of 13.9, 12.4 and 17.8?", values=[13.9, 12.4, 17.8]),
        worked(2, values=[0, 2, -3]),
        worked(6, values=[6]),
    ),
)
def maximum(values: list[float]) -> float:
    """Largest of a list of numbers.

    Args:
        values: At least one number.

    Returns:
        The number that none is above.

    Raises:
        ModelRetry: The list is empty.
    """
    not_empty(values, "maximum")
    return max(values)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(values) > 0", "0 <= percent <= 100"),
    post=(
        "min(values) <= result <= max(values)",
        _INTERPOLATED,
    ),
    complexity="O(n log n)",
    examples=(
        worked(
            4.6,
            "Below which response time are 90 % of 1, 2, 3, 4 and 5?",
            values=[5, 1, 4, 2, 3],
            percent=90,
        ),
        worked(2, values=[1, 2, 3], percent=50),
        worked(1, values=[3, 1], percent=0),
    ),
)
def percentile(values: list[float], percent: Annotated[float, Field(ge=0, le=100)]) -> float:
    """The number below which a given part of a list lies.

    Args:
        values: At least one number, in any order.
        percent: Part in percent, from 0 (the smallest number) to 100 (the largest).

    Returns:
        The number at that place of the sorted list, on a straight line between two neighbours.

    Raises:
        ModelRetry: The list is empty, or percent is not between 0 and 100.
    """
    not_empty(values, "percentile")
    if not 0 <= percent <= 100:
        raise ModelRetry(f"percent is {percent}; give 0 to 100")
    return _percentile(values, percent)


def _total(values: list[float]) -> float:
    """The exact sum of integers, or the correctly rounded one of floats."""
    if all(isinstance(value, int) for value in values):
        return finite(sum(values))
    try:
        return finite(math.fsum(values))
    except (OverflowError, ValueError):  # on the way, or of opposite infinities
        return finite(math.inf)


def _percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    part = position - below
    if part == 0:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    return min(max(low * (1 - part) + high * part, low), high)


STATISTICS = (
    sum_list,
    count_items,
    mean,
    median,
    mode,
    variance,
    minimum,
    maximum,
    percentile,
)
