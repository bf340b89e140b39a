"""``verl_job``: what verl is started with, from the configuration of a run."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agentkit import open_store
from agentkit.errors import UsageError
from agentkit.evolution import ToolManager
from agentkit_training.coevolution.tasks import step_count
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import written_config
from agentkit_training.config.sections import EngineSection, PolicySection
from agentkit_training.engines.verl.update import VerlCluster, VerlUpdate
from agentkit_training.engines.verl.workspace import (
    AGENT_NAME,
    TRAINER_NAME,
    VerlSettings,
    WeightsName,
    verl_rows,
    write_rows,
)
from agentkit_training.errors import ExportError
from agentkit_training.tasks.loading import load_tasks_for_training
from agentkit_training.tasks.splits import TaskSplits

LOOP = "agentkit_training.engines.verl.loop.AgentkitLoop"
TRAINER_MODULE = "agentkit_training.engines.verl.trainer"
SCORING = "pkg://agentkit_training.engines.verl.workspace"


@dataclass(frozen=True, kw_only=True)
class VerlRun:
    """What verl is to be told of a run; the rest is in its own configuration.

    Attributes:
        model: A folder of transformers, or a name that verl can download.
        prompt_tokens: Longest prompt. A rollout with a longer one is left out.
        response_tokens: Longest response: all answers, and what tools said between them.
        batch_size: Tasks of a step.
        attempts: Rollouts of each task: the group's size G.
        epochs: How often all tasks are gone through.
        update: How the weights are moved; None leaves it to verl's own configuration.
        cluster: Where verl runs; None leaves it to verl's own configuration.
    """

    model: str
    prompt_tokens: int = 2048
    response_tokens: int = 1024
    batch_size: int = 64
    attempts: int = 8
    epochs: int = 1
    update: VerlUpdate | None = None
    cluster: VerlCluster | None = None


@dataclass(frozen=True, kw_only=True)
class VerlExport:
    """What was written.

    Attributes:
        folder: Where. Every node must see it under this path.
        rows: How many rows each part has.
        library_version: Of the library in the store; 0 without one.
        command: Starts verl with it.
    """

    folder: Path
    rows: dict[str, int] = field(default_factory=dict)
    library_version: int = 0

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the training; options of verl may follow."""
        folder = ("--config-dir", str(self.folder))
        return ("python", "-m", "verl.trainer.main_ppo", *folder, "--config-name", "verl")


def export_verl(settings: VerlSettings, folder: str | os.PathLike[str], run: VerlRun) -> VerlExport:
    """Write what verl needs to train on some tasks.

    Rows of each part as parquet, ``verl.yaml`` (a Hydra configuration on top of verl's own),
    ``agent_loop.yaml`` (the file of agent loops) and ``agentkit.yaml`` (these settings). Where a
    store for the library is named and holds nothing yet, the tasks' tools are registered in it,
    by the Tool Manager, so that there is a first version.

    Args:
        settings: How rollouts are made.
        folder: Where to. What is there under these names is replaced.
        run: What verl is told.

    Raises:
        ExportError: There is nothing to train on, or a file can not be written.
        UsageError: The settings do not describe tasks, or no store.

    Example:
        >>> from agentkit_training.tasks.loading import TaskSpec
        >>> settings = VerlSettings(tasks=TaskSpec(source="arithmetic", train=12, test=4))
        >>> export = export_verl(settings, "cluster", VerlRun(model="Qwen/Qwen3-4B"))
        >>> export.rows["train"], sorted(path.name for path in export.folder.iterdir())
        (12, ['agent_loop.yaml', 'agentkit.yaml', 'test.parquet', 'train.parquet', \
'validation.parquet', 'verl.yaml'])
    """
    parts = load_tasks_for_training(settings.tasks)
    if not parts.train.tasks:
        raise ExportError(f"{parts.train.name} has no tasks to train on; ask for some")
    version = _first_version(settings, parts)
    place = Path(folder).expanduser().resolve()
    try:
        place.mkdir(parents=True, exist_ok=True)
        rows = _write_parts(parts, place, settings, version)
        (place / "agentkit.yaml").write_text(written_config(settings), encoding="utf-8")
        _write_yaml(place / "agent_loop.yaml", _loops(place))
        _write_yaml(place / "verl.yaml", _configuration(place, run, rows))
    except OSError as error:
        raise ExportError(f"{place} can not be written: {error}") from error
    return VerlExport(folder=place, rows=rows, library_version=version)


