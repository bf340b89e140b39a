"""ToolDNA's gates for those who go by rewards: r = 1 exactly, or r < 1 (Algorithm 1).

In the paper line 8 sends a rollout with r = 1 to the evolution path and line 15 any other to the
feedback path. The training loop does not ask here: what its library learns from is decided on the
verdict of each episode (``agentkit.evolution.proposers.streams``), which holds for every reward
alike. These are for a caller's own loop, or for counting, where a reward is to decide as in the
paper. They look at the reward for the result alone: credit for composites "acts only on the
planner" (CoCoDA, section 3.3).
"""

from __future__ import annotations

from agentkit.evolution.proposers.streams import (
    is_imperfect as is_imperfect_episode,
    is_perfect as is_perfect_episode,
)
from agentkit_training.rewards.composites import SAVED_CALLS
from agentkit_training.rollout.samples import Rollout


def result_reward(rollout: Rollout) -> float:
    """The reward without the credit for composites: ToolDNA's r, CoCoDA's R_res."""
    return sum(value for name, value in rollout.reward_parts.items() if name != SAVED_CALLS)


def is_perfect(rollout: Rollout) -> bool:
    """Whether a rollout has r = 1, for which ToolDNA takes the evolution path (line 8).

    Its reward for the result is 1 exactly, everything passed, and each judged episode is perfect
    for ``agentkit.evolution`` too: a call that was refused and mended keeps it out. By a reward of
    a user's own a rollout can be perfect only if the best it gives is 1; the training loop goes by
    verdicts, and knows no such bound.
    """
    if rollout.fault or not rollout.passed or result_reward(rollout) != 1:
        return False
    return all(is_perfect_episode(one) for one in rollout.episodes if one.verdict is not None)


def is_imperfect(rollout: Rollout) -> bool:
    """Whether a rollout is judged and not perfect: ToolDNA's feedback path (line 15).

    One that nobody judged, or with a fault, is neither perfect nor imperfect; any other is one of
    the two.
    """
    judged = any(is_perfect_episode(one) or is_imperfect_episode(one) for one in rollout.episodes)
    return judged and not rollout.fault and not is_perfect(rollout)
