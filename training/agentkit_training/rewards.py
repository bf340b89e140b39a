"""What a rollout is worth, and the boundary to reward functions that users write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from agentkit_training.rollout.samples import Rollout


class Reward(Protocol):
    """Judges a rollout. The parts are recorded; their sum is the reward."""

    def __call__(self, rollout: Rollout) -> Mapping[str, float]:
        """The parts of the reward, by name."""
        ...


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
        parts = {name: float(value) for name, value in reward(rollout).items()}
    except Exception as error:  # noqa: BLE001 - a user's function; the fault is recorded
        return replace(rollout, fault=f"the reward raised {type(error).__name__}: {error}")
    total = sum(parts.values())
    if not math.isfinite(total):
        return replace(rollout, reward_parts=parts, fault=f"the reward is {total}")
    return replace(rollout, reward=total, reward_parts=parts)


def verdict_reward(rollout: Rollout) -> Mapping[str, float]:
    """1 for a rollout that all its verifiers passed, 0 for any other (SEAL, Eq. 3)."""
    return {"passed": float(rollout.passed)}
