"""Bounds on a share that hold at every number of cases: for a single look at a fixed number."""

from __future__ import annotations

import math

from agentkit.errors import UsageError
from agentkit.evolution.gates.bisection import crossing
from agentkit.metrics.intervals import Interval


def exact_interval(found: int, of: int, *, alpha: float) -> Interval:
    """The interval of Clopper and Pearson (1934, *Biometrika* 26(4), 404-413) for a share.

    Its upper end is the largest share at which so few would be found with probability ``alpha`` or
    more, and its lower end the smallest at which so many would. So each end alone is wrong with
    probability ``alpha`` at most, whatever the share and the number of cases. Wilson's interval has
    that only on the average: at a share of .02 its upper end is wrong in 6.8% of samples of 133 and
    its lower end in 14.1% of samples of 33, where 5% was asked for.

    Args:
        found: How many of them.
        of: Independent cases; 0 for none, where nothing is known.
        alpha: How often each end may be wrong, above 0 and below .5.

    Raises:
        UsageError: There can not be so many, or alpha is out of range.

    Example:
        >>> share = exact_interval(0, 149, alpha=0.05)
        >>> share.low, round(share.high, 4)
        (0.0, 0.0199)
    """
    if not 0 <= found <= of:
        raise UsageError(f"{found} of {of} can not have been found")
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha must lie between 0 and .5, got {alpha}")
    value = found / of if of else 0.0
    low, high = 0.0, 1.0
    if found:
        low, _ = crossing(lambda p: 1 - chance_of_at_most(found - 1, of, p) < alpha, 0.0, 1.0)
    if found < of:
        high, _ = crossing(lambda p: chance_of_at_most(found, of, p) >= alpha, 0.0, 1.0)
    return Interval(value=value, low=low, high=high, level=1 - 2 * alpha)


def chance_of_at_most(most: int, of: int, share: float) -> float:
    """The binomial probability of so many or fewer.

    Args:
        most: The largest number that counts; less than 0 for none.
        of: Independent cases.
        share: Probability of each, from 0 to 1.
    """
    if most < 0 or share >= 1:
        return float(most >= of)
    if most >= of or share <= 0:
        return 1.0
    if most > of * share:  # the other tail is the shorter one, and falls from its first term on
        return max(0.0, 1 - chance_of_at_most(of - most - 1, of, 1 - share))
    ways = math.lgamma(of + 1) - math.lgamma(most + 1) - math.lgamma(of - most + 1)
    term = total = math.exp(ways + most * math.log(share) + (of - most) * math.log1p(-share))
    for number in range(most, 0, -1):
        term *= number * (1 - share) / ((of - number + 1) * share)
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, total)
