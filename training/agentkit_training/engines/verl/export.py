"""``export_verl``: what verl is started with, from the configuration of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.task_files import task_to_json
from agentkit_training.coevolution.tasks import step_count
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import written_config
from agentkit_training.errors import ExportError
from agentkit_training.tasks.loading import load_tasks_for_training

AGENT_NAME = "agentkit"
"""What rows and the file of agent loops call our loop."""

SETTINGS = "agentkit.yaml"
"""The configuration of the run, which each worker reads."""

_LOOP = "agentkit_training.engines.verl.loop.AgentkitLoop"

_MEANS = MappingProxyType(
    {
        "dapo": "token-mean",
        "bnpo": "token-mean",
        "grpo": "seq-mean-token-mean",
        "dr_grpo": "seq-mean-token-sum-norm",
    }
)
"""How verl names the ways to put token losses together. Its ``seq`` is a sequence, where ours is a
whole rollout; the two are one but for templates that rewrite what came before."""


@dataclass(frozen=True, kw_only=True)
class VerlExport:
    """What was written.

    Attributes:
        folder: Where. Every node must see it under this path.
        rows: How many rows each part has.
    """

    folder: Path
    rows: Mapping[str, int]

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the training; options of verl may follow."""
        folder = ("--config-dir", str(self.folder))
        return ("python", "-m", "verl.trainer.main_ppo", *folder, "--config-name", "verl")


