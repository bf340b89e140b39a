"""How sure shares, means and differences of evaluations are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

from agentkit.evaluation.results.report import PassAtK
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval, wilson_interval
from agentkit.metrics.passing import pass_at_k, pass_hat_k

RESAMPLES = 2_000
"""Draws of a bootstrap: the ends of an interval are good to about a twentieth of its width."""

FEWEST_DRAWN = 20
"""Tasks below which no bootstrap is drawn: from a few it takes what it saw for all there is."""

_LISTED_K = 8

Outcome = tuple[int, int]
"""Attempts at one task, and how many of them passed."""


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, the same in any order; 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


def accuracy(outcomes: Sequence[Outcome]) -> Interval | None:
    """Mean share of attempts that passed, each task of the same weight; None without tasks.

    Where the attempts at each task agree, as with one attempt each, repetition tells nothing new
    and the interval is Wilson's for as many trials as there are tasks. So it is with few tasks, of
    which a bootstrap knows too little; it is then wide rather than narrow, since shares vary less
    than single trials do. Otherwise it is that of a bootstrap over tasks, because attempts at one
    task are not independent, and at least as wide as if they were.

    Args:
        outcomes: The outcome of each task, in any order.
    """
    if not outcomes:
        return None
    shares = [passed / attempts for attempts, passed in sorted(outcomes)]
    agree = all(passed in {0, attempts} for attempts, passed in outcomes)
    if agree or len(outcomes) < FEWEST_DRAWN:
        return wilson_interval(math.fsum(shares), len(shares))
    drawn = bootstrap_interval(
        (Observation(value=share, task=str(at)) for at, share in enumerate(shares)),
        resamples=RESAMPLES,
    )
    attempts = sum(tried for tried, _ in outcomes)
    least = wilson_interval(drawn.value * attempts, attempts)
    return replace(drawn, low=min(drawn.low, least.low), high=max(drawn.high, least.high))


def sure_difference(drawn: Interval, tasks: int, gained: int, lost: int) -> Interval:
    """The difference of two runs with an interval that is no point.

    That of a paired bootstrap, except where it can not know: with few tasks, and where no resample
    differs. It is then that of Agresti and Min (2005, Statistics in Medicine 24:729): half a pair
    is added to each of the four cells, and the interval is Wald's.

    Args:
        drawn: The difference with its bootstrap interval.
        tasks: How many tasks both runs answered.
        gained: How many of them the second run did better.
        lost: How many it did worse.
    """
    if tasks >= FEWEST_DRAWN and drawn.low < drawn.high:
        return drawn
    n, better, worse = tasks + 2, gained + 0.5, lost + 0.5
    center = (better - worse) / n
    error = math.sqrt(better + worse - (better - worse) ** 2 / n) / n
    reach = NormalDist().inv_cdf((1 + drawn.level) / 2) * error
    return replace(
        drawn,
        low=max(-1.0, min(drawn.value, center - reach)),
        high=min(1.0, max(drawn.value, center + reach)),
    )


def macro_mean(groups: Sequence[Interval]) -> Interval | None:
    """The mean of categories, each of the same weight; None without any.

    The interval combines those of the categories by MOVER, the method of variance estimates
    recovery (Zou and Donner 2008, Statistics in Medicine 27:1693, Eq. 3): with weights 1/n the
    distance to the lower end is ``sqrt(sum((value - low)**2)) / n``, to the upper end accordingly.
    The categories' tasks are taken to be drawn independently.
    """
    if not groups:
        return None
    n = len(groups)
    value = math.fsum(one.value for one in groups) / n
    below = math.sqrt(math.fsum((one.value - one.low) ** 2 for one in groups)) / n
    above = math.sqrt(math.fsum((one.high - one.value) ** 2 for one in groups)) / n
    return Interval(value=value, low=max(0.0, value - below), high=min(1.0, value + above))


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
    return tuple(_pass_at(k, Counter(one for one in outcomes if one[0] >= k)) for k in listed)


def _pass_at(k: int, tasks: Counter[Outcome]) -> PassAtK:
    n = tasks.total()
    any_passes = (w * pass_at_k(passed, tried, k) for (tried, passed), w in tasks.items())
    all_pass = (w * pass_hat_k(passed, tried, k) for (tried, passed), w in tasks.items())
    return PassAtK(
        k=k, tasks=n, any_passes=math.fsum(any_passes) / n, all_pass=math.fsum(all_pass) / n
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979): none of them rises in order of size.

    The chance that any of the categories that do not differ is called different stays below the
    level that the adjusted values are compared with.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = highest
    return adjusted
