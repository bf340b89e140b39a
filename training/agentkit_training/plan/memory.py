"""How much memory a run takes on each device, and how many tokens a step reads and writes.

Closed forms, good to a quarter or so; activations depend on the kernels most. The terms:

* weights: parameters times bytes of the precision; 1/N on each of N devices when sharded. Where a
  whole policy writes the rollouts beside the shares that are trained, both.
* gradients and optimiser: AdamW keeps two numbers for each trained parameter, of the parameter's
  type. Trained in fp32, as adapters are over any weights, that is 4 + 8 bytes; in bf16 alone 2 + 4.
  All training of ours keeps fp32 master weights over whole bf16 ones. State and gradient are theirs
  then: 4 + 8, and 4 for themselves. The gradient has 2 until the step is taken, when activations
  are gone, so that this is a little more than there is at once.
* activations: kept for the backward pass, about 34 bytes x hidden for each token and layer in
  16-bit (Korthikanti et al., 2022, section 4, without attention scores), more for wide
  feed-forward layers; one hidden state for each layer with gradient checkpointing.
* logits: tokens that bear loss x vocabulary x 4 bytes, three times over (scores, their logarithms
  and gradient), for as many rows as are read at once.
  An engine that bounds them keeps no more than that at once.
* cache: keys and values of every token of every rollout that is written at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agentkit_training.plan.shape import ModelShape
from agentkit_training.ranges import check_least

Sharding: TypeAlias = Literal["none", "zero2", "zero3"]
"""What devices share: nothing; optimiser and gradients (ZeRO-2); weights as well (ZeRO-3, FSDP)."""

GIB = 1 << 30
_LOGIT_COPIES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """What a step of training does.

    Attributes:
        tasks: Tasks tried in a step, over all devices.
        group_size: Rollouts of each task (G).
        prompt_tokens: Tokens of a prompt.
        completion_tokens: Longest completion, tool results included.
        packed: Whether a group's prompt is read once (the lean engine) or in every row.
        rows_at_once: Rollouts that one device reads at once in the update.
        checkpointing: Whether activations are computed again in the backward pass.
        most_written: Rollouts that one device writes at once; None for all of its share.
        most_logits: Numbers of logits that are held at once; None for those of all rows.
        most_tokens: Longest text that is read; None for as long as prompt and completion are.
        is_read: Whether a step reads texts that are there, as fine-tuning does, instead of rollouts
            that it writes; ``most_written`` is what is written to measure then, at once.
    """

    tasks: int = 8
    group_size: int = 8
    prompt_tokens: int = 1024
    completion_tokens: int = 256
    packed: bool = True
    rows_at_once: int = 8
    checkpointing: bool = False
    most_written: int | None = None
    most_logits: int | None = None
    most_tokens: int | None = None
    is_read: bool = False

    def __post_init__(self) -> None:
        check_least(self, "tasks", "group_size", "rows_at_once")
        check_least(self, "prompt_tokens", "completion_tokens")

    @property
    def rollouts(self) -> int:
        """Rollouts of a step."""
        return self.tasks * self.group_size

    @property
    def written_tokens(self) -> int:
        """Most tokens that a step writes."""
        return 0 if self.is_read else self.rollouts * self.completion_tokens

    @property
    def read_tokens(self) -> int:
        """Most tokens that the update of a step reads."""
        return self.read_by(self.rollouts, groups=self.tasks)

    def read_by(self, rows: int, *, groups: int = 1) -> int:
        """Most tokens of so many rows of one group, or of more.

        Args:
            rows: How many.
            groups: Of how many prompts they are, where each prompt is read once.
        """
        if self.packed:
            return groups * self.prompt_tokens + rows * self.completion_tokens
        length = self.prompt_tokens + self.completion_tokens
        return rows * (length if self.most_tokens is None else min(length, self.most_tokens))

    def written_at_once(self, devices: int) -> int:
        """Rollouts that one of so many devices writes at the same time."""
        share = -(-self.rollouts // devices)
        if self.is_read:
            return self.most_written or 0
        return share if self.most_written is None else min(share, self.most_written)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """How the model is held.

    Attributes:
        precision: Of the weights that compute.
        lora_rank: Rank of adapters; 0 trains every weight.
        has_master_weights: Whether trained weights are kept in fp32 beside those that compute;
            adapters are in fp32 themselves, and have none.
        has_reference: Whether a frozen copy of the weights is kept for the KL divergence; adapters
            need none, switched off they are the reference.
        devices: How many.
        sharding: What they share.
        device_gib: Memory of each; None when it is not known.
        writes_whole: Whether each device holds the whole weights beside its share, to write
            rollouts with; without sharding it holds them anyway.
        writer_gib: Memory of each device that another program takes, which writes the rollouts;
            keys and values are there then.
    """

    precision: Literal["bf16", "fp32"] = "bf16"
    lora_rank: int = 0
    has_master_weights: bool = False
    has_reference: bool = False
    devices: int = 1
    sharding: Sharding = "none"
    device_gib: float | None = None
    writes_whole: bool = False
    writer_gib: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryPlan:
    """Bytes on each device, by what they hold.

    Attributes:
        weights: The policy, adapters included, what writes in its place, and the reference.
        gradients: Of what is trained.
        optimizer: AdamW's state and master weights.
        activations: Kept for the backward pass of the rows that are read at once.
        logits: Of their completion tokens.
        cache: Keys and values while rollouts are written; it is gone when the update begins.
        writer: Of another program, which writes the rollouts.
        parameters: Weights of the model, adapters left out.
        trained: Weights that change.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    cache: int
    writer: int
    parameters: int
    trained: int

    @property
    def update(self) -> int:
        """While weights are updated."""
        held = self.weights + self.gradients + self.optimizer + self.writer
        return held + self.activations + self.logits

    @property
    def generation(self) -> int:
        """While rollouts are written."""
        return self.weights + self.optimizer + self.cache + self.writer

    @property
    def peak(self) -> int:
        """At its highest."""
        return max(self.update, self.generation)


