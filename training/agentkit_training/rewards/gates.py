"""Which rollouts the library learns from: r = 1 exactly, or r < 1 (ToolDNA, Algorithm 1).

Line 8 sends perfect rollouts to the evolution path and line 15 all others to the feedback path. The
library gets to see the reward for the result alone: credit for composites "acts only on the
planner" (CoCoDA, section 3.3).
"""

from __future__ import annotations

from agentkit.evolution.proposals import perfection
from agentkit_training.rewards.composites import SAVED_CALLS
from agentkit_training.rollout.samples import Rollout


def result_reward(rollout: Rollout) -> float:
    """The reward without the credit for composites: ToolDNA's r, CoCoDA's R_res."""
    return sum(value for name, value in rollout.reward_parts.items() if name != SAVED_CALLS)


def is_perfect(rollout: Rollout) -> bool:
    """Whether a rollout has r = 1, so that the evolution path may learn from it.

    Its reward for the result is 1 exactly, everything passed, and each judged episode is perfect
    for ``agentkit.evolution`` too: a call that was refused and mended keeps it out. A reward of a
    user's own drives evolution only if the best it gives is 1.
    """
    if rollout.fault or not rollout.passed or result_reward(rollout) != 1:
        return False
    return all(perfection.is_perfect(one) for one in rollout.episodes if one.verdict is not None)


def is_imperfect(rollout: Rollout) -> bool:
    """Whether a rollout has r < 1, so that the feedback path may learn from it.

    One that nobody judged, or with a fault, is neither perfect nor imperfect; any other is one of
    the two.
    """
    judged = any(
        perfection.is_perfect(one) or perfection.is_imperfect(one) for one in rollout.episodes
    )
    return judged and not rollout.fault and not is_perfect(rollout)
