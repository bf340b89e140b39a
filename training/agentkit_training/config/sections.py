"""The sections that configurations have in common, and what they make."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.models.prompt_format import PromptFormat
from agentkit_training.engines.base import Engine, OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.vllm import VllmSettings, VllmWriter
from agentkit_training.fine_tuning.examples import Prompting
from agentkit_training.policy.loading import Precision, check_device, load_policy
from agentkit_training.policy.lora import LoraSettings, load_adapter, with_lora
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.reference import reference_policy
from agentkit_training.policy.tiny import tiny_policy
from agentkit_training.ranges import check_least
from agentkit_training.rewards import Reward, tooldna_reward, verdict_reward
from agentkit_training.rollout.policy_model import PolicyModel, ToolsIn
from agentkit_training.rollout.templated import Writer
from agentkit_training.runs import TrackerName
from agentkit_training.weighting import DynamicWeighting, FixedWeighting, MeanNormalised, Weighting

RewardName: TypeAlias = Literal["verdict", "R1", "R2", "R3"]

_ALONE: dict[str, tuple[str, ...]] = {
    "lean": ("max_logits", "iterations", "mini_batches"),
    "trl": ("parts", "vllm"),
}
"""What one engine does and the other does not."""

_COUNTS = ("max_tokens", "max_logits", "iterations", "mini_batches", "parts")
"""Numbers of an engine of which there is at least one."""


@dataclass(frozen=True, kw_only=True)
class PolicySection:
    """Which model learns, and how it is asked.

    Attributes:
        weights: A folder, a GGUF file, ``local:NAME``, or ``tiny`` for a random model of tests and
            dry runs.
        precision: Of the weights.
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
    precision: Precision = "bf16"
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
        max_logits: For ``lean``: most numbers of logits at once; memory grows with it.
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
    max_logits: int = 1 << 24
    iterations: int = 1
    mini_batches: int = 1
    gradient_checkpointing: bool = False
    parts: int = 1
    vllm: VllmSettings | None = None

    def __post_init__(self) -> None:
        check_least(self, *_COUNTS, section="engine")
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
        reference = reference_policy(policy) if self.objective.kl_coefficient else None
        if self.name == "lean":
            return LeanEngine(
                optimizer=self.optimizer,
                objective=self.objective,
                scaled=self.scaled,
                reference=reference,
                max_tokens=self.max_tokens,
                max_logits=self.max_logits,
                iterations=self.iterations,
                mini_batches=self.mini_batches,
                gradient_checkpointing=self.gradient_checkpointing,
                seed=seed,
            )
        from agentkit_training.engines.trl.engine import TrlEngine

        return TrlEngine(
            optimizer=self.optimizer,
            objective=self.objective,
            scaled=self.scaled,
            reference=reference,
            max_tokens=self.max_tokens,
            parts=self.parts,
            gradient_checkpointing=self.gradient_checkpointing,
            seed=seed,
            writer=writer,
        )


@dataclass(frozen=True, kw_only=True)
class WeightingSection:
    """How advantages are weighted by diagnosis (SEAL, Eq. 10 to 12).

    Attributes:
        kind: ``fixed`` utilities of the paper, or ``dynamic`` ones of the released configuration.
        normalised: Whether the mean weight of a batch is 1; otherwise it raises the learning rate.
    """

    kind: Literal["fixed", "dynamic"] = "fixed"
    normalised: bool = True

    def make(self) -> Weighting:
        """The weighting."""
        if self.kind == "fixed":
            fixed = FixedWeighting()
            return MeanNormalised[FixedWeighting](inner=fixed) if self.normalised else fixed
        dynamic = DynamicWeighting()
        return MeanNormalised[DynamicWeighting](inner=dynamic) if self.normalised else dynamic


@dataclass(frozen=True, kw_only=True)
class AskingSection:
    """How tasks are asked, in training and in evaluation.

    Attributes:
        max_steps: Model turns for each thing the user says; None as the tasks have it.
        tool_choice: Whether the policy may or must call a tool.
        instructions: A system message before the task's own.

    Raises:
        UsageError: There is no turn.
    """

    max_steps: int | None = None
    tool_choice: Literal["auto", "required"] = "auto"
    instructions: str = ""

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


def reward_named(name: RewardName, benchmark: Benchmark) -> Reward:
    """The reward of a configuration.

    Args:
        name: ``verdict`` for 1 or 0 as the verifiers say (SEAL, Eq. 3), or one of ToolDNA's.
        benchmark: Whose tasks are rewarded.
    """
    return verdict_reward if name == "verdict" else tooldna_reward(benchmark, name)
