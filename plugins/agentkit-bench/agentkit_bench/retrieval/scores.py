"""Figures of one ranking, and their means with intervals. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set as AbstractSet
from statistics import NormalDist, fmean, variance

from agentkit.metrics.statistics import Interval


def recall_at(gold: AbstractSet[str], ranked: Sequence[str], depth: int) -> float:
    """The share of ``gold`` among the first ``depth``; 0 when no gold is known.

    Example:
        >>> recall_at({"a", "b"}, ["c", "a", "b"], 2)
        0.5
    """
    return len(gold & set(ranked[:depth])) / len(gold) if gold else 0.0


def reciprocal_rank(gold: AbstractSet[str], ranked: Sequence[str]) -> float:
    """1 divided by the rank of the first right tool, from 1; 0 when none was found."""
    return next((1 / rank for rank, key in enumerate(ranked, start=1) if key in gold), 0.0)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie; the highest for a share of 1.

    Example:
        >>> percentile([3.0, 1.0, 2.0, 4.0], 0.5), percentile([1.0], 0.99)
        (3.0, 1.0)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def mean_interval(values: Sequence[float], *, level: float = 0.95) -> Interval:
    """The mean of independent values with its normal interval, as a Student t is one at this size.

    For differences of the same questions under two methods this is the paired interval.

    Args:
        values: One figure a question; with fewer than two the interval is the mean itself.
        level: The share of such intervals that hold the true mean.

    Example:
        >>> interval = mean_interval([0.0, 1.0, 1.0, 1.0] * 100)
        >>> round(interval.low, 3), interval.value, round(interval.high, 3)
        (0.708, 0.75, 0.792)
    """
    mean = fmean(values) if values else 0.0
    if len(values) < 2:
        return Interval(value=mean, low=mean, high=mean, level=level)
    reach = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance(values) / len(values))
    return Interval(value=mean, low=mean - reach, high=mean + reach, level=level)
