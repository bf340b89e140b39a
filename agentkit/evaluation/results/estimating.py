"""Means over tasks with their intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from agentkit.evaluation.results.records import Estimate, PassAtK

_LISTED_K = 8
_RESAMPLES = 2_000
_Z = 1.959963984540054

Outcome = tuple[int, int]
"""Attempts at one task, and how many of them passed."""


def accuracy(outcomes: Sequence[Outcome]) -> Estimate | None:
    """Share of attempts that passed; None without attempts.

    Where each task was tried once the interval is Wilson's. Where tasks were tried again, attempts
    at one task are not independent, and tasks are drawn rather than attempts (bootstrap, clustered
    by task, 2,000 draws with a fixed seed).

    Args:
        outcomes: The outcome of each task.
    """
    tried = sum(attempts for attempts, _ in outcomes)
    if not tried:
        return None
    passed = sum(own for _, own in outcomes)
    if all(attempts == 1 for attempts, _ in outcomes):
        low, high = _wilson(passed, tried)
    else:
        low, high = _bootstrap(outcomes)
    return Estimate(value=passed / tried, low=low, high=high)


def macro_mean(estimates: Sequence[Estimate]) -> Estimate | None:
    """The mean of categories, each of the same weight; None without any.

    The interval combines those of the categories by MOVER, the method of variance estimates
    recovery (Zou and Donner 2008, Statistics in Medicine 27:1693, Eq. 3): with weights 1/n the
    distance to the lower end is ``sqrt(sum((value - low)**2)) / n``, to the upper end accordingly.
    The categories' tasks are taken to be drawn independently.
    """
    if not estimates:
        return None
    n = len(estimates)
    value = math.fsum(one.value for one in estimates) / n
    below = math.sqrt(math.fsum((one.value - one.low) ** 2 for one in estimates)) / n
    above = math.sqrt(math.fsum((one.high - one.value) ** 2 for one in estimates)) / n
    return Estimate(value=value, low=max(0.0, value - below), high=min(1.0, value + above))


def pass_table(outcomes: Sequence[Outcome]) -> tuple[PassAtK, ...]:
    """pass@k and pass^k for k = 1, 2, ...; empty where no task was tried twice.

    From more than eight attempts on, k is a power of two or the largest number of attempts.

    Args:
        outcomes: The outcome of each task.
    """
    most = max((attempts for attempts, _ in outcomes), default=0)
    if most < 2:
        return ()
    listed = [k for k in range(1, most + 1) if most <= _LISTED_K or k & (k - 1) == 0 or k == most]
    return tuple(_pass_at(k, outcomes) for k in listed)


def _pass_at(k: int, outcomes: Sequence[Outcome]) -> PassAtK:
    tasks = Counter(one for one in outcomes if one[0] >= k)
    n = tasks.total()
    return PassAtK(
        k=k,
        tasks=n,
        any_passes=math.fsum(
            w * (1 - math.comb(a - p, k) / math.comb(a, k)) for (a, p), w in tasks.items()
        )
        / n,
        all_pass=math.fsum(w * math.comb(p, k) / math.comb(a, k) for (a, p), w in tasks.items())
        / n,
    )


def _wilson(passed: int, n: int) -> tuple[float, float]:
    p, z2 = passed / n, _Z**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _bootstrap(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    import numpy as np

    kinds = sorted(Counter(outcomes).items())
    n = len(outcomes)
    draws = np.random.default_rng(0).multinomial(n, [w / n for _, w in kinds], size=_RESAMPLES)
    sums = draws @ np.array([kind for kind, _ in kinds])
    low, high = np.quantile(sums[:, 1] / sums[:, 0], (0.025, 0.975))
    return float(low), float(high)


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Mean of ``b - a`` over tasks, with the 95 % interval of a bootstrap over tasks.

    Args:
        a: A number for each task in one run.
        b: The same in the other run, in the same order.
    """
    import numpy as np

    kinds = sorted(Counter(other - one for one, other in zip(a, b, strict=True)).items())
    n = len(a)
    draws = np.random.default_rng(0).multinomial(n, [w / n for _, w in kinds], size=_RESAMPLES)
    low, high = np.quantile(draws @ np.array([value for value, _ in kinds]) / n, (0.025, 0.975))
    value = math.fsum(value * w for value, w in kinds) / n
    return Estimate(value=value, low=float(low), high=float(high))


def sign_test(gained: int, lost: int) -> float:
    """Two-sided mid-p of McNemar's test: how surprising the split of the changed tasks is."""
    n, fewer = gained + lost, min(gained, lost)
    if gained == lost:
        return 1.0
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(fewer + 1)
    ]
    terms = [math.exp(log - n * math.log(2)) for log in logs]
    return min(1.0, 2 * (math.fsum(terms) - terms[-1] / 2))
