"""Paired differences between what two models answered, with intervals.

Two things vary: which seed (split, samples, order) and which questions. The bootstrap draws seeds,
and in each seed questions, so that an interval holds both; with three or five seeds it is rough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Right: TypeAlias = Mapping[tuple[int, str], bool]
"""Whether each question was answered rightly, by seed and question."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


def interval(differences: Mapping[int, Sequence[float]], *, draws: int = 10_000) -> Interval:
    """The mean of paired differences, with a bootstrap over seeds and the questions in each.

    Args:
        differences: Of each seed; at least one is not empty.
        draws: Samples of the bootstrap.

    Example:
        >>> interval({1: [0.0, 0.0], 2: [1.0, 1.0]})
        Interval(mean=0.5, low=0.0, high=1.0)
    """
    chance = np.random.default_rng(0)
    seeds = [np.asarray(one, dtype=float) for one in differences.values() if len(one)]
    drawn = chance.integers(len(seeds), size=(draws, len(seeds)))
    sums, counts = np.zeros(draws), np.zeros(draws)
    for slot in range(len(seeds)):
        for number, values in enumerate(seeds):
            (at,) = np.nonzero(drawn[:, slot] == number)
            picks = chance.integers(len(values), size=(len(at), len(values)))
            sums[at] += values[picks].sum(1)
            counts[at] += len(values)
    low, high = np.percentile(sums / counts, [2.5, 97.5])
    mean = float(np.concatenate(seeds).mean())
    return Interval(mean=mean, low=float(low), high=float(high))


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """What one model answers rightly beside another, on the same questions of the same seeds.

    Attributes:
        points: Difference of the shares of right answers, in points.
        won: Questions that the other model alone had wrong.
        lost: Questions that it alone had right.
    """

    points: Interval
    won: int
    lost: int

    def __str__(self) -> str:
        told = f"{self.points.mean:+.1f} points [{self.points.low:+.1f}, {self.points.high:+.1f}]"
        return f"{told}; {self.won} won, {self.lost} lost"


def gain(base: Right, other: Right) -> Gain:
    """The difference, over the questions that both sides have.

    Args:
        base: What is compared with.
        other: What is compared.

    Example:
        >>> print(gain({(0, "a"): False, (0, "b"): True}, {(0, "a"): True, (0, "b"): True}))
        +50.0 points [+0.0, +100.0]; 1 won, 0 lost
    """
    keys = sorted(base.keys() & other.keys())
    points: dict[int, list[float]] = {}
    for key in keys:
        points.setdefault(key[0], []).append(100 * (float(other[key]) - float(base[key])))
    everything = [value for one in points.values() for value in one]
    return Gain(
        points=interval(points),
        won=sum(value > 0 for value in everything),
        lost=sum(value < 0 for value in everything),
    )


def of_each_seed(right: Right) -> str:
    """Right answers of each seed, in the order of the seeds.

    Example:
        >>> of_each_seed({(1, "a"): True, (1, "b"): True, (2, "a"): False})
        '2, 0'
    """
    counts = Counter({seed: 0 for seed, _ in right})
    counts.update(seed for (seed, _), is_right in right.items() if is_right)
    return ", ".join(str(counts[seed]) for seed in sorted(counts))
