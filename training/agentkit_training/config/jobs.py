"""What ``agentkit-train sft`` and ``agentkit-train coevolve`` are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from agentkit.episodes import RefineMode
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.models.base import ModelSettings
from agentkit.models.prompt_format import PromptFormat
from agentkit_training.coevolution.settings import CoevolutionSettings, ablation
from agentkit_training.engines.base import Engine, OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective, logits_with_room
from agentkit_training.engines.trl.vllm import VllmSettings, VllmWriter
from agentkit_training.errors import check_least
from agentkit_training.fine_tuning.examples import Prompting
from agentkit_training.fine_tuning.training import SftSettings
from agentkit_training.interface import LearningInterface
from agentkit_training.policy.loading import Precision, check_device, load_policy
from agentkit_training.policy.lora import LoraSettings, load_adapter, with_lora
from agentkit_training.policy.policy import Policy, tiny_policy
from agentkit_training.policy.reference import reference_policy
from agentkit_training.rewards import Reward, tooldna_reward, verdict_reward
from agentkit_training.rollout.policy_model import PolicyModel, ToolsIn, Writer
from agentkit_training.runs import TrackerName
from agentkit_training.tasks.loading import TaskSpec
from agentkit_training.toolace.records import ToolAceSection

LEAST_FOR_BLOCKS = 160
"""Tokens that an answer needs to hold a call and a ``<description>`` block (ToolDNA)."""

RewardName: TypeAlias = Literal["verdict", "R1", "R2", "R3"]

_ALONE: dict[str, tuple[str, ...]] = {
    "lean": ("max_logits", "iterations", "mini_batches"),
    "trl": ("parts", "vllm"),
}
"""What one engine does and the other does not."""

_SHARED = ("optimizer", "objective", "scaled", "max_tokens", "gradient_checkpointing")
"""What both engines are told."""

_COUNTS = ("max_tokens", "iterations", "mini_batches", "parts")
"""Numbers of an engine of which there is at least one."""


@dataclass(frozen=True, kw_only=True)
class PolicySection:
    """Which model learns, and how it is asked.

    Attributes:
        weights: A folder, a GGUF file, ``local:NAME``, or ``tiny`` for a random model of tests and
            dry runs.
        precision: Of the weights; ``auto`` is bf16 where the device multiplies it, else fp32.
        device: Where they are.
        chat_template: How conversations are written, where the tokenizer does not say.
        lora: Adapters to train; None trains every weight.
        adapter: Adapters of an earlier run to go on with, a folder.
        tools_in: Whether tools stand in the prompt, as the runtime's local model has them, or in
            the tokenizer's own template.
        format: How tools and calls are written in the prompt.
        constrained: Whether the prompt is that of constrained decoding.
        answer_tokens: Longest answer.
        batch_size: Most answers written at the same time.

    Raises:
        UsageError: A number is out of range, or adapters are made and gone on with at once.
    """

    weights: str
    precision: Precision = "auto"
    device: str = "cpu"
    chat_template: str | None = None
    lora: LoraSettings | None = None
    adapter: str = ""
    tools_in: ToolsIn = "prompt"
    format: PromptFormat = "json"
    constrained: bool = True
    answer_tokens: int = 128
    batch_size: int = 64

    def __post_init__(self) -> None:
        check_least(self, "answer_tokens", "batch_size", section="policy")
        if self.lora is not None and self.adapter:
            raise UsageError(
                "the policy has both lora and adapter; lora makes new adapters, adapter goes on "
                "with those of an earlier run: give one"
            )

    def load(self, *, seed: int = 0) -> Policy:
        """The policy, with its adapters.

        Args:
            seed: Of the weights of ``tiny``.

        Raises:
            PolicyError: The weights can not be used.
        """
        policy = self._base(seed)
        if self.adapter:
            return load_adapter(policy, self.adapter)
        return policy if self.lora is None else with_lora(policy, self.lora)

    def model(self, policy: Policy, *, writer: Writer | None = None) -> PolicyModel:
        """The policy as a chat model of the runtime's agent.

        Args:
            policy: What ``load`` gave.
            writer: Writes in its place; None for the policy itself.
        """
        return self.prompting().model(
            policy, writer=writer, max_tokens=self.answer_tokens, batch_size=self.batch_size
        )

    def prompting(self) -> Prompting:
        """How examples are written: as rollouts are."""
        return Prompting(format=self.format, constrained=self.constrained, tools_in=self.tools_in)

    def _base(self, seed: int) -> Policy:
        if self.weights == "tiny":
            check_device(self.device)
            tiny = tiny_policy(seed=seed)
            return replace(tiny, model=tiny.model.to(self.device))
        return load_policy(
            self.weights,
            precision=self.precision,
            device=self.device,
            chat_template=self.chat_template,
        )


@dataclass(frozen=True, kw_only=True)
class EngineSection:
    """How the policy learns from rollouts.

    Attributes:
        name: ``lean`` for one process, ``trl`` for what TRL and torchrun bring.
        optimizer: How the weights follow the gradient.
        objective: What an update makes larger. A KL coefficient takes the policy as it begins for
            the reference.
        scaled: Whether advantages are divided by the group's deviation.
        max_tokens: Most tokens of an update that are read at once.
        max_logits: For ``lean``: most numbers of logits at once; memory grows with it. None takes
            what the device has room for, see ``logits_with_room``.
        iterations: For ``lean``: how often a step's rollouts are gone through.
        mini_batches: For ``lean``: updates in each of these.
        gradient_checkpointing: Whether activations are computed again, to save memory.
        parts: For ``trl``: in how many parts a process reads its rows, one after another, to save
            memory.
        vllm: For ``trl``: how vLLM writes the rollouts in the policy's place; None lets the policy
            write them. A run that goes on from a checkpoint learns from other rollouts then.

    Raises:
        UsageError: A number is out of range, or an engine is told what the other alone does.
    """

    name: Literal["lean", "trl"] = "lean"
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    objective: Objective = field(default_factory=Objective)
    scaled: bool = True
    max_tokens: int = 4096
    max_logits: int | None = None
    iterations: int = 1
    mini_batches: int = 1
    gradient_checkpointing: bool = False
    parts: int = 1
    vllm: VllmSettings | None = None

    def __post_init__(self) -> None:
        check_least(self, *_COUNTS, section="engine")
        if self.max_logits is not None:
            check_least(self, "max_logits", section="engine")
        other = "trl" if self.name == "lean" else "lean"
        defaults = type(self)
        if asked := [one for one in _ALONE[other] if getattr(self, one) != getattr(defaults, one)]:
            raise UsageError(
                f"engine.name is {self.name}, which has no {' and no '.join(asked)}; set "
                f"engine.name: {other}, or leave it out"
            )

    def writer(self, policy: Policy) -> VllmWriter | None:
        """What writes in the policy's place, for both its model and the engine; None for itself."""
        return None if self.vllm is None else VllmWriter(policy=policy, settings=self.vllm)

    def make(self, policy: Policy, *, seed: int = 0, writer: VllmWriter | None = None) -> Engine:
        """The engine.

        Args:
            policy: What learns; the reference is made of it where the objective wants one.
            seed: Of what an update draws.
            writer: What ``writer`` gave; the policy's model has the same one.
        """
        given: dict[str, Any] = {name: getattr(self, name) for name in _SHARED}
        given["reference"] = reference_policy(policy) if self.objective.kl_coefficient else None
        if self.name == "lean":
            return LeanEngine(
                **given,
                seed=seed,
                max_logits=self.max_logits or logits_with_room(policy.device),
                iterations=self.iterations,
                mini_batches=self.mini_batches,
            )
        from agentkit_training.engines.trl.engine import TrlEngine

        return TrlEngine(**given, seed=seed, parts=self.parts, writer=writer)


