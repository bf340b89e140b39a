"""What a rollout is worth, and the boundary to reward functions that users write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from agentkit.errors import UsageError
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


@dataclass(frozen=True)
class RewardSum:
    """Adds rewards up; parts of one name, and notes of one name, add up as well.

    CoCoDA's shaped reward ``R = R_res + lambda R_comp`` (section 3.3) is
    ``RewardSum([verdict_reward, saved_calls_reward(library)])``.

    Attributes:
        rewards: The rewards.

    Raises:
        UsageError: There is none.

    Example:
        >>> from agentkit_training.rewards import verdict_reward
        >>> from agentkit_training.rollout.samples import Rollout
        >>> rollout = Rollout(task_id="t", attempt=0, episodes=(), sequences=(), library_version=0)
        >>> RewardSum([verdict_reward, lambda _: {"brief": 0.5}])(rollout).parts
        {'passed': 0.0, 'brief': 0.5}
    """

    rewards: Sequence[Reward]

    def __post_init__(self) -> None:
        if not self.rewards:
            raise UsageError("a sum of no rewards is 0 for everything; give at least one reward")

    def __call__(self, rollout: Rollout) -> Worth:
        """The parts and the notes of all rewards."""
        worths = [worth_of(rollout, reward) for reward in self.rewards]
        return Worth(
            parts=_added(worth.parts for worth in worths),
            noted=_added(worth.noted for worth in worths),
        )


def _added(several: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for values in several:
        for name, value in values.items():
            total[name] = total.get(name, 0.0) + value
    return total
