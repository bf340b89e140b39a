"""How a number is spread: quantiles and a histogram with round edges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from agentkit.evaluation.results.records import Bin, Distribution

MOST_BINS = 16
_FINEST = 1e-9
_TAIL = 0.98
"""Values above this quantile share the last bar, so that one of them does not flatten the rest."""


def distribution(values: Iterable[float]) -> Distribution:
    """The distribution of finite, non-negative values, in any order."""
    ordered = sorted(values)
    if not ordered:
        return Distribution()
    return Distribution(
        count=len(ordered),
        mean=math.fsum(ordered) / len(ordered),
        minimum=ordered[0],
        median=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        maximum=ordered[-1],
        bins=_bins(ordered),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of the ``ordered`` ones do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _bins(ordered: Sequence[float]) -> tuple[Bin, ...]:
    low, high = ordered[0], quantile(ordered, _TAIL)
    step = _round_step((high - low) / (MOST_BINS - 2))
    first = math.floor(low / step)
    last = math.floor(high / step)
    counts = [0] * (last - first + 2)
    for value in ordered:
        counts[min(math.floor(value / step), last + 1) - first] += 1
    bins = [
        Bin(start=(first + at) * step, end=(first + at + 1) * step, count=count)
        for at, count in enumerate(counts[:-1])
    ]
    if counts[-1]:
        bins.append(Bin(start=(last + 1) * step, end=None, count=counts[-1]))
    return tuple(bins)


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... (or 0.1, 0.2, ...) that is at least ``least``."""
    if not _FINEST <= least < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))