@dataclass(frozen=True, kw_only=True)
class WeightingSection:
    """How advantages are weighted by diagnosis (SEAL, Eq. 10 to 12).

    Attributes:
        normalised: Whether the weights are scaled to hold the mean size of the advantages.
    """

    normalised: bool = True


@dataclass(frozen=True, kw_only=True)
class AskingSection:
    """How tasks are asked, in training and in evaluation.

    Attributes:
        max_steps: Model turns for each thing the user says; None as the tasks have it.
        tool_choice: Whether the policy may or must call a tool.
        instructions: A system message before the task's own.
        refine: How proposed calls are refined, such as ``adaptive`` (ToolACE-R, Algorithm 1).

    Raises:
        UsageError: There is no turn.
    """

    max_steps: int | None = None
    tool_choice: Literal["auto", "required"] = "auto"
    instructions: str = ""
    refine: RefineMode = "none"

    def __post_init__(self) -> None:
        if self.max_steps is not None and self.max_steps < 1:
            raise UsageError(
                f"asking.max_steps is {self.max_steps}; give 1 or more, or null to have it as the "
                "tasks say"
            )

    def settings(self) -> EvaluationSettings:
        """The settings of an evaluation."""
        return EvaluationSettings(
            max_steps=self.max_steps,
            tool_choice=self.tool_choice,
            instructions=self.instructions,
            refine=self.refine,
        )


