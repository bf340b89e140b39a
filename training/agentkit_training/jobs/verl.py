"""``verl_job``: what verl is started with, from the configuration of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from agentkit.errors import UsageError
from agentkit_training.coevolution.tasks import step_count
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.sections import EngineSection, PolicySection
from agentkit_training.engines.verl.export import VerlExport, VerlRun, export_verl
from agentkit_training.engines.verl.settings import VerlSettings, WeightsName
from agentkit_training.engines.verl.update import VerlCluster, VerlUpdate
from agentkit_training.tasks.loading import load_tasks_for_training

_LEARNS_OUTSIDE = (
    "off here: the library has one writer, which is none of verl's; with verl.library and "
    "verl.keeps_episodes 'agentkit evolve --store URL' learns beside it"
)


def verl_job(config: CoevolveConfig, folder: Path) -> VerlExport:
    """Write what verl needs to make the run of a configuration.

    Neither verl nor torch is loaded.

    Args:
        config: What to do.
        folder: Where to; every machine must see it under this path.

    Raises:
        UsageError: The configuration asks for what does not run in verl; all of it is named.
        ExportError: There is nothing to train on, or a file can not be written.
    """
    found = list(_not_there(config))
    if found:
        raise UsageError(
            "verl can not make this run:\n  " + ";\n  ".join(found) + ".\nTasks, reward, asking, "
            "fixed weights, sampling, the objective and the optimiser run there as they are"
        )
    return export_verl(_settings(config), folder, _run(config))


def _not_there(config: CoevolveConfig) -> Iterator[str]:
    """What a configuration asks for that verl does not do, each with what to do instead."""
    wanted = config.coevolution
    for name in ("evolution", "feedback", "evidence", "composites"):
        if getattr(wanted, name):
            yield f"coevolution.{name}: turn it {_LEARNS_OUTSIDE}"
    for is_asked, told in (*_of_steps(config), *_of_run(config), *_of_policy(config.policy)):
        if is_asked:
            yield told


def _of_steps(config: CoevolveConfig) -> tuple[tuple[bool, str], ...]:
    """What a step might have, and what verl says to it."""
    wanted = config.coevolution
    rollouts, devices = wanted.tasks_per_step * wanted.group_size, config.hardware.processes
    return (
        (wanted.interface, "coevolution.interface: prompts do not follow the profile; turn it off"),
        (
            wanted.weighting and config.weighting.kind == "dynamic",
            "weighting.kind dynamic: what it learns has no place there; take fixed",
        ),
        (
            bool(wanted.composite_coefficient),
            "coevolution.composite_coefficient: no composites are made there; take 0",
        ),
        (
            bool(updates := _updates(config.engine)),
            f"engine: {' and '.join(updates)}: a step is one update there; leave it out",
        ),
        (wanted.tools != "given", "coevolution.tools retrieved: tools are given; take given"),
        (
            bool(rollouts % devices),
            _uneven(rollouts, devices),
        ),
    )


def _updates(engine: EngineSection) -> list[str]:
    """What makes a step more than one update of its rollouts."""
    asked = ("iterations", "mini_batches", "resample")
    return [name for name in asked if getattr(engine, name) != getattr(EngineSection, name)]


def _uneven(rollouts: int, devices: int) -> str:
    return (
        f"coevolution: {rollouts} rollouts a step (tasks_per_step times group_size) do not divide "
        f"evenly among {devices} devices (hardware); take a multiple"
    )


def _of_run(config: CoevolveConfig) -> tuple[tuple[bool, str], ...]:
    """What a run might begin with."""
    return (
        (config.frozen, "frozen: verl trains; leave it out"),
        (
            config.cold_start is not None,
            "cold_start: run agentkit-train sft first, and name the folder that it leaves",
        ),
        (
            bool(config.library),
            "library: name a store with verl.library; 'agentkit import' brings an artifact into it",
        ),
    )


def _of_policy(policy: PolicySection) -> tuple[tuple[bool, str], ...]:
    """What a policy might be."""
    weights = policy.weights
    is_ours = weights == "tiny" or weights.startswith("local:") or weights.endswith(".gguf")
    return (
        (is_ours, f"policy.weights {weights}: verl reads a folder of transformers; name one"),
        (bool(policy.adapter), "policy.adapter: merge it into the weights first"),
        (
            policy.chat_template is not None,
            "policy.chat_template: put it into the tokenizer of the weights",
        ),
        (
            policy.precision != "bf16",
            f"policy.precision {policy.precision}: verl computes in bf16; take that",
        ),
    )


def _settings(config: CoevolveConfig) -> VerlSettings:
    weights: WeightsName = "none"
    if config.coevolution.weighting:
        weights = "normalised" if config.weighting.normalised else "fixed"
    policy = config.policy
    return VerlSettings(
        tasks=config.tasks,
        library=config.verl.library,
        reward=config.reward,
        asking=config.asking,
        tools_in=policy.tools_in,
        format=policy.format,
        constrained=policy.constrained,
        weights=weights,
        keeps_episodes=config.verl.keeps_episodes,
        answer_tokens=policy.answer_tokens,
    )


def _run(config: CoevolveConfig) -> VerlRun:
    wanted, engine, verl = config.coevolution, config.engine, config.verl
    tasks = load_tasks_for_training(config.tasks).train.tasks
    in_epoch = len(tasks) // wanted.tasks_per_step  # a step with fewer tasks is left out by verl
    if tasks and not in_epoch:
        raise UsageError(
            f"coevolution.tasks_per_step is {wanted.tasks_per_step} and there are {len(tasks)} "
            "tasks to train on; verl leaves out steps that are not full: take fewer a step"
        )
    steps = step_count(tasks, wanted)
    longest = verl.prompt_tokens + verl.response_tokens
    return VerlRun(
        model=config.policy.weights,
        prompt_tokens=verl.prompt_tokens,
        response_tokens=verl.response_tokens,
        batch_size=wanted.tasks_per_step,
        attempts=wanted.group_size,
        epochs=math.ceil(steps / max(1, in_epoch)),
        update=VerlUpdate(
            optimizer=engine.optimizer,
            objective=engine.objective,
            scaled=engine.scaled,
            lora=config.policy.lora,
            max_tokens=max(engine.max_tokens, longest),
            gradient_checkpointing=engine.gradient_checkpointing,
        ),
        cluster=VerlCluster(
            machines=config.hardware.machines,
            devices=config.hardware.devices,
            tensor_parallel=verl.tensor_parallel,
            steps=steps,
            seed=wanted.seed,
            evaluate_every=config.watch.evaluate_every,
            checkpoint_every=config.watch.checkpoint_every,
            loggers=("console", *config.watch.trackers),
        ),
    )