def plan_memory(shape: ModelShape, workload: Workload, setup: Setup) -> MemoryPlan:
    """What one device holds.

    Example:
        >>> from agentkit_training.plan.shape import SHAPES
        >>> seven = SHAPES["qwen2.5-7b"]
        >>> whole = plan_memory(seven, Workload(), Setup(precision="bf16"))
        >>> shared = plan_memory(seven, Workload(), Setup(devices=8, sharding="zero3"))
        >>> whole.weights // shared.weights
        8
    """
    size = {"bf16": 2, "fp32": 4}[setup.precision]
    adapters = shape.lora_parameters(setup.lora_rank) if setup.lora_rank else 0
    trained = adapters or shape.parameters
    copies = 2 if setup.has_reference and not adapters else 1
    held = shape.parameters * copies + adapters
    shared = setup.devices if setup.sharding != "none" else 1
    weights_shared = setup.devices if setup.sharding == "zero3" else 1
    masters = 4 * trained if setup.has_master_weights and not adapters else 0
    stepped = 4 if masters or adapters else size
    whole = size * held if setup.writes_whole and weights_shared > 1 else 0
    return MemoryPlan(
        weights=size * (shape.parameters + adapters if whole else held) // weights_shared + whole,
        gradients=stepped * trained // shared,
        optimizer=(2 * stepped * trained + masters) // shared,
        activations=_activations(shape, workload, size),
        logits=_logits(shape, workload) * 4 * _LOGIT_COPIES,
        cache=0 if setup.writer_gib else _cache(shape, workload, setup, size),
        writer=round(setup.writer_gib * GIB),
        parameters=shape.parameters,
        trained=trained,
    )


def smaller(workload: Workload) -> Workload:
    """The same update in less memory: fewer rows at once, then activations computed again."""
    if workload.rows_at_once > 1:
        return replace(workload, rows_at_once=max(1, workload.rows_at_once // 2))
    return replace(workload, checkpointing=True)


def fewer_written(workload: Workload, *, devices: int) -> Workload:
    """The same rollouts in less memory: half as many are written at the same time."""
    return replace(workload, most_written=max(1, workload.written_at_once(devices) // 2))


def _rows(workload: Workload) -> int:
    return min(workload.rows_at_once, workload.rollouts)


def _logits(shape: ModelShape, workload: Workload) -> int:
    borne = min(workload.completion_tokens, workload.most_tokens or workload.completion_tokens)
    all_rows = _rows(workload) * borne * shape.vocabulary
    return all_rows if workload.most_logits is None else min(all_rows, workload.most_logits)


def _activations(shape: ModelShape, workload: Workload, size: int) -> int:
    tokens = workload.read_by(_rows(workload))
    if workload.checkpointing:
        return tokens * size * shape.hidden * (shape.layers + 17)
    queries = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    numbers = 4 * shape.hidden + 2 * queries + 4 * shape.intermediate
    return tokens * size * shape.layers * numbers


def _cache(shape: ModelShape, workload: Workload, setup: Setup, size: int) -> int:
    length = workload.prompt_tokens + workload.completion_tokens
    return workload.written_at_once(setup.devices) * length * shape.cache_numbers_per_token * size
