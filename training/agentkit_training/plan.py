"""What a run needs on each device, and how many tokens a step reads and writes; nothing is loaded.

Closed forms, good to a quarter or so; activations depend on the kernels most. The terms:

* weights: parameters times bytes of the precision, once more for a reference. verl keeps 1/N of
  what is trained on each of N devices, and a whole copy that writes.
* gradients and optimiser: AdamW keeps two numbers for each trained parameter. Adapters and the
  masters of bf16 weights are in float32: 4 + 8 bytes, and 4 for masters themselves.
* activations: kept for the backward pass, about 34 bytes x hidden for each token and layer in
  16-bit (Korthikanti et al., 2022, section 4, without attention scores), more for wide
  feed-forward layers; one hidden state for each layer with gradient checkpointing.
* logits: tokens that bear loss x vocabulary x 4 bytes, three times over (scores, their logarithms
  and gradient), for the rows that are read at once.
* cache: keys and values of every token of the rollouts that are written at the same time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.sections import PolicySection, VerlSection
from agentkit_training.fine_tuning.settings import rows_of_trl, share_of
from agentkit_training.policy.saving import CONFIG as ADAPTER_CONFIG
from agentkit_training.tasks.splits import TaskSplits

GIB = 1 << 30
KEPT_FREE = 0.1
"""Share of a device's memory that is left to kernels and fragments."""

_LOGIT_COPIES = 3
_CHARACTERS_OF_A_TOKEN = 8
_TOKENS_AROUND = 100
_LOOKED_AT = 200


class ModelShape(NamedTuple):
    """A decoder-only transformer with gated feed-forward layers, as Llama, Qwen and Gemma are.

    Attributes:
        layers: Transformer blocks.
        hidden: Width of the residual stream.
        intermediate: Width of the feed-forward layers.
        heads: Attention heads.
        kv_heads: Heads of keys and values.
        head_dim: Width of a head.
        vocabulary: Tokens in the vocabulary.
        is_tied: Whether input and output embeddings are one matrix.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    is_tied: bool

    @property
    def parameters(self) -> int:
        """Weights in all; norms and biases, a thousandth of them, are left out.

        Example:
            >>> round(SHAPES["smollm2-135m"].parameters / 1e6)
            134
        """
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        block = attention + 3 * self.hidden * self.intermediate
        return self.vocabulary * self.hidden * (1 if self.is_tied else 2) + self.layers * block

    def lora_parameters(self, rank: int) -> int:
        """Weights of adapters of ``rank`` on every linear layer of every block."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * (self.hidden + queries) + 2 * (self.hidden + keys)
        return self.layers * rank * (attention + 3 * (self.hidden + self.intermediate))


SHAPES: Mapping[str, ModelShape] = MappingProxyType(
    {
        "smollm2-135m": ModelShape(30, 576, 1536, 9, 3, 64, 49_152, True),
        "smollm2-1.7b": ModelShape(24, 2048, 8192, 32, 32, 64, 49_152, True),
        "qwen2.5-0.5b": ModelShape(24, 896, 4864, 14, 2, 64, 151_936, True),
        "qwen2.5-1.5b": ModelShape(28, 1536, 8960, 12, 2, 128, 151_936, True),
        "qwen2.5-3b": ModelShape(36, 2048, 11_008, 16, 2, 128, 151_936, True),
        "qwen2.5-7b": ModelShape(28, 3584, 18_944, 28, 4, 128, 152_064, False),
        "qwen2.5-14b": ModelShape(48, 5120, 13_824, 40, 8, 128, 152_064, False),
        "qwen2.5-32b": ModelShape(64, 5120, 27_648, 40, 8, 128, 152_064, False),
        "llama-3.1-8b": ModelShape(32, 4096, 14_336, 32, 8, 128, 128_256, False),
    }
)
"""Shapes of models that the papers and the configurations of the scaling guide name."""


def known_shape(weights: str) -> ModelShape | None:
    """The shape of the weights that a configuration names, before they are loaded.

    Args:
        weights: As ``policy.weights`` has it. A folder of transformers says its shape itself;
            otherwise the last part of the name may be one of ``SHAPES``, ``-instruct`` or not.

    Returns:
        None where nothing says it.

    Example:
        >>> known_shape("models/Qwen2.5-7B-Instruct").layers
        28
    """
    if (Path(weights).expanduser() / "config.json").is_file():
        from transformers import AutoConfig

        return shape_of(AutoConfig.from_pretrained(weights))
    name = Path(weights.removeprefix("local:")).name.lower()
    fitting = [one for one in SHAPES if name == one or name.startswith(f"{one}-")]
    return SHAPES[fitting[0]] if fitting else None


