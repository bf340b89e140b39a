"""``VerlSettings``: what a worker of verl must know to make rollouts as we do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agentkit.models.prompt_format import PromptFormat
from agentkit_training.config.sections import AskingSection, RewardName
from agentkit_training.rollout.policy_model import ToolsIn
from agentkit_training.tasks.loading import TaskSpec

AGENT_NAME = "agentkit"
"""What rows and the file of agent loops call our loop."""

TRAINER_NAME = "agentkit_sync"
"""What verl's configuration calls our trainer."""

WeightsName: TypeAlias = Literal["none", "fixed", "normalised"]


@dataclass(frozen=True, kw_only=True)
class VerlSettings:
    """How rollouts are made. Written as YAML beside the rows, and read by every worker.

    Attributes:
        tasks: The tasks; each worker loads the same ones.
        library: URL of the store that holds the library, which every node must reach; empty for
            the tasks' own texts.
        reward: What a rollout is worth.
        asking: How tasks are asked.
        tools_in: Whether tools stand in the prompt or in the tokenizer's own template.
        format: How tools and calls are written in the prompt.
        constrained: Whether the prompt is that of constrained decoding.
        weights: What advantages are multiplied with: ``none``, the ``fixed`` utilities of SEAL, or
            these ``normalised`` to a mean of 1 in each batch.
        keeps_episodes: Whether workers put episodes of training tasks into the store, to be
            learned from.
        answer_tokens: Longest answer of a turn; 0 for what verl leaves for the whole response.
    """

    tasks: TaskSpec
    library: str = ""
    reward: RewardName = "verdict"
    asking: AskingSection = field(default_factory=AskingSection)
    tools_in: ToolsIn = "prompt"
    format: PromptFormat = "json"
    constrained: bool = True
    weights: WeightsName = "none"
    keeps_episodes: bool = False
    answer_tokens: int = 0
