"""What the configuration of a run asks of its devices, for a plan of it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

from agentkit.evaluation import Benchmark
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.sections import PolicySection, VerlSection
from agentkit_training.fine_tuning.settings import SftSettings, rows_of_trl, share_of
from agentkit_training.plan.memory import (
    GIB,
    MemoryPlan,
    Setup,
    Workload,
    fewer_written,
    plan_memory,
    smaller,
)
from agentkit_training.plan.shape import ModelShape, known_shape
from agentkit_training.policy.saving import CONFIG as ADAPTER_CONFIG
from agentkit_training.tasks.splits import TaskSplits

KEPT_FREE = 0.1
"""Share of a device's memory that is left to kernels and fragments."""

_MOST_HALVINGS = 24


def usable(device_gib: float) -> float:
    """What a run may hold of a device, in GiB."""
    return (1 - KEPT_FREE) * device_gib


def fits(found: MemoryPlan, setup: Setup) -> bool | None:
    """Whether a plan fits its devices; None where their memory is not known."""
    if setup.device_gib is None:
        return None
    return found.peak <= usable(setup.device_gib) * GIB


def fitting(shape: ModelShape, workload: Workload, setup: Setup) -> Workload:
    """The workload, made smaller until it fits; as it was when nothing helps.

    What is at its highest is made smaller: the rollouts that are written at once, or the rows that
    are read at once. How many rows TRL reads in fine-tuning in several processes is not to be set.
    """
    tried = workload
    for _ in range(_MOST_HALVINGS):
        found = plan_memory(shape, tried, setup)
        if fits(found, setup) is not False:
            return tried
        if found.generation > found.update:
            tried = fewer_written(tried, devices=setup.devices)
        elif tried.is_read and setup.devices > 1:
            tried = replace(tried, checkpointing=True)
        else:
            tried = smaller(tried)
    return workload


_CHARACTERS_OF_A_TOKEN = 8
_TOKENS_AROUND = 100
_LOOKED_AT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A run, as far as memory and tokens depend on it.

    Attributes:
        shape: Of the model; None where nothing tells it before the weights are there.
        workload: What a step does.
        setup: How the model is held.
        idle: Processes that have no task in a step.
    """

    shape: ModelShape | None
    workload: Workload
    setup: Setup
    idle: int = 0


def layout_of(config: SftConfig | CoevolveConfig, parts: TaskSplits, *, processes: int) -> Layout:
    """The layout of a run.

    Args:
        config: The run.
        parts: Its tasks; the length of prompts is taken from their texts.
        processes: How many train, one for each device.
    """
    if isinstance(config, SftConfig):
        return _fine_tuning(config, parts, processes)
    return _reinforcement(config, parts.train, processes)


def _fine_tuning(config: SftConfig, parts: TaskSplits, processes: int) -> Layout:
    """A step reads a batch of examples; rollouts are written to measure, and to select."""
    wanted, policy = config.sft, config.policy
    prompt = about_prompt_tokens(parts.train, config.asking.instructions)
    completion = policy.answer_tokens * (config.asking.max_steps or 1)
    tried = max(len(parts.validation.tasks), len(parts.test.tasks))
    if config.toolace is not None:
        tried = max(tried, len(parts.train.tasks) * config.toolace.attempts)
    length = min(prompt + completion, wanted.max_tokens)
    workload = Workload(
        tasks=wanted.batch_size,
        group_size=1,
        prompt_tokens=prompt,
        completion_tokens=completion,
        packed=False,
        rows_at_once=_examples_at_once(wanted, length, processes),
        checkpointing=wanted.gradient_checkpointing,
        most_written=min(math.ceil(tried / processes), policy.batch_size),
        most_tokens=wanted.max_tokens,
        is_read=True,
    )
    setup = Setup(
        precision=policy.precision,
        lora_rank=_adapter_rank(policy),
        has_master_weights=_has_masters(policy),
        devices=processes,
        device_gib=config.hardware.device_gib,
    )
    return Layout(shape=known_shape(policy.weights), workload=workload, setup=setup)


def _examples_at_once(settings: SftSettings, length: int, processes: int) -> int:
    if processes == 1:
        return max(1, min(settings.batch_size, settings.input_tokens // length))
    return rows_of_trl(share_of(settings.batch_size, processes))


def _reinforcement(config: CoevolveConfig, tasks: Benchmark, processes: int) -> Layout:
    """A step writes rollouts and reads them."""
    wanted = config.coevolution
    in_step = max(1, min(wanted.tasks_per_step, len(tasks.tasks)))
    in_share = math.ceil(in_step / processes) * wanted.group_size
    prompt = about_prompt_tokens(tasks, config.asking.instructions)
    completion = config.policy.answer_tokens * (config.asking.max_steps or 1)
    is_lean = config.engine.name == "lean"
    in_shares = config.engine.sharding != "none" or config.verl != VerlSection()  # verl has FSDP
    workload = Workload(
        tasks=in_step,
        group_size=wanted.group_size,
        prompt_tokens=prompt,
        completion_tokens=completion,
        packed=is_lean,
        rows_at_once=_rows(config, in_share, prompt=prompt, completion=completion),
        checkpointing=config.engine.gradient_checkpointing,
        most_written=config.policy.batch_size,
        most_logits=config.engine.max_logits if is_lean else None,
    )
    setup = Setup(
        precision=config.policy.precision,
        lora_rank=_adapter_rank(config.policy),
        has_master_weights=_has_masters(config.policy),
        has_reference=bool(config.engine.objective.kl_coefficient),
        devices=processes,
        sharding="zero3" if in_shares else "none",
        device_gib=config.hardware.device_gib,
        writes_whole=True,
        writer_gib=_writer_gib(config),
    )
    return Layout(
        shape=known_shape(config.policy.weights),
        workload=workload,
        setup=setup,
        idle=max(0, processes - in_step),
    )


def _writer_gib(config: CoevolveConfig) -> float:
    """What vLLM takes of each device; nothing where it runs on others, or their size is unknown."""
    vllm, device_gib = config.engine.vllm, config.hardware.device_gib
    if vllm is None or vllm.mode == "server" or device_gib is None:
        return 0.0
    return vllm.memory_share * device_gib


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


def _adapter_rank(policy: PolicySection) -> int:
    """Of new adapters, or of those of an earlier run; 0 where whole weights are trained."""
    if policy.lora is not None:
        return policy.lora.rank
    told = Path(policy.adapter).expanduser() / ADAPTER_CONFIG
    if not policy.adapter or not told.is_file():
        return 0
    return int(json.loads(told.read_text(encoding="utf-8")).get("r", 0))


def _has_masters(policy: PolicySection) -> bool:
    """Whether whole bf16 weights are stepped in fp32."""
    return policy.precision == "bf16" and not _adapter_rank(policy)


def _rows(config: CoevolveConfig, in_share: int, *, prompt: int, completion: int) -> int:
    """Rollouts that a process reads at once in the update."""
    if config.engine.name == "lean":
        fitting = (config.engine.max_tokens - prompt) // completion
        return max(1, min(in_share, fitting))
    return math.ceil(in_share / config.engine.parts)