def export_verl(config: CoevolveConfig, folder: Path) -> VerlExport:
    """Write what verl needs to make the run of a configuration; neither verl nor torch is loaded.

    Args:
        config: What to do.
        folder: Where to; what is there under the names of the files is replaced.

    Raises:
        UsageError: The configuration asks for what does not run in verl; all of it is named.
        ExportError: There is nothing to train on, or a file can not be written.
    """
    if found := [told for is_asked, told in _not_there(config) if is_asked]:
        raise UsageError(
            "verl can not make this run:\n  " + ";\n  ".join(found) + ".\nTasks, reward, asking, "
            "sampling, the objective and the optimiser run there as they are"
        )
    parts = load_tasks_for_training(config.tasks)
    if not parts.train.tasks:
        raise ExportError(f"{parts.train.name} has no tasks to train on; ask for some")
    place = folder.expanduser().resolve()
    instructions = config.asking.instructions
    rows = {name: list(verl_rows(part, name, instructions)) for name, part in parts}
    told = _configuration(config, place, rows, step_count(parts.train.tasks, config.coevolution))
    loops = [{"name": AGENT_NAME, "_target_": _LOOP, "settings": str(place / SETTINGS)}]
    try:
        place.mkdir(parents=True, exist_ok=True)
        _write_rows(rows, place)
        (place / SETTINGS).write_text(written_config(config), encoding="utf-8")
        for name, record in (("agent_loop.yaml", loops), ("verl.yaml", told)):
            text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True)
            (place / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{place} can not be written: {error}") from error
    return VerlExport(folder=place, rows={name: len(part) for name, part in rows.items()})


def verl_rows(benchmark: Benchmark, part: str, instructions: str = "") -> Iterator[dict[str, Any]]:
    """The tasks of one part as verl reads them, in their order.

    The prompt has no tools: verl shows it and measures its length, and what the policy reads is
    rendered by the agent loop.

    Args:
        benchmark: The tasks.
        part: The name of the part, by which a worker finds the task again.
        instructions: The system message before the task's own.
    """
    for index, task in enumerate(benchmark.tasks):
        record = task_to_json(task)
        expected = {name: record[name] for name in ("expects", "follow_ups") if name in record}
        truth = json.dumps(expected, ensure_ascii=False)
        yield {
            "prompt": list(_messages(task, instructions)),
            "data_source": benchmark.name,
            "ability": task.category,
            "reward_model": {"ground_truth": truth, "style": "rule"},
            "extra_info": {"index": index, "part": part, "task_id": task.task_id},
            "agent_name": AGENT_NAME,
        }


def _messages(task: Task, instructions: str) -> Iterator[dict[str, str]]:
    if said := "\n\n".join(filter(None, (instructions, task.instructions))):
        yield {"role": "system", "content": said}
    for message in task.history:
        yield {"role": message.role, "content": message.text}
    yield {"role": "user", "content": task.request}


def _write_rows(rows: Mapping[str, list[dict[str, Any]]], place: Path) -> None:
    from pyarrow import Table, parquet

    for name, part in rows.items():
        if part:
            parquet.write_table(Table.from_pylist(part), place / f"{name}.parquet")


def _not_there(config: CoevolveConfig) -> Iterator[tuple[bool, str]]:
    """What a configuration may ask for that verl does not do, each with what to do instead."""
    wanted, engine, policy = config.coevolution, config.engine, config.policy
    for name in ("evolution", "feedback", "evidence", "composites", "interface", "weighting"):
        yield getattr(wanted, name), f"coevolution.{name}: turn it off, it needs our own loop"
    rollouts, devices = wanted.tasks_per_step * wanted.group_size, config.hardware.processes
    uneven = (
        f"coevolution: {rollouts} rollouts a step (tasks_per_step times group_size) do not divide "
        f"evenly among {devices} devices (hardware); take a multiple"
    )
    yield bool(rollouts % devices), uneven
    yield wanted.tools != "given", "coevolution.tools retrieved: tools are given; take given"
    yield (
        engine.iterations * engine.mini_batches > 1,
        "engine: iterations and mini_batches: a step is one update there; leave them out",
    )
    yield (
        engine.optimizer.schedule == "linear",
        "engine.optimizer.schedule linear: take constant or cosine",
    )
    yield config.frozen, "frozen: verl trains; leave it out"
    yield (
        config.cold_start is not None,
        "cold_start: run agentkit-train sft first, and name the folder that it leaves",
    )
    weights = policy.weights
    yield (
        weights == "tiny" or weights.startswith("local:") or weights.endswith(".gguf"),
        f"policy.weights {weights}: verl reads a folder of transformers; name one",
    )
    yield bool(policy.adapter), "policy.adapter: merge it into the weights first"
    yield (
        policy.chat_template is not None,
        "policy.chat_template: put it into the tokenizer of the weights",
    )
    yield policy.precision != "bf16", f"policy.precision {policy.precision}: take bf16"


def _configuration(
    config: CoevolveConfig, place: Path, rows: Mapping[str, list[Any]], steps: int
) -> dict[str, Any]:
    """What differs from verl's own configuration, as Hydra composes it."""
    wanted, watch, hardware = config.coevolution, config.watch, config.hardware
    in_epoch = len(rows["train"]) // wanted.tasks_per_step  # verl leaves out smaller steps
    if not in_epoch:
        raise UsageError(
            f"coevolution.tasks_per_step is {wanted.tasks_per_step} and there are "
            f"{len(rows['train'])} tasks to train on; verl leaves out steps that are not full: "
            "take fewer a step"
        )
    looked_at = "validation" if rows["validation"] else "train"
    return {
        "defaults": ["ppo_trainer", "_self_"],
        "hydra": {"searchpath": ["pkg://verl.trainer.config"]},
        "data": {
            "train_files": [str(place / "train.parquet")],
            "val_files": [str(place / f"{looked_at}.parquet")],
            "train_batch_size": wanted.tasks_per_step,
            "max_prompt_length": config.verl.prompt_tokens,
            "max_response_length": config.verl.response_tokens,
            "filter_overlong_prompts": False,  # without tools rows say nothing of the length
            "seed": wanted.seed,
        },
        "algorithm": {
            "adv_estimator": "grpo",
            "use_kl_in_reward": False,
            "norm_adv_by_std_in_grpo": config.engine.scaled,
        },
        "actor_rollout_ref": _policy(config, place),
        "trainer": {
            "total_epochs": math.ceil(steps / in_epoch),
            "total_training_steps": steps,
            "nnodes": hardware.machines,
            "n_gpus_per_node": hardware.devices,
            "save_freq": watch.checkpoint_every,
            "test_freq": watch.evaluate_every or steps or -1,
            "default_local_dir": str(place / "checkpoints"),
            "project_name": "agentkit-training",
            "experiment_name": place.name,
            "logger": ["console", *watch.trackers],
        },
    }


def _policy(config: CoevolveConfig, place: Path) -> dict[str, Any]:
    """The section ``actor_rollout_ref``: weights, rollouts, update."""
    engine, lora = config.engine, config.policy.lora
    optimizer, objective = engine.optimizer, engine.objective
    clipped_at = optimizer.max_gradient_norm or 1e9  # verl always clips
    model: dict[str, Any] = {
        "path": config.policy.weights,
        "enable_gradient_checkpointing": engine.gradient_checkpointing,
    }
    rollout: dict[str, Any] = {
        "name": "vllm",
        "tensor_model_parallel_size": config.verl.tensor_parallel,
        "n": config.coevolution.group_size,
        "temperature": objective.temperature,
        "calculate_log_probs": True,
        "agent": {
            "default_agent_loop": AGENT_NAME,
            "agent_loop_config_path": str(place / "agent_loop.yaml"),
        },
    }
    if lora is not None:
        targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
        model |= {"lora_rank": lora.rank, "lora_alpha": lora.alpha, "target_modules": targets}
        rollout["load_format"] = "safetensors"  # servers hold the base weights under adapters
    is_constant = objective.loss_type == "dr_grpo"
    actor = {
        "optim": {
            "lr": optimizer.learning_rate,
            "lr_scheduler_type": optimizer.schedule,
            "lr_warmup_steps_ratio": optimizer.warmup_ratio,
            "weight_decay": optimizer.weight_decay,
            "betas": list(optimizer.betas),
            "clip_grad": clipped_at,
        },
        "grad_clip": clipped_at,
        "ppo_mini_batch_size": config.coevolution.tasks_per_step,
        "use_dynamic_bsz": True,
        "ppo_max_token_len_per_gpu": max(
            engine.max_tokens, config.verl.prompt_tokens + config.verl.response_tokens
        ),
        "clip_ratio_low": objective.clip_low,
        "clip_ratio_high": objective.clip_high,
        "loss_agg_mode": _MEANS[objective.loss_type],
        "loss_scale_factor": objective.max_completion_tokens if is_constant else None,
        "use_kl_loss": bool(objective.kl_coefficient),
        "kl_loss_coef": objective.kl_coefficient,
        "kl_loss_type": "low_var_kl",
    }
    return {"model": model, "rollout": rollout, "actor": actor}
