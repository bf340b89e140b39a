"""What a rollout is worth, and the boundary to reward functions that users write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from agentkit_training.rollout.samples import Rollout


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """What a reward function says of a rollout, where it says more than the reward.

    Attributes:
        parts: The parts of the reward, by name; their sum is the reward.
        noted: Numbers to record that do not count, by name.
    """

    parts: Mapping[str, float]
    noted: Mapping[str, float] = field(default_factory=dict)


class Reward(Protocol):
    """Judges a rollout. The parts are recorded; their sum is the reward."""

    def __call__(self, rollout: Rollout) -> Mapping[str, float] | Worth:
        """The parts of the reward, by name; as a ``Worth`` where there is more to record."""
        ...


def worth_of(rollout: Rollout, reward: Reward) -> Worth:
    """What a reward function says of a rollout, as numbers; what it raises goes through."""
    said = reward(rollout)
    worth = said if isinstance(said, Worth) else Worth(parts=said)
    return Worth(parts=_numbers(worth.parts), noted=_numbers(worth.noted))


def rewarded(rollouts: Iterable[Rollout], reward: Reward) -> tuple[Rollout, ...]:
    """The rollouts with their rewards.

    A reward function that raises, or gives what is no finite number, makes its rollout one with a
    fault: it is recorded and not trained on. Rollouts that have a fault already are left alone.
    """
    return tuple(_rewarded(one, reward) for one in rollouts)


def _rewarded(rollout: Rollout, reward: Reward) -> Rollout:
    if rollout.fault:
        return rollout
    try:
        worth = worth_of(rollout, reward)
    except Exception as error:  # noqa: BLE001 - a user's function; the fault is recorded
        return replace(rollout, fault=f"the reward raised {type(error).__name__}: {error}")
    judged = replace(rollout, reward_parts=worth.parts, reward_notes=worth.noted)
    total = sum(worth.parts.values())
    if not math.isfinite(total):
        return replace(judged, fault=f"the reward is {total}")
    return replace(judged, reward=total)


def verdict_reward(rollout: Rollout) -> Mapping[str, float]:
    """1 for a rollout that all its verifiers passed, 0 for any other (SEAL, Eq. 3)."""
    return {"passed": float(rollout.passed)}


def _numbers(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}
