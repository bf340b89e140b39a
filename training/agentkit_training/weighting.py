"""How much each rollout's advantage counts, by what its turns are labelled with (SEAL, 3.4)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import mul
from types import MappingProxyType
from typing import Protocol

from agentkit.diagnosis.labels import OUTSIDE
from agentkit.episodes import FailureLabel
from agentkit.errors import UsageError
from agentkit_training.engines.packing import group_advantages
from agentkit_training.rollout.samples import Rollout


class Judged(Protocol):
    """What a weight depends on: a ``Rollout``, or what another process tells of one."""

    @property
    def labels(self) -> Sequence[FailureLabel]:
        """The failure labels of its turns, in order."""
        ...

    @property
    def fault(self) -> str:
        """Why it must not be trained on; empty for any other."""
        ...

    @property
    def task_id(self) -> str:
        """What was tried; attempts at one task are a group."""
        ...

    @property
    def reward(self) -> float:
        """What it was worth."""
        ...


class Weighting(Protocol):
    """Weighs rollouts."""

    def weights(self, rollouts: Sequence[Judged]) -> Sequence[float]:
        """A positive weight for each rollout; 1 for one with a fault."""
        ...


def with_weights(rollouts: Sequence[Rollout], weights: Sequence[float]) -> tuple[Rollout, ...]:
    """The rollouts with a weight each; those with a fault as they are."""
    return tuple(
        rollout if rollout.fault else replace(rollout, weight=weight)
        for rollout, weight in zip(rollouts, weights, strict=True)
    )


PAPER_UTILITIES: Mapping[FailureLabel, float] = MappingProxyType(
    {
        "spurious_tool_call": 2.0,
        "invalid_tool_call": 2.0,
        "argument_mismatch": 2.0,
        "correct_abstention": 1.8,
        "missing_tool_call": 1.5,
        "state_mismatch": 1.0,
        "recovery_failure": 1.0,
        "response_mismatch": 0.9,
        "pass": 1.0,
        "unjudged": 1.0,
    }
)
"""The utilities u(l) of the paper under our labels; see the module's text."""

CLIP = (0.5, 2.0)
"""Least and largest weight: those of the released configuration; the paper's text has lost them."""


def label_profile(labels: Iterable[FailureLabel]) -> dict[FailureLabel, float]:
    """p(l): the share of each label among the turns of one rollout (SEAL, Eq. 10).

    Labels that say nothing about the policy are left out of the count. Empty without any other.

    Example:
        >>> label_profile(["pass", "argument_mismatch", "pass", "gold_error", "pass"])
        {'pass': 0.75, 'argument_mismatch': 0.25}
    """
    counts = Counter(label for label in labels if label not in OUTSIDE)
    total = counts.total()
    return {label: count / total for label, count in counts.most_common()}


def diagnostic_weight(
    labels: Iterable[FailureLabel],
    utilities: Mapping[FailureLabel, float] = PAPER_UTILITIES,
    clip: tuple[float, float] = CLIP,
) -> float:
    """W = clip(sum over l of p(l) u(l), w_min, w_max): the expected utility (SEAL, Eq. 11).

    Args:
        labels: The labels of a rollout's turns.
        utilities: u(l); 1 for a label that it lacks.
        clip: w_min and w_max.

    Returns:
        The weight; 1 where no label says anything, so that the advantage stays as it is.

    Example:
        >>> diagnostic_weight(["spurious_tool_call", "pass"])
        1.5
    """
    profile = label_profile(labels)
    if not profile:
        return 1.0
    expected = math.fsum(share * utilities.get(label, 1.0) for label, share in profile.items())
    return min(max(expected, clip[0]), clip[1])


def check_clip(clip: tuple[float, float]) -> None:
    """Refuse bounds that could turn an advantage around.

    Raises:
        UsageError: They are not two positive numbers, the smaller one first.
    """
    low, high = clip
    if not 0 < low <= high < math.inf:
        raise UsageError(
            f"weights are clipped to {low:g} and {high:g}; give two positive numbers, the smaller "
            f"one first, such as {CLIP[0]:g} and {CLIP[1]:g}: a weight of 0 or less would not keep "
            "the sign of an advantage"
        )


