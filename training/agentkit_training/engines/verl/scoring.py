"""``compute_score``: the reward in the form of verl's ``custom_reward_function``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit_training.errors import TrainingError


def compute_score(
    data_source: str,
    solution_str: str,  # noqa: ARG001 - verl's names
    ground_truth: str,  # noqa: ARG001
    extra_info: Mapping[str, Any],
    **more: Any,  # noqa: ARG001
) -> dict[str, float]:
    """What the agent loop found a rollout to be worth.

    A text alone does not tell what a rollout was worth: what its calls did is gone with its world.
    So the loop judges, where the world still is, and verl asks no reward function. This one is for
    reward managers that ask all the same.

    Args:
        data_source: The benchmark.
        solution_str: What was written, as text.
        ground_truth: What the task expects, as JSON.
        extra_info: Of the row, with what the loop has noted in it.
        more: What reward managers hand over beside it.

    Returns:
        The reward as ``score``, and its parts by name.

    Raises:
        TrainingError: Another loop made the rollout, which noted no reward.

    Example:
        >>> noted = {"reward": 1.0, "reward_parts": {"passed": 1.0}}
        >>> compute_score("shop", "3", "{}", noted)
        {'passed': 1.0, 'score': 1.0}
    """
    if "reward" not in extra_info:
        raise TrainingError(
            f"a rollout of {data_source} has no reward: it was not made by AgentkitLoop. Let rows "
            "have the agent_name of the exported file of agent loops"
        )
    parts = {name: float(part) for name, part in extra_info.get("reward_parts", {}).items()}
    return parts | {"score": float(extra_info["reward"])}
