"""From rollouts to the rows of a batch: advantages within each group, times the weights."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from agentkit_training.engines.objective import BatchSize
from agentkit_training.rollout.samples import Rollout, TokenSequence

STABILITY = 1e-4
"""Added to the deviation, as TRL does, so that near-equal rewards give no huge advantages."""


def group_advantages(rewards: Sequence[float], *, scaled: bool = True) -> list[float]:
    """A_i = (r_i - mean) / (std + 1e-4) over one group of rollouts of the same task.

    Args:
        rewards: One for each rollout of the group.
        scaled: Whether to divide by the sample standard deviation; Dr. GRPO does not.

    Returns:
        The advantages; all 0 for equal rewards and for a group of one.

    Example:
        >>> [round(one, 3) for one in group_advantages([1.0, 0.0])]
        [0.707, -0.707]
        >>> group_advantages([1.0, 1.0])
        [0.0, 0.0]
    """
    if len(rewards) < 2 or min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = fmean(rewards)
    spread = stdev(rewards) + STABILITY if scaled else 1.0
    return [(reward - mean) / spread for reward in rewards]


def weighted(advantages: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Each advantage times its diagnostic weight (SEAL, Eq. 12); positive weights keep the sign.

    Raises:
        ValueError: A weight is not positive, or there are not as many as advantages.
    """
    if any(weight <= 0 for weight in weights):
        raise ValueError(f"a weight is {min(weights)}; only positive ones keep the sign")
    return [one * weight for one, weight in zip(advantages, weights, strict=True)]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRow:
    """A sequence and how much more, or less, likely it is to become.

    Attributes:
        sequence: The tokens.
        advantage: Of the rollout it belongs to, weight included.
        part: Which part of its rollout's written tokens it holds; those of a rollout sum to 1.
    """

    sequence: TokenSequence
    advantage: float
    part: float = 1.0

    @property
    def length(self) -> int:
        """Tokens that bear loss."""
        return sum(self.sequence.written)


def groups(rollouts: Iterable[Rollout]) -> list[list[Rollout]]:
    """The attempts at each task, tasks in the order in which they first come."""
    found: dict[str, list[Rollout]] = {}
    for one in rollouts:
        found.setdefault(one.task_id, []).append(one)
    return list(found.values())


def training_rows(rollouts: Sequence[Rollout], *, scaled: bool = True) -> list[TrainingRow]:
    """The rows of a batch, group by group.

    All attempts at a task in one step are one group, also those that were asked for again.
    Rollouts with a fault are left out, of the group's mean as well.

    Args:
        rollouts: Those of a step.
        scaled: Whether advantages are divided by the group's deviation.
    """
    rows: list[TrainingRow] = []
    for group in groups(rollouts):
        sound = [one for one in group if not one.fault]
        plain = group_advantages([one.reward for one in sound], scaled=scaled)
        advantages = weighted(plain, [one.weight for one in sound])
        rows += [
            TrainingRow(sequence=sequence, advantage=advantage, part=part)
            for one, advantage in zip(sound, advantages, strict=True)
            for sequence, part in zip(one.sequences, _parts(one.sequences), strict=True)
        ]
    return rows


def batch_size(rows: Iterable[TrainingRow]) -> BatchSize:
    """How many outputs and tokens there are in the rows."""
    found = list(rows)
    return BatchSize(
        outputs=math.fsum(row.part for row in found), tokens=sum(row.length for row in found)
    )


def _parts(sequences: Sequence[TokenSequence]) -> list[float]:
    """Which part of the written tokens each sequence holds; equal parts where there are none."""
    lengths = [sum(one.written) for one in sequences]
    whole = sum(lengths)
    return [one / whole if whole else 1 / len(lengths) for one in lengths]


def mini_batches(
    rows: Sequence[TrainingRow], *, count: int, seed: tuple[int, ...]
) -> list[list[TrainingRow]]:
    """The rows in ``count`` parts of about the same number of prompts, in an order of the seed.

    Rows with equal prompts stay together: they are read together, and their advantages balance.

    Args:
        rows: The rows of a step.
        count: Parts; there are fewer where there are fewer prompts, and one at least.
        seed: Of the order.
    """
    by_prompt: dict[tuple[int, ...], list[TrainingRow]] = {}
    for row in rows:
        by_prompt.setdefault(row.sequence.prompt, []).append(row)
    found = list(by_prompt.values())
    random.Random(str(seed)).shuffle(found)  # noqa: S311 - not for secrets
    parts = max(1, min(count, len(found)))
    return [[row for group in found[part::parts] for row in group] for part in range(parts)]