@dataclass(frozen=True, kw_only=True)
class FixedWeighting:
    """Weighs by fixed utilities (SEAL, Eq. 11: "fixed across all backbones and training runs").

    With the paper's utilities the mean weight is well above 1 where most rollouts fail, which
    raises the learning rate unseen; ``MeanNormalised`` takes that out.

    Attributes:
        utilities: u(l); 1 for a label that it lacks.
        clip: Least and largest weight.

    Raises:
        UsageError: The bounds are not positive.
    """

    utilities: Mapping[FailureLabel, float] = field(default_factory=lambda: PAPER_UTILITIES)
    clip: tuple[float, float] = CLIP

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def weights(self, rollouts: Sequence[Judged]) -> tuple[float, ...]:
        """The expected utility of each rollout's labels, clipped; 1 for one with a fault."""
        return tuple(
            1.0 if one.fault else diagnostic_weight(one.labels, self.utilities, self.clip)
            for one in rollouts
        )


_HALVINGS = 200


@dataclass(frozen=True, kw_only=True)
class MeanNormalised:
    """The weights of another weighting, scaled so that their mean over the batch is 1.

    SEAL does not do that. Its mean weight is then a factor on the learning rate, 1.5 to 1.7 with
    the paper's table while most rollouts fail, and a gain may come from that alone. What is held
    here is the mean, either of the weights or of the sizes of the advantages; the sum of a group's
    weighted advantages is 0 with neither, as it is not in SEAL: with 2 of 8 rollouts passing, and
    weights of 1 and 2 before a mean of 1 was held, it was -1.85 where sizes add up to 6.5.

    Attributes:
        inner: Gives the weights.
        scaled: Whether advantages are divided by the group's deviation, as the engine does it.
        clip: Least and largest weight after scaling; 1 lies between them.

    Raises:
        UsageError: The bounds are not positive, or 1 is not between them.
    """

    inner: Weighting
    clip: tuple[float, float] = CLIP
    scaled: bool = True

    def __post_init__(self) -> None:
        check_clip(self.clip)
        if not self.clip[0] <= 1 <= self.clip[1]:
            raise UsageError(
                f"weights from {self.clip[0]:g} to {self.clip[1]:g} can not have a mean of 1; give "
                "bounds with 1 between them"
            )

    def weights(self, rollouts: Sequence[Judged]) -> tuple[float, ...]:
        """The scaled weights; those with a fault are 1 and do not count in the mean."""
        plain = self.inner.weights(rollouts)
        sound = [at for at, one in enumerate(rollouts) if not one.fault]
        sizes = self._sizes([rollouts[at] for at in sound])
        scaled = iter(scaled_to_mean([plain[at] for at in sound], self.clip, sizes=sizes))
        return tuple(1.0 if one.fault else next(scaled) for one in rollouts)

    def _sizes(self, rollouts: Sequence[Judged]) -> Sequence[float]:
        """The size of each rollout's advantage; equal ones where no group has any."""
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for at, one in enumerate(rollouts):
            groups[one.task_id].append(at)
        sizes = [0.0] * len(rollouts)
        for group in groups.values():
            rewards = [rollouts[at].reward for at in group]
            found = group_advantages(rewards, scaled=self.scaled)
            for at, advantage in zip(group, found, strict=True):
                sizes[at] = abs(advantage)
        return sizes if any(sizes) else [1.0] * len(rollouts)


def scaled_to_mean(
    weights: Sequence[float],
    clip: tuple[float, float] = CLIP,
    *,
    sizes: Sequence[float] | None = None,
) -> tuple[float, ...]:
    """clip(c w) with the one c for which the mean is 1.

    Clipping after scaling moves the mean, and scaling after clipping leaves the bounds; so c is
    found for both at once. The mean grows with c from the lower bound to the upper one, so that
    there is one where 1 is between them.

    Args:
        weights: Positive numbers.
        clip: Least and largest of what comes out.
        sizes: How much each counts in the mean, some of them above 0; equally without them.

    Example:
        >>> scaled_to_mean([1.0, 3.0])
        (0.5, 1.5)
        >>> [round(one, 3) for one in scaled_to_mean([1.0, 1.0, 1.0, 9.0])]
        [0.667, 0.667, 0.667, 2.0]
    """
    if not weights:
        return ()
    low, high = clip[0] / max(weights), clip[1] / min(weights)
    counts = [1.0] * len(weights) if sizes is None else sizes
    whole = math.fsum(counts)
    factor = whole / math.fsum(map(mul, counts, weights))
    for _ in range(_HALVINGS):
        scaled = _clipped(weights, factor, clip)
        excess = math.fsum(map(mul, counts, scaled)) - whole
        if excess == 0 or not low < high:
            break
        low, high = (low, factor) if excess > 0 else (factor, high)
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        factor = middle
    return _clipped(weights, factor, clip)


def _clipped(
    weights: Sequence[float], factor: float, clip: tuple[float, float]
) -> tuple[float, ...]:
    return tuple(min(max(factor * one, clip[0]), clip[1]) for one in weights)
