"""Paired differences between what two models answered, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Right: TypeAlias = Mapping[tuple[int, str], bool]
"""Whether each question was answered rightly, by seed and question."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """What one model answers rightly beside another, on the same questions of the same seeds.

    Attributes:
        mean: Difference of the shares of right answers, in points.
        low: Lower end of its 95 % interval.
        high: Upper end.
        won: Questions that the other model alone had wrong.
        lost: Questions that it alone had right.
    """

    mean: float
    low: float
    high: float
    won: int
    lost: int

    def __str__(self) -> str:
        return f"{self.mean:+.1f} points [{self.low:+.1f}, {self.high:+.1f}]"


def gain(base: Right, other: Right, *, draws: int = 10_000) -> Gain:
    """The difference, with a bootstrap over paired questions.

    Args:
        base: What is compared with.
        other: What is compared; questions that only one side has are passed over.
        draws: Samples of the bootstrap.

    Example:
        >>> print(gain({(0, "a"): False, (0, "b"): True}, {(0, "a"): True, (0, "b"): True}))
        +50.0 points [+0.0, +100.0]
    """
    keys = sorted(base.keys() & other.keys())
    differences = np.array([float(other[key]) - float(base[key]) for key in keys])
    picks = np.random.default_rng(0).integers(len(keys), size=(draws, len(keys)))
    low, high = np.percentile(differences[picks].mean(1), [2.5, 97.5])
    return Gain(
        mean=100 * float(differences.mean()),
        low=100 * float(low),
        high=100 * float(high),
        won=int((differences > 0).sum()),
        lost=int((differences < 0).sum()),
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
