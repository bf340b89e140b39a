"""From the rollouts of all processes to the numbers in a step's record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from agentkit_training.coevolution.prompting import block_count
from agentkit_training.coevolution.records import RolloutSums
from agentkit_training.rollout.samples import Rollout


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutNote:
    """What the record of a step needs of one rollout.

    Attributes:
        task_id: The task.
        passed: Whether all that was judged passed.
        fault: Why it says nothing about the policy; empty for any other.
        reward: Its reward.
        reward_parts: What the reward is made of.
        reward_notes: What the reward function recorded beside it.
        weight: Of its advantage.
        labels: Of its turns.
        blocks: Answers with a ``<description>`` block.
        calls: Tool calls.
    """

    task_id: str
    passed: bool
    fault: str
    reward: float
    reward_parts: Mapping[str, float]
    reward_notes: Mapping[str, float]
    weight: float
    labels: tuple[str, ...]
    blocks: int
    calls: int

    @classmethod
    def of(cls, rollout: Rollout) -> RolloutNote:
        """The note of a rollout."""
        return cls(
            task_id=rollout.task_id,
            passed=rollout.passed,
            fault=rollout.fault,
            reward=rollout.reward,
            reward_parts=dict(rollout.reward_parts),
            reward_notes=dict(rollout.reward_notes),
            weight=rollout.weight,
            labels=rollout.labels,
            blocks=block_count(rollout),
            calls=sum(len(episode.calls) for episode in rollout.episodes),
        )

    def to_json(self) -> dict[str, Any]:
        """The note as a JSON object."""
        return asdict(self)


def summed(notes: Sequence[RolloutNote]) -> RolloutSums:
    """Add up the notes of one step, of all processes in order."""
    sound = [one for one in notes if not one.fault]
    labels = Counter(label for one in sound for label in one.labels)
    return RolloutSums(
        tasks=tuple(dict.fromkeys(one.task_id for one in notes)),
        count=len(notes),
        passed=sum(one.passed for one in sound),
        faults=len(notes) - len(sound),
        fault=next((one.fault for one in notes if one.fault), ""),
        blocks=sum(one.blocks > 0 for one in notes),
        calls=sum(one.calls for one in notes),
        reward=_mean(one.reward for one in sound),
        reward_parts=_means(one.reward_parts for one in sound),
        reward_notes=_means(one.reward_notes for one in sound),
        weight=_mean((one.weight for one in sound), empty=1.0),
        labels=dict(sorted(labels.items())),
    )


def _means(several: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each name, over those that have it."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for values in several:
        for name, value in values.items():
            found[name].append(value)
    return {name: fmean(values) for name, values in sorted(found.items())}


def _mean(values: Iterable[float], *, empty: float = 0.0) -> float:
    found = list(values)
    return fmean(found) if found else empty
