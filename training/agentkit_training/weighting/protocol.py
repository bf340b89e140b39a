"""``Weighting``: what an advantage is multiplied with, and how that goes on from round to round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Protocol, Self

from agentkit.episodes import FailureLabel
from agentkit.messages import JsonObject
from agentkit_training.rollout.samples import Rollout


class Judged(Protocol):
    """What a weight depends on: a ``Rollout``, or what another process tells of one."""

    @property
    def labels(self) -> Sequence[FailureLabel]:
        """The failure labels of its turns, in order."""
        ...

    @property
    def passed(self) -> bool:
        """Whether all that was judged passed."""
        ...

    @property
    def fault(self) -> str:
        """Why it must not be trained on; empty for any other."""
        ...


class Weighting(Protocol):
    """Weighs rollouts. Immutable: what it learns from a round is a new weighting."""

    def weights(self, rollouts: Sequence[Judged]) -> Sequence[float]:
        """A positive weight for each rollout; 1 for one with a fault."""
        ...

    def observed(self, rollouts: Sequence[Judged]) -> Self:
        """The weighting after a round of rollouts (SEAL, Eq. 14)."""
        ...

    def state(self) -> JsonObject:
        """What it has learned, for a checkpoint."""
        ...

    def restored(self, state: JsonObject) -> Self:
        """The weighting with what ``state`` gave.

        Raises:
            CheckpointError: It is no such state.
        """
        ...


def weighted_rollouts(rollouts: Sequence[Rollout], weighting: Weighting) -> tuple[Rollout, ...]:
    """The rollouts with their weights: w of A' = w A, with A the group's advantage (SEAL, Eq. 12).

    Weights are positive, so no advantage changes its sign. As in the released code, a weighting
    that changes is told of a round before it weighs it:
    ``weighted_rollouts(rollouts, weighting.observed(rollouts))``.
    """
    return with_weights(rollouts, weighting.weights(rollouts))


def with_weights(rollouts: Sequence[Rollout], weights: Sequence[float]) -> tuple[Rollout, ...]:
    """The rollouts with a weight each; those with a fault as they are."""
    return tuple(
        rollout if rollout.fault else replace(rollout, weight=weight)
        for rollout, weight in zip(rollouts, weights, strict=True)
    )


def mean_weight(rollouts: Iterable[Rollout]) -> float:
    """The mean weight of what is trained on: the factor that weighting puts on the learning rate.

    The control for SEAL is the plain loss at a learning rate times this. 1 without rollouts.
    """
    weights = [one.weight for one in rollouts if not one.fault]
    return fmean(weights) if weights else 1.0
