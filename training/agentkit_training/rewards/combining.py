"""``RewardSum``: several rewards as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentkit.errors import UsageError
from agentkit_training.rewards.reward import Reward, Worth, worth_of
from agentkit_training.rollout.samples import Rollout


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
