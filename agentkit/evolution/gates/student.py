"""Student's interval for a mean, which knows that the spread was estimated too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from agentkit.errors import UsageError
from agentkit.evolution.gates.bisection import crossing


def student_spread(values: Sequence[float], *, level: float) -> float:
    """Half the length of Student's interval for the mean (Student 1908, *Biometrika* 6(1), 1-25).

    Args:
        values: Independent of each other.
        level: The level of confidence, between 0 and 1.

    Returns:
        The half-length; infinite for less than two values.

    Example:
        >>> round(student_spread([3.0, 1.0, 2.0], level=0.95), 3)
        2.484
    """
    count = len(values)
    if count < 2:
        return math.inf
    mean = fmean(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return student_quantile((1 + level) / 2, count - 1) * math.sqrt(variance / count)


def student_quantile(share: float, freedom: int) -> float:
    """Below which a variable with Student's distribution lies so often.

    Args:
        share: From .5 to below 1.
        freedom: Degrees of freedom, 1 or more.

    Raises:
        UsageError: An argument is out of range.

    Example:
        >>> round(student_quantile(0.975, 29), 4)
        2.0452
    """
    if not 0.5 <= share < 1 or freedom < 1:
        raise UsageError(f"no quantile {share} of Student's distribution with {freedom} degrees")
    low, high = 0.0, 1.0
    while _within(high, freedom) < 2 * share - 1:
        low, high = high, 2 * high
    return crossing(lambda distance: _within(distance, freedom) < 2 * share - 1, low, high)[1]


def _within(distance: float, freedom: int) -> float:
    """Probability of a distance from 0 of at most so much.

    A finite sum for whole degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).
    """
    angle = math.atan(distance / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
