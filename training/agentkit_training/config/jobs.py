"""What ``agentkit-train sft`` and ``agentkit-train coevolve`` are asked for."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.config.reading import keys_of, read_config
from agentkit_training.config.sections import (
    AskingSection,
    EngineSection,
    PolicySection,
    RewardName,
    TrackingSection,
    WatchSection,
    WeightingSection,
)
from agentkit_training.fine_tuning.settings import SftSettings
from agentkit_training.interface import LearningInterface
from agentkit_training.tasks.loading import TaskSpec
from agentkit_training.toolace.settings import ToolAceSection


@dataclass(frozen=True, kw_only=True)
class SftConfig:
    """Fine-tuning on gold answers.

    Attributes:
        policy: Which model learns.
        tasks: What it learns from, and what it is measured on.
        asking: How tasks are asked.
        sft: How to fine-tune.
        toolace: Iterations that select what the policy can learn from; None takes every task.
        watch: Where figures go.
        no_call: What to answer where no call is right; such tasks are left out without it.
        library: An artifact whose texts the tools have; empty for the tasks' own.
        seed: Of weights and samples.
    """

    policy: PolicySection
    tasks: TaskSpec
    asking: AskingSection = field(default_factory=AskingSection)
    sft: SftSettings = field(default_factory=SftSettings)
    toolace: ToolAceSection | None = None
    watch: TrackingSection = field(default_factory=TrackingSection)
    no_call: str = ""
    library: str = ""
    seed: int = 0

    @property
    def asked(self) -> EvaluationSettings:
        """How tasks are asked, in teaching, in rounds and when they are measured."""
        return self.asking.settings()


def _by_profile() -> LearningInterface:
    return LearningInterface(cues="by_profile", feedback="by_profile", guidelines="by_profile")


@dataclass(frozen=True, kw_only=True)
class CoevolveConfig:
    """Reinforcement learning, with or without a library that learns beside the policy.

    Attributes:
        policy: Which model learns.
        tasks: What it tries, and what it is measured on.
        asking: How tasks are asked.
        reward: What a rollout is worth.
        coevolution: What learns beside the policy; all switches off is plain GRPO.
        weighting: How advantages are weighted, where ``coevolution.weighting`` is on.
        interface: What training prompts have more, where ``coevolution.interface`` is on: each part
            by the failure profile, as SEAL has it, where nothing else is said.
        engine: How the policy learns.
        cold_start: Fine-tuning before it (CoCoDA's stage 2); None leaves it out.
        frozen: Whether the policy stays as it is and only the library learns.
        rollout_model: What tries the tasks in the place of a frozen policy, such as
            ``local:smollm2-135m``, whose calls the runtime's grammar makes readable; empty for the
            policy.
        feedback_model: The model of the feedback path, such as ``openai:gpt-4o-mini``.
        teacher: A model that writes composites from what went well (CoCoDA), beside those that are
            mined, where ``coevolution.composites`` is on; empty for mining alone.
        library: An artifact to begin with; empty for the tasks' own tools.
        watch: What is measured and kept.
    """

    policy: PolicySection
    tasks: TaskSpec
    asking: AskingSection = field(default_factory=AskingSection)
    reward: RewardName = "verdict"
    coevolution: CoevolutionSettings = field(default_factory=CoevolutionSettings)
    weighting: WeightingSection = field(default_factory=WeightingSection)
    interface: LearningInterface = field(default_factory=_by_profile)
    engine: EngineSection = field(default_factory=EngineSection)
    cold_start: SftSettings | None = None
    frozen: bool = False
    rollout_model: str = ""
    feedback_model: str = ""
    teacher: str = ""
    library: str = ""
    watch: WatchSection = field(default_factory=WatchSection)

    def __post_init__(self) -> None:
        if self.rollout_model and (not self.frozen or self.cold_start is not None):
            raise UsageError(
                f"rollout_model is {self.rollout_model!r}, whose tokens nothing can be trained on; "
                "give frozen: true and no cold_start, or leave rollout_model out"
            )
        if self.teacher and not self.coevolution.composites:
            raise UsageError(
                f"teacher is {self.teacher!r}, which writes composites, and coevolution.composites "
                "is off; switch it on, or leave teacher out"
            )
        if self.coevolution.interface and not self.interface.can_show:
            raise UsageError(
                "coevolution.interface is on, and each part of the section interface is off; give "
                "cues, feedback or guidelines by_profile or always, or switch it off"
            )
        if not self.frozen and self.coevolution.group_size == 1 and self.coevolution.steps != 0:
            raise UsageError(
                "coevolution.group_size is 1, and GRPO learns from how attempts at the same task "
                "differ; give 2 or more, or frozen: true where the library alone learns"
            )
        sampled, trained = self.coevolution.temperature, self.engine.objective.temperature
        if not self.frozen and sampled != trained:
            raise UsageError(
                f"coevolution.temperature is {sampled:g} and engine.objective.temperature "
                f"{trained:g}; give both the same, or probabilities are learned that nothing was "
                "sampled by"
            )

    @property
    def asked(self) -> EvaluationSettings:
        """How tasks are asked, in a cold start, in steps and when they are measured."""
        return replace(self.asking.settings(), tools=self.coevolution.tools)

    @property
    def has_own_weights(self) -> bool:
        """Whether the policy ends as another one than its base weights: trained, or adapted."""
        return not self.frozen or self.cold_start is not None or bool(self.policy.adapter)


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


T = TypeVar("T", SftConfig, CoevolveConfig)


def kind_of_keys(keys: Iterable[str]) -> type[SftConfig | CoevolveConfig] | None:
    """The kind of run that has these sections; None where none of them tells.

    Example:
        >>> kind_of_keys(["policy", "tasks", "sft"]).__name__
        'SftConfig'
    """
    given = set(keys)
    if given & _names(CoevolveConfig) - _names(SftConfig):
        return CoevolveConfig
    return SftConfig if given & _names(SftConfig) - _names(CoevolveConfig) else None


def read_run(path: str | os.PathLike[str], kind: type[T], *, changes: Collection[str] = ()) -> T:
    """As ``read_config``; where the file describes the other kind of run, that is what is said.

    Args:
        path: The file.
        kind: What is to be run.
        changes: Changes of single keys.

    Raises:
        UsageError: The file can not be used.
    """
    found = kind_of_keys(keys_of(path, changes=changes))
    if found not in {kind, None}:
        other = "sft" if found is SftConfig else "grpo or coevolve"
        raise UsageError(
            f"{path} is a configuration of another kind of run; use agentkit-train {other}"
        )
    return read_config(path, kind, changes=changes)


def _names(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}