def shape_of(config: Any) -> ModelShape:
    """The shape that a transformers configuration describes.

    Args:
        config: A ``PretrainedConfig`` of a decoder-only model.

    Raises:
        UsageError: It lacks one of the numbers.
    """
    config = getattr(config, "text_config", None) or config
    try:
        heads, hidden = int(config.num_attention_heads), int(config.hidden_size)
        return ModelShape(
            layers=int(config.num_hidden_layers),
            hidden=hidden,
            intermediate=int(config.intermediate_size),
            heads=heads,
            kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
            head_dim=int(getattr(config, "head_dim", None) or hidden // heads),
            vocabulary=int(config.vocab_size),
            is_tied=bool(getattr(config, "tie_word_embeddings", False)),
        )
    except AttributeError as error:
        raise UsageError(
            f"the configuration of the weights does not say {error.name!r}; plans are made for "
            "decoder-only models of the Llama kind"
        ) from error


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run, as far as memory and tokens depend on it.

    Attributes:
        model: The weights.
        devices: How many train, one process on each.
        device_gib: Memory of each; None when it is not known.
        tasks: Tasks, or examples of fine-tuning, of a step.
        in_share: Rollouts, or examples, of a step on one device.
        rows_at_once: Of these that are read at once.
        prompt_tokens: Of the longest prompt, about.
        written_tokens: Most tokens that a step writes; 0 for fine-tuning.
        read_tokens: Most tokens that the update of a step reads.
        parameters: Weights of the model, adapters left out; 0 where nothing tells its shape.
        trained: Weights that change.
        bytes: On each device, by what they hold; ``cache`` is gone when the update begins.
    """

    model: str
    devices: int
    device_gib: float | None
    tasks: int
    in_share: int
    rows_at_once: int
    prompt_tokens: int
    written_tokens: int
    read_tokens: int
    parameters: int = 0
    trained: int = 0
    bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def peak(self) -> int:
        """Bytes at the highest: generation and update take turns."""
        held = self.bytes
        lasting = sum(held[name] for name in ("weights", "optimizer", "writer"))
        update = sum(held[name] for name in ("gradients", "activations", "logits"))
        return lasting + max(held["cache"], update)

    @property
    def idle(self) -> int:
        """Processes that have no task in a step."""
        return max(0, self.devices - self.tasks) if self.written_tokens else 0

    @property
    def fits(self) -> bool | None:
        """Whether it fits its devices; None where their memory or the model is not known."""
        if self.device_gib is None or not self.bytes:
            return None
        return self.peak <= (1 - KEPT_FREE) * self.device_gib * GIB


def plan_of(config: SftConfig | CoevolveConfig, parts: TaskSplits, *, processes: int) -> Plan:
    """The plan of a run.

    Args:
        config: The run.
        parts: Its tasks; the length of prompts is taken from their texts.
        processes: How many train, one for each device.
    """
    prompt = about_prompt_tokens(parts.train, config.asking.instructions)
    completion = config.policy.answer_tokens * (config.asking.max_steps or 1)
    if isinstance(config, SftConfig):
        return _fine_tuning(config, parts, processes, prompt, completion)
    return _reinforcement(config, parts.train, processes, prompt, completion)


def _fine_tuning(
    config: SftConfig, parts: TaskSplits, processes: int, prompt: int, completion: int
) -> Plan:
    """A step reads a batch of examples; rollouts are written to measure, and to select."""
    wanted = config.sft
    length = min(prompt + completion, wanted.max_tokens)
    if processes == 1:
        rows = max(1, min(wanted.batch_size, wanted.input_tokens // length))
    else:
        rows = rows_of_trl(share_of(wanted.batch_size, processes))
    tried = max(len(parts.validation.tasks), len(parts.test.tasks))
    if config.toolace is not None:
        tried = max(tried, len(parts.train.tasks) * config.toolace.attempts)
    return _planned(
        config,
        devices=processes,
        tasks=wanted.batch_size,
        in_share=math.ceil(wanted.batch_size / processes),
        rows=rows,
        prompt=prompt,
        lengths=(rows * length, rows * min(completion, length)),
        tokens=(0, wanted.batch_size * length),
        cached=min(math.ceil(tried / processes), config.policy.batch_size) * (prompt + completion),
        is_recomputed=wanted.gradient_checkpointing,
    )


def _reinforcement(
    config: CoevolveConfig, tasks: Benchmark, processes: int, prompt: int, completion: int
) -> Plan:
    """A step writes rollouts and reads them; the lean engine reads each prompt once."""
    wanted, engine = config.coevolution, config.engine
    in_step = max(1, min(wanted.tasks_per_step, len(tasks.tasks)))
    in_share = math.ceil(in_step / processes) * wanted.group_size
    rollouts = in_step * wanted.group_size
    is_lean = engine.name == "lean"
    if is_lean:
        rows = max(1, min(in_share, (engine.max_tokens - prompt) // completion))
    else:
        rows = math.ceil(in_share / engine.parts)
    prompts_read, at_once = (in_step, 1) if is_lean else (rollouts, rows)
    borne = rows * completion
    return _planned(
        config,
        devices=processes,
        tasks=in_step,
        in_share=in_share,
        rows=rows,
        prompt=prompt,
        lengths=(at_once * prompt + borne, borne),
        tokens=(rollouts * completion, prompts_read * prompt + rollouts * completion),
        cached=min(in_share, config.policy.batch_size) * (prompt + completion),
        is_recomputed=engine.gradient_checkpointing,
    )


def _planned(
    config: SftConfig | CoevolveConfig,
    *,
    devices: int,
    tasks: int,
    in_share: int,
    rows: int,
    prompt: int,
    lengths: tuple[int, int],
    tokens: tuple[int, int],
    cached: int,
    is_recomputed: bool,
) -> Plan:
    """The plan from what a step does.

    Args:
        config: The run.
        devices: How many.
        tasks: Of a step.
        in_share: Rows of a step on one device.
        rows: Of these that are read at once.
        prompt: Tokens of the longest prompt.
        lengths: Tokens that are read at once, and those of them that bear loss.
        tokens: That a step writes and reads.
        cached: Tokens whose keys and values are kept at once while answers are written.
        is_recomputed: Whether activations are computed again in the backward pass.
    """
    policy = config.policy
    shape = known_shape(policy.weights)
    plan: dict[str, Any] = {
        "model": policy.weights,
        "devices": devices,
        "device_gib": config.hardware.device_gib,
        "tasks": tasks,
        "in_share": in_share,
        "rows_at_once": rows,
        "prompt_tokens": prompt,
        "written_tokens": tokens[0],
        "read_tokens": tokens[1],
    }
    if shape is None:
        return Plan(**plan)
    size = {"bf16": 2, "fp32": 4}[policy.precision]
    rank = adapter_rank(policy)
    adapters = shape.lora_parameters(rank) if rank else 0
    trained = adapters or shape.parameters
    has_reference = isinstance(config, CoevolveConfig) and config.engine.objective.kl_coefficient
    held = shape.parameters * (2 if has_reference and not adapters else 1) + adapters
    is_verl = isinstance(config, CoevolveConfig) and config.verl != VerlSection()
    shared = devices if is_verl else 1  # verl's FSDP
    masters = 4 * trained if policy.precision == "bf16" and not adapters else 0
    writer = _writer_gib(config)
    return Plan(
        **plan,
        parameters=shape.parameters,
        trained=trained,
        bytes={
            "weights": size * held // shared + (size * shape.parameters if is_verl else 0),
            "gradients": 4 * trained // shared,
            "optimizer": (8 * trained + masters) // shared,
            "activations": lengths[0] * _activations(shape, size, is_recomputed=is_recomputed),
            "logits": _logits(config, lengths[1] * shape.vocabulary) * 4 * _LOGIT_COPIES,
            "cache": 0
            if writer
            else cached * 2 * shape.layers * shape.kv_heads * shape.head_dim * size,
            "writer": round(writer * GIB),
        },
    )


def _activations(shape: ModelShape, size: int, *, is_recomputed: bool) -> int:
    """Bytes that a token keeps for the backward pass."""
    if is_recomputed:
        return size * shape.hidden * (shape.layers + 17)
    queries = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    return size * shape.layers * (4 * shape.hidden + 2 * queries + 4 * shape.intermediate)


def _logits(config: SftConfig | CoevolveConfig, numbers: int) -> int:
    """Numbers of logits that are held at once; the lean engine bounds them."""
    if isinstance(config, CoevolveConfig) and config.engine.name == "lean":
        return min(numbers, config.engine.max_logits)
    return numbers


def _writer_gib(config: SftConfig | CoevolveConfig) -> float:
    """What vLLM takes of each device; 0 where it does not run, or their size is unknown."""
    if not isinstance(config, CoevolveConfig) or config.engine.vllm is None:
        return 0.0
    return config.engine.vllm.memory_share * (config.hardware.device_gib or 0.0)


def about_prompt_tokens(tasks: Benchmark, instructions: str = "") -> int:
    """About the longest prompt, in tokens, with no tokenizer at hand.

    Definitions as JSON, by eight characters a token, and a hundred around them: a fifth too much
    for the benchmarks that ship, with the tokenizer of SmolLM2.
    """
    size = {one.name: len(json.dumps(one.to_json())) for one in tasks.definitions}
    longest = max(
        (
            len(task.request) + sum(size.get(name, 0) for name in task.offered)
            for task in tasks.tasks[:_LOOKED_AT]
        ),
        default=0,
    )
    return _TOKENS_AROUND + (longest + len(instructions)) // _CHARACTERS_OF_A_TOKEN


def adapter_rank(policy: PolicySection) -> int:
    """Of new adapters, or of those of an earlier run; 0 where whole weights are trained."""
    if policy.lora is not None:
        return policy.lora.rank
    told = Path(policy.adapter).expanduser() / ADAPTER_CONFIG
    if not policy.adapter or not told.is_file():
        return 0
    return int(json.loads(told.read_text(encoding="utf-8")).get("r", 0))