def _first_version(settings: VerlSettings, parts: TaskSplits) -> int:
    """The newest version in the store; the tasks' tools are its first."""
    if not settings.library:
        return 0
    if settings.library.startswith("memory:"):
        raise UsageError(
            f"the library is at {settings.library}, which each process has for itself; name a "
            "store that all nodes reach, such as a Postgres database or a server of agentkit serve"
        )
    store = open_store(settings.library)
    try:
        if not store.versions():
            ToolManager(store).register(parts.train.definitions, reason="the tasks' tools")
        return store.versions()[-1]
    finally:
        store.close()


def _write_parts(
    parts: TaskSplits, place: Path, settings: VerlSettings, version: int
) -> dict[str, int]:
    sizes = {}
    for name, part in parts:
        instructions = settings.asking.instructions
        rows = tuple(verl_rows(part, part=name, instructions=instructions, library_version=version))
        if rows:
            write_rows(rows, place / f"{name}.parquet")
        sizes[name] = len(rows)
    return sizes


def _loops(place: Path) -> list[dict[str, str]]:
    return [{"name": AGENT_NAME, "_target_": LOOP, "settings": str(place / "agentkit.yaml")}]


def _configuration(place: Path, run: VerlRun, rows: dict[str, int]) -> dict[str, Any]:
    """What differs from verl's own configuration, as Hydra composes it."""
    looked_at = "validation" if rows["validation"] else "train"
    found: dict[str, Any] = {
        "defaults": ["ppo_trainer", "_self_"],
        "hydra": {"searchpath": ["pkg://verl.trainer.config"]},
        "data": {
            "train_files": [str(place / "train.parquet")],
            "val_files": [str(place / f"{looked_at}.parquet")],
            "train_batch_size": run.batch_size,
            "max_prompt_length": run.prompt_tokens,
            "max_response_length": run.response_tokens,
            "filter_overlong_prompts": False,  # without tools rows say nothing of the length
        },
        "algorithm": {"adv_estimator": "grpo", "use_kl_in_reward": False},
        "actor_rollout_ref": {
            "model": {"path": run.model},
            "rollout": {
                "n": run.attempts,
                "calculate_log_probs": True,
                "agent": {
                    "default_agent_loop": AGENT_NAME,
                    "agent_loop_config_path": str(place / "agent_loop.yaml"),
                },
            },
        },
        "reward": {"custom_reward_function": {"path": SCORING, "name": "compute_score"}},
        "trainer": {"total_epochs": run.epochs, "v1": {"trainer_mode": TRAINER_NAME}},
        "ray_kwargs": {
            "ray_init": {"runtime_env": {"env_vars": {"VERL_USE_EXTERNAL_MODULES": TRAINER_MODULE}}}
        },
    }
    policy = found["actor_rollout_ref"]
    if run.update is not None:
        policy["actor"] = run.update.actor(batch_size=run.batch_size)
        policy["model"] |= run.update.model()
        policy["rollout"] |= run.update.rollout()
        found["algorithm"]["norm_adv_by_std_in_grpo"] = run.update.scaled
    if run.cluster is not None:
        policy["rollout"] |= {
            "name": "vllm",
            "tensor_model_parallel_size": run.cluster.tensor_parallel,
        }
        found["data"]["seed"] = run.cluster.seed
        checkpoints = str(place / "checkpoints")
        found["trainer"] |= run.cluster.trainer(folder=checkpoints, name=place.name)
    return found


def _write_yaml(path: Path, record: Any) -> None:
    path.write_text(yaml.safe_dump(record, sort_keys=False, allow_unicode=True), encoding="utf-8")


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
