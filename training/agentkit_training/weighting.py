"""How much each rollout's advantage counts, by what its turns are labelled with (SEAL, 3.4)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from types import MappingProxyType
from typing import Protocol

from agentkit.diagnosis.labels import OUTSIDE
from agentkit.episodes import FailureLabel
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
"""The utilities u(l) of the paper (appendix C.2) under our labels.

``spurious_tool_call``, "invalid or unnecessary tool use", is its row for ``invalid_tool_call`` as
well; ``argument_mismatch`` has no row and is named beside that one in section 3.4.
``missing_tool_call`` has the row of ``empty_turn_model_response``. ``recovery_failure`` has none:
the released code takes 1 for what is not listed. ``instance_mismatch`` (0.6) is no label of ours.
"""

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


def diagnostic_weight(labels: Iterable[FailureLabel]) -> float:
    """W = clip(sum over l of p(l) u(l), w_min, w_max): the expected utility (SEAL, Eq. 11).

    Returns:
        The weight; 1 where no label says anything, so that the advantage stays as it is.

    Example:
        >>> diagnostic_weight(["spurious_tool_call", "pass"])
        1.5
    """
    profile = label_profile(labels)
    if not profile:
        return 1.0
    return _clipped(math.fsum(share * PAPER_UTILITIES[one] for one, share in profile.items()))


@dataclass(frozen=True, kw_only=True)
class Weighting:
    """Weighs rollouts by fixed utilities ("fixed across all backbones and training runs").

    SEAL leaves the weights as they are, so that advantages become 1.5 to 1.9 times as large while
    most rollouts fail. AdamW evens out a factor that is the same in each step, but for clipping
    and the share of the KL term. ``normalised`` holds the mean size of the advantages. A group's
    weighted advantages sum to 0 neither here nor in SEAL: with 2 of 8 rollouts passing, and
    utilities of 1 for them and 2 for the others, to -2.16 here, where sizes add up to 6.5.

    Attributes:
        normalised: Whether weights are scaled so that the gradient keeps its size.
        scaled: Whether advantages are divided by the group's deviation, as the engine does it.
    """

    normalised: bool = True
    scaled: bool = True

    def weights(self, rollouts: Sequence[Judged]) -> tuple[float, ...]:
        """A positive weight for each rollout; 1 for one with a fault, which counts in no mean."""
        sound = [one for one in rollouts if not one.fault]
        plain: Sequence[float] = [diagnostic_weight(one.labels) for one in sound]
        if self.normalised:
            plain = scaled_to_mean(plain, sizes=self._sizes(sound))
        given = iter(plain)
        return tuple(1.0 if one.fault else next(given) for one in rollouts)

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


_HALVINGS = 200


def scaled_to_mean(
    weights: Sequence[float], *, sizes: Sequence[float] | None = None
) -> tuple[float, ...]:
    """clip(c w) with the one c for which the mean is 1.

    Clipping after scaling moves the mean, and scaling after clipping leaves the bounds; so c is
    found for both at once. The mean grows with c from the lower bound to the upper one, so that
    there is one where 1 is between them.

    Args:
        weights: Positive numbers.
        sizes: How much each counts in the mean, some of them above 0; equally without them.

    Example:
        >>> scaled_to_mean([1.0, 3.0])
        (0.5, 1.5)
        >>> [round(one, 3) for one in scaled_to_mean([1.0, 1.0, 1.0, 9.0])]
        [0.667, 0.667, 0.667, 2.0]
    """
    if not weights:
        return ()
    low, high = CLIP[0] / max(weights), CLIP[1] / min(weights)
    counts = [1.0] * len(weights) if sizes is None else sizes
    whole = math.fsum(counts)
    factor = whole / math.fsum(map(mul, counts, weights))
    for _ in range(_HALVINGS):
        scaled = [_clipped(factor * one) for one in weights]
        excess = math.fsum(map(mul, counts, scaled)) - whole
        if excess == 0 or not low < high:
            break
        low, high = (low, factor) if excess > 0 else (factor, high)
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        factor = middle
    return tuple(_clipped(factor * one) for one in weights)


def _clipped(weight: float) -> float:
    return min(max(weight, CLIP[0]), CLIP[1])
