"""Uncertainty of measured numbers: intervals, comparisons of two systems, repeated attempts.

A Wilson interval for a share of independent tasks, and a bootstrap over tasks for any mean, where
attempts at one task repeat. Of two systems on the same tasks, what both pass or both fail says
nothing about the difference: the tasks on which they differ are judged by McNemar's exact test
with mid-p, and the size of the difference by a paired bootstrap. ``pass_at_k`` and ``pass_hat_k``
say what several attempts at one task predict for more or fewer of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from statistics import NormalDist
from typing import TYPE_CHECKING

from agentkit.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CELLS = 2_000_000
"""Values drawn at a time; more would only cost memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """An estimate with its interval.

    Attributes:
        value: The estimate.
        low: Lower end.
        high: Upper end.
        level: How often such intervals hold the true value.
    """

    value: float
    low: float
    high: float
    level: float = 0.95

    def to_json(self) -> dict[str, float]:
        """The interval as a JSON object."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """One measured value.

    Attributes:
        value: The value; 1 or 0 for passed or not.
        task: What was attempted. Values of one task are not independent, and are averaged first,
            so that each task counts the same.
    """

    value: float
    task: str


def wilson_interval(passed: float, total: float, *, level: float = 0.95) -> Interval:
    """Wilson's score interval for a share (Wilson 1927), sound for few trials and extreme shares.

    Without trials it reaches from 0 to 1 around .5: nothing is known.

    Args:
        passed: How many passed; weights count as fractions of a trial.
        total: Number of independent trials.
        level: The level of confidence, between 0 and 1.

    Raises:
        UsageError: More passed than there were, or the level is not a share.

    Example:
        >>> found = wilson_interval(8, 10)
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (0.8, 0.49, 0.943)
    """
    if not 0 <= passed <= total:
        raise UsageError(f"{passed} of {total} cannot have passed")
    _check_level(level)
    if not total:
        return Interval(value=0.5, low=0.0, high=1.0, level=level)
    share = passed / total
    z = _quantile((1 + level) / 2)
    center = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    scale = 1 + z * z / total
    # At a share of 0 or 1 the end is exact, which rounding would spoil.
    low = 0.0 if not passed else max(0.0, (center - spread) / scale)
    high = 1.0 if passed == total else min(1.0, (center + spread) / scale)
    return Interval(value=share, low=low, high=high, level=level)


@lru_cache(maxsize=64)  # tables of a thousand rates ask for one and the same
def _quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)


def bootstrap_interval(
    observations: Iterable[Observation],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """A bootstrap interval for the mean over tasks, corrected for bias and skewness (Efron 1987).

    Tasks are drawn with replacement; the attempts at a task stay together. The same observations,
    in whatever order, and the same seed give the same interval; where all resamples agree it is a
    point.

    Args:
        observations: The measured values, at least one.
        level: The level of confidence, between 0 and 1.
        resamples: How often to draw.
        seed: Seed of the random numbers.

    Raises:
        UsageError: There are no observations, one is not finite, or a number is out of range.

    Example:
        >>> scores = [Observation(value=v, task=str(n)) for n, v in enumerate([1, 0, 1, 1, 0, 1])]
        >>> found = bootstrap_interval(scores, seed=1)
        >>> found.low < found.value < found.high
        True
    """
    means = _task_means(observations)
    _check_level(level)
    if resamples < 1:
        raise UsageError(f"resamples must be 1 or more, got {resamples}")
    drawn = _resampled_means(means, resamples, seed)
    value = math.fsum(means) / len(means)
    tails = _corrected(((1 - level) / 2, (1 + level) / 2), drawn, value, means)
    import numpy as np

    low, high = (float(end) for end in np.quantile(drawn, tails))
    return Interval(value=value, low=low, high=high, level=level)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"a level of confidence lies between 0 and 1, got {level}")


def _task_means(observations: Iterable[Observation]) -> list[float]:
    """The mean of each task, in an order that does not depend on how they came."""
    values: dict[str, list[float]] = {}
    for one in observations:
        if not math.isfinite(one.value):
            raise UsageError(f"the value of task {one.task!r} is {one.value}; it must be finite")
        values.setdefault(one.task, []).append(one.value)
    if not values:
        raise UsageError("an interval needs at least one observation, and there are none")
    return [math.fsum(several) / len(several) for _, several in sorted(values.items())]


def _resampled_means(means: Sequence[float], resamples: int, seed: int) -> NDArray[np.float64]:
    import numpy as np

    chance = np.random.default_rng(seed)
    values = np.asarray(means)
    sums = np.zeros(resamples)
    step = max(1, _CELLS // len(values))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        chosen = chance.integers(len(values), size=(count, len(values)))
        sums[start : start + count] = values[chosen].sum(axis=1)
    return sums / len(values)


def _corrected(
    tails: tuple[float, float],
    drawn: NDArray[np.float64],
    value: float,
    means: Sequence[float],
) -> tuple[float, float]:
    """The percentiles that BCa takes instead (Efron 1987, Eq. 6.8)."""
    below = (float((drawn < value).mean()) + float((drawn <= value).mean())) / 2
    if not 0 < below < 1:  # all on one side: there is nothing to correct by
        return tails
    normal = NormalDist()
    bias = normal.inv_cdf(below)
    skew = _acceleration(means)

    def corrected(tail: float) -> float:
        z = bias + normal.inv_cdf(tail)
        if skew * z >= 1:  # so skewed that the correction leaves the scale, as with one rare hit
            return 1.0 if z > 0 else 0.0
        return normal.cdf(bias + z / (1 - skew * z))

    return corrected(tails[0]), corrected(tails[1])


def _acceleration(means: Sequence[float]) -> float:
    """A sixth of the skewness of the tasks' influences on the mean."""
    center = math.fsum(means) / len(means)
    offsets = [one - center for one in means]
    largest = max(map(abs, offsets), default=0.0)
    if not largest:
        return 0.0
    parts = [offset / largest for offset in offsets]  # skewness has no scale, powers of floats do
    variance = math.fsum(part**2 for part in parts)
    return math.fsum(part**3 for part in parts) / (6 * variance * math.sqrt(variance))


