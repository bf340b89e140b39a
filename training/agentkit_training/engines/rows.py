"""From rollouts to the rows of a batch: advantages within each group, times the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from agentkit_training.advantages import group_advantages, weighted
from agentkit_training.rollout.samples import Rollout, TokenSequence


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRow:
    """A sequence and how much more, or less, likely it is to become.

    Attributes:
        sequence: The tokens.
        advantage: Of the rollout it belongs to, weight included.
    """

    sequence: TokenSequence
    advantage: float


def training_rows(rollouts: Sequence[Rollout], *, scaled: bool = True) -> list[TrainingRow]:
    """The rows of a batch. Rollouts with a fault are left out, of the group's mean as well.

    Args:
        rollouts: The attempts at a task together, as ``Source.rollouts`` gives them.
        scaled: Whether advantages are divided by the group's deviation.
    """
    rows: list[TrainingRow] = []
    for _, group in groupby(rollouts, key=lambda one: one.task_id):
        sound = [one for one in group if not one.fault]
        plain = group_advantages([one.reward for one in sound], scaled=scaled)
        advantages = weighted(plain, [one.weight for one in sound])
        rows += [
            TrainingRow(sequence=sequence, advantage=advantage)
            for one, advantage in zip(sound, advantages, strict=True)
            for sequence in one.sequences
        ]
    return rows
