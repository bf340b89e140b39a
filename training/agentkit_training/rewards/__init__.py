"""What a rollout is worth: verdicts, ToolDNA's rewards, CoCoDA's saved calls, and their sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit_training.rewards.combining import RewardSum
    from agentkit_training.rewards.composites import saved_calls, saved_calls_reward
    from agentkit_training.rewards.formats import FormatCheck, format_asked_for, is_readable
    from agentkit_training.rewards.gates import is_imperfect, is_perfect, result_reward
    from agentkit_training.rewards.reward import Reward, Worth, rewarded, verdict_reward
    from agentkit_training.rewards.tooldna import ToolDnaDesign, answer_metrics, tooldna_reward

__all__ = [
    "FormatCheck",
    "Reward",
    "RewardSum",
    "ToolDnaDesign",
    "Worth",
    "answer_metrics",
    "format_asked_for",
    "is_imperfect",
    "is_perfect",
    "is_readable",
    "result_reward",
    "rewarded",
    "saved_calls",
    "saved_calls_reward",
    "tooldna_reward",
    "verdict_reward",
]

_MODULES = {
    "FormatCheck": "agentkit_training.rewards.formats",
    "Reward": "agentkit_training.rewards.reward",
    "RewardSum": "agentkit_training.rewards.combining",
    "ToolDnaDesign": "agentkit_training.rewards.tooldna",
    "Worth": "agentkit_training.rewards.reward",
    "answer_metrics": "agentkit_training.rewards.tooldna",
    "format_asked_for": "agentkit_training.rewards.formats",
    "is_imperfect": "agentkit_training.rewards.gates",
    "is_perfect": "agentkit_training.rewards.gates",
    "is_readable": "agentkit_training.rewards.formats",
    "result_reward": "agentkit_training.rewards.gates",
    "rewarded": "agentkit_training.rewards.reward",
    "saved_calls": "agentkit_training.rewards.composites",
    "saved_calls_reward": "agentkit_training.rewards.composites",
    "tooldna_reward": "agentkit_training.rewards.tooldna",
    "verdict_reward": "agentkit_training.rewards.reward",
}

__getattr__ = lazy_door(__name__, _MODULES)