# --- two systems ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedOutcome:
    """How two systems did on one task.

    Attributes:
        task: The task. Several outcomes of one task are averaged first.
        first: Score of the first system; 1 or 0 for passed or not.
        second: Score of the second.
    """

    task: str
    first: float
    second: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedComparison:
    """Two systems compared.

    Attributes:
        tasks: How many tasks both attempted.
        only_first: Tasks on which the first did better.
        only_second: Tasks on which the second did better.
        difference: Mean score of the second less that of the first, with its interval.
        p_value: How likely it is that tasks divide so unevenly if neither is better (mid-p).
    """

    tasks: int
    only_first: int
    only_second: int
    difference: Interval
    p_value: float


def mcnemar_mid_p(only_first: int, only_second: int) -> float:
    """The two-sided mid-p value of McNemar's exact test (Fagerland et al. 2013).

    Counts what is as extreme as observed half, what is more extreme in full. Less conservative than
    the exact test, it still keeps the level in practice. Computed with integers and rounded once.

    Args:
        only_first: Tasks that only the first system passed.
        only_second: Tasks that only the second passed.

    Returns:
        The p-value; 1 when the systems never differ.

    Raises:
        UsageError: A count is negative.

    Example:
        >>> round(mcnemar_mid_p(2, 10), 4)
        0.0225
    """
    if min(only_first, only_second) < 0:
        raise UsageError(f"counts of tasks cannot be negative: {only_first}, {only_second}")
    differ, fewer = only_first + only_second, min(only_first, only_second)
    more_extreme = 2 * sum(comb(differ, at) for at in range(fewer))
    as_extreme = comb(differ, fewer) if only_first == only_second else 2 * comb(differ, fewer)
    if not differ:
        return 1.0
    return (2 * more_extreme + as_extreme) / (1 << (differ + 1))


def compare_paired(
    outcomes: Iterable[PairedOutcome], *, resamples: int = 10_000
) -> PairedComparison:
    """Compare two systems on the tasks that both attempted.

    With one 0-or-1 outcome a task the p-value is McNemar's. With scores between, or several
    attempts averaged, it is the sign test on tasks with a difference, which is the same formula.

    Args:
        outcomes: One for each task, or for each pair of attempts at it; at least one.
        resamples: How often the bootstrap draws.

    Raises:
        UsageError: There are no outcomes, or one is not finite.

    Example:
        >>> pairs = [PairedOutcome(task=str(n), first=n % 3 == 0, second=1) for n in range(30)]
        >>> found = compare_paired(pairs)
        >>> found.only_first, found.only_second, round(found.difference.value, 3)
        (0, 20, 0.667)
    """
    differences = [Observation(value=one.second - one.first, task=one.task) for one in outcomes]
    interval = bootstrap_interval(differences, resamples=resamples)
    totals: dict[str, float] = {}
    for one in differences:
        totals[one.task] = totals.get(one.task, 0.0) + one.value
    only_first = sum(total < 0 for total in totals.values())
    only_second = sum(total > 0 for total in totals.values())
    return PairedComparison(
        tasks=len(totals),
        only_first=only_first,
        only_second=only_second,
        difference=interval,
        p_value=mcnemar_mid_p(only_first, only_second),
    )


# --- several attempts -----------------------------------------------------------------------------


def pass_at_k(passed: int, attempts: int, k: int) -> float:
    """The chance that at least one of ``k`` attempts passes, estimated without bias.

    Chen et al., "Evaluating Large Language Models Trained on Code" (2021), Eq. 1.

    Args:
        passed: How many attempts passed.
        attempts: How many were made.
        k: How many would be made.

    Raises:
        UsageError: The numbers contradict each other, or there are fewer attempts than ``k``.

    Example:
        >>> pass_at_k(3, 10, 1), round(pass_at_k(3, 10, 5), 4)
        (0.3, 0.9167)
    """
    _check_counts(passed, attempts, k)
    chosen = comb(attempts, k)
    return (chosen - comb(attempts - passed, k)) / chosen


def pass_hat_k(passed: int, attempts: int, k: int) -> float:
    """The chance that all of ``k`` attempts pass: how reliable an agent is (pass^k).

    Yao et al., "tau-bench" (2024), section 3.

    Args:
        passed: How many attempts passed.
        attempts: How many were made.
        k: How many would be made.

    Raises:
        UsageError: The numbers contradict each other, or there are fewer attempts than ``k``.

    Example:
        >>> pass_hat_k(3, 4, 1), pass_hat_k(3, 4, 2), pass_hat_k(3, 4, 4)
        (0.75, 0.5, 0.0)
    """
    _check_counts(passed, attempts, k)
    return comb(passed, k) / comb(attempts, k)


def _check_counts(passed: int, attempts: int, k: int) -> None:
    if not 0 <= passed <= attempts:
        raise UsageError(f"{passed} of {attempts} attempts cannot have passed")
    if not 1 <= k <= attempts:
        raise UsageError(
            f"k = {k} cannot be estimated from {attempts} attempts; make at least k attempts, and "
            "ask for k of 1 or more"
        )
