"""Intervals: how far a measured share or mean may be from the true one.

A Wilson interval for a share of independent tasks, and a bootstrap over tasks for any mean, where
attempts at one task repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

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
        total: Of how many independent trials.
        level: The level of confidence, between 0 and 1.

    Raises:
        UsageError: More passed than there were, or the level is no share.

    Example:
        >>> found = wilson_interval(8, 10)
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (0.8, 0.49, 0.943)
    """
    if not 0 <= passed <= total:
        raise UsageError(f"{passed} of {total} can not have passed")
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
    method: Literal["percentile", "bca"] = "bca",
) -> Interval:
    """A bootstrap interval for the mean over tasks (Efron 1979, 1987).

    Tasks are drawn with replacement; the attempts at a task stay together. The same observations,
    in whatever order, and the same seed give the same interval.

    Args:
        observations: The measured values, at least one.
        level: The level of confidence, between 0 and 1.
        resamples: How often to draw.
        seed: Of the random numbers.
        method: ``bca`` corrects for bias and skewness (Efron 1987), ``percentile`` does not. Where
            all resamples agree, both give a point.

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
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        tails = _corrected(tails, drawn, value, means)
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
    drawn: Any,
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