@dataclass(frozen=True, kw_only=True)
class TrackingSection:
    """Where the figures of fine-tuning go; ``sft.save_every`` says when a checkpoint is kept.

    Attributes:
        trackers: Where figures go beside the log.
    """

    trackers: tuple[TrackerName, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WatchSection:
    """What is measured and kept while a run goes on.

    Attributes:
        evaluate_every: Steps between looks at the validation tasks; 0 looks at the end alone.
        checkpoint_every: Steps between checkpoints.
        trackers: Where figures go beside the log.
    """

    evaluate_every: int = 0
    checkpoint_every: int = 10
    trackers: tuple[TrackerName, ...] = ()

    def __post_init__(self) -> None:
        check_least(self, "evaluate_every", least=0, section="watch")
        check_least(self, "checkpoint_every", section="watch")


def reward_named(name: RewardName, benchmark: Benchmark, *, strict_format: bool = False) -> Reward:
    """The reward of a configuration.

    Args:
        name: ``verdict`` for 1 or 0 as the verifiers say (SEAL, Eq. 3), or one of ToolDNA's.
        benchmark: Whose tasks are rewarded.
        strict_format: See ``tooldna_reward``.
    """
    if name == "verdict":
        return verdict_reward
    return tooldna_reward(benchmark, name, strict_format=strict_format)


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


PAPER_UPDATES: Mapping[str, tuple[float, int]] = MappingProxyType(
    {"vanilla": (0.001, 4), "tooldna": (0.001, 4), "seal": (0.001, 4), "cocoda": (0.01, 1)}
)
"""KL coefficient and mini-batches of a step, by the paper that a named configuration is of: ToolDNA
(appendix on training), SEAL (Table 4; vanilla runs have the same) and CoCoDA (Table 4, which names
no mini-batches). All clip at 0.2."""


def named_run(name: str, config: CoevolveConfig) -> CoevolveConfig:
    """The run with the switches of a named configuration of a paper.

    KL divergence, clipping and mini-batches are the paper's too, unless the run has its own. Sizes,
    rates and schedules are the run's. Under ``trl`` a step is one update; the papers' four
    mini-batches are for ``lean``.

    Args:
        name: One of ``ABLATIONS``.
        config: The run.

    Raises:
        UsageError: There is no such configuration, or the run lacks what it needs.
    """
    coevolution, engine = ablation(name, config.coevolution), config.engine
    if updates := PAPER_UPDATES.get(name.partition("-")[0]):
        kl, batches = updates
        objective = replace(engine.objective, kl_coefficient=engine.objective.kl_coefficient or kl)
        batches = min(batches, coevolution.tasks_per_step) if engine.name == "lean" else 1
        if engine.mini_batches == 1 and batches > 1:
            engine = replace(engine, mini_batches=batches)
            objective = replace(objective, old_logprobs="sampled")
        engine = replace(engine, objective=objective)
    return replace(config, coevolution=coevolution, engine=engine)


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
        warm_up: Training tasks that the policy tries first, where ``coevolution.composites`` is on
            and no library is given: from what goes well, and from known solutions, composites are
            distilled (CoCoDA's stage 1, with 512 of them). With 0 solutions alone are looked at.
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
    interface: LearningInterface = LearningInterface(  # noqa: RUF009 - immutable
        cues="by_profile", feedback="by_profile", guidelines="by_profile"
    )
    engine: EngineSection = field(default_factory=EngineSection)
    warm_up: int = 512
    cold_start: SftSettings | None = None
    frozen: bool = False
    rollout_model: str = ""
    feedback_model: str = ""
    teacher: str = ""
    library: str = ""
    watch: WatchSection = field(default_factory=WatchSection)

    def __post_init__(self) -> None:
        check_least(self, "warm_up", least=0)
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
        if self.coevolution.feedback and not self.feedback_model:
            raise UsageError(
                "coevolution.feedback is on, and there is no model to ask; give one, such as "
                "feedback_model: openai:gpt-4o-mini, or switch it off (--ablation "
                "tooldna-no-feedback)"
            )
        if self.coevolution.evolution and self.policy.answer_tokens < LEAST_FOR_BLOCKS:
            raise UsageError(
                f"coevolution.evolution asks the policy for blocks, and policy.answer_tokens is "
                f"{self.policy.answer_tokens}: a call with the shortest block takes some 90, and "
                f"one that is cut off counts as malformed; give {LEAST_FOR_BLOCKS} or more"
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
        asked = replace(self.asking.settings(), tools=self.coevolution.tools)
        if not self.rollout_model:
            return asked
        return replace(asked, settings=ModelSettings(max_tokens=self.policy.answer_tokens))

    @property
    def asked_models(self) -> Mapping[str, str]:
        """The names of the models that the run asks beside the policy, by their keys."""
        wanted = self.coevolution
        asked = {"feedback_model": wanted.feedback, "teacher": wanted.composites}
        names = {key: str(getattr(self, key)) for key, is_on in asked.items() if is_on}
        return {key: name for key, name in names.items() if name}

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
