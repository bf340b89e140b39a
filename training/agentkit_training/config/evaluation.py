"""What ``agentkit-train evaluate`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.config.sections import AskingSection, PolicySection
from agentkit_training.tasks.loading import TaskSpec


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The sections of a training configuration that an evaluation needs.

    Attributes:
        policy: Which model answers.
        tasks: What is asked.
        asking: How.
        coevolution: Its ``tools`` say which tools are offered.
        library: An artifact whose texts the tools have; empty for the tasks' own.
    """

    policy: PolicySection
    tasks: TaskSpec
    asking: AskingSection = field(default_factory=AskingSection)
    coevolution: CoevolutionSettings = field(default_factory=CoevolutionSettings)
    library: str = ""
