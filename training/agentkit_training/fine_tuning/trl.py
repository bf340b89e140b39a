"""``sft_with_trl``: the same examples trained by TRL's ``SFTTrainer``, in as many processes.

``sft`` is for one process and one device; this one is for ``torchrun``, FSDP and DeepSpeed, which
TRL and accelerate bring. Both learn from the same tokens with the same loss, and a test holds that
they take the same steps. Where they differ: the order of examples is TRL's, a checkpoint is TRL's,
and weights that are bfloat16 are moved as such, without float32 copies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agentkit.errors import UsageError
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.trl.batch import untouched
from agentkit_training.errors import DivergedError
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.settings import (
    TRL_ROWS,
    Listener,
    SftReport,
    SftSettings,
    SftStep,
    ignore,
    rows_of_trl,
    share_of,
)
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.reference import recomputing_option

if TYPE_CHECKING:
    import torch
    from trl import SFTConfig, SFTTrainer


def sft_with_trl(
    policy: Policy,
    examples: Sequence[Example],
    settings: SftSettings = SftSettings(),  # noqa: B008 - immutable
    *,
    folder: Path | None = None,
    rows_at_once: int = TRL_ROWS,
    options: Mapping[str, Any] | None = None,
    listen: Listener = ignore,
) -> SftReport:
    """Make the gold answers likelier with TRL.

    Args:
        policy: What learns, as ``sft`` has it.
        examples: What it learns from.
        settings: How. ``batch_size`` is that of all processes together; ``input_tokens`` and
            ``save_every`` do not count here.
        folder: Where TRL writes what ``options`` ask it to; None for a passing one.
        rows_at_once: Examples that one process reads at once; divides ``batch_size``.
        options: Further arguments of ``SFTConfig``, such as ``fsdp`` or ``deepspeed``.
        listen: Told of each step.

    Raises:
        DivergedError: The gradient is not a number; the weights are those before the step.
        UsageError: There is nothing to train on, or a batch is not shared out evenly.
    """
    kept = [one for one in examples if len(one) <= settings.max_tokens]
    if not kept:
        raise UsageError(
            f"there is nothing to train on: of {len(examples)} examples none has at most "
            f"{settings.max_tokens} tokens; raise max_tokens, or select other tasks"
        )
    with TemporaryDirectory() as passing:
        told = {"use_cpu": policy.device.type == "cpu", **(options or {})}
        config = _config(settings, len(kept), str(folder or passing), rows_at_once, told)
        steps: list[SftStep] = []
        with untouched(policy):
            trainer = _trainer(policy, kept, config, settings.optimizer)
            trainer.add_callback(_listener(steps, listen))
            trainer.train()
    too_long = tuple(one.task_id for one in examples if len(one) > settings.max_tokens)
    return SftReport(steps=tuple(steps), examples=len(kept), too_long=too_long)


def rows(examples: Sequence[Example]) -> list[dict[str, list[int]]]:
    """Examples as TRL reads them: tokens, and 1 for each that bears loss.

    Example:
        >>> rows([Example(task_id="1", prompt=(5, 6), completion=(7,))])
        [{'input_ids': [5, 6, 7], 'completion_mask': [0, 0, 1]}]
    """
    return [
        {
            "input_ids": [*one.prompt, *one.completion],
            "completion_mask": [0] * len(one.prompt) + [int(taught) for taught in one.taught],
        }
        for one in examples
    ]


def _config(
    settings: SftSettings, count: int, folder: str, rows_at_once: int, options: Mapping[str, Any]
) -> SFTConfig:
    from trl import SFTConfig

    share = share_of(settings.batch_size, _processes())
    at_once = rows_of_trl(share, rows_at_once)
    steps = math.ceil(count / settings.batch_size) * settings.epochs
    optimizer = settings.optimizer
    asked: dict[str, Any] = {
        "output_dir": folder,
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": share // at_once,
        "num_train_epochs": settings.epochs,
        "learning_rate": optimizer.learning_rate,
        "lr_scheduler_type": _schedule(optimizer),
        "warmup_steps": math.ceil(optimizer.warmup_ratio * steps),
        "weight_decay": optimizer.weight_decay,
        "adam_beta1": optimizer.betas[0],
        "adam_beta2": optimizer.betas[1],
        "max_grad_norm": optimizer.max_gradient_norm,
        "max_length": settings.max_tokens,
        "completion_only_loss": True,
        "seed": settings.seed,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": "none",
        "bf16": False,  # the weights have the precision that they were loaded with
        recomputing_option(): settings.gradient_checkpointing,
        "disable_tqdm": True,
    }
    return SFTConfig(**{**asked, **options})


def _schedule(optimizer: OptimizerSettings) -> str:
    """The schedule by transformers' name; its ``constant`` alone does not warm up."""
    if optimizer.schedule == "constant" and optimizer.warmup_ratio:
        return "constant_with_warmup"
    return optimizer.schedule


def _processes() -> int:
    import torch.distributed as dist

    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _trainer(
    policy: Policy, kept: Sequence[Example], config: SFTConfig, settings: OptimizerSettings
) -> SFTTrainer:
    from datasets import Dataset
    from trl import SFTTrainer

    return SFTTrainer(
        model=policy.model,
        args=config,
        train_dataset=Dataset.from_list(rows(kept)),
        processing_class=policy.tokenizer,
        optimizers=(_optimizer(policy, config, settings), None),
    )


def _optimizer(
    policy: Policy, config: SFTConfig, settings: OptimizerSettings
) -> torch.optim.Optimizer | None:
    """What steps float32 masters where weights are coarse; None for TRL's own.

    TRL takes none of ours where it shards weights, which then have masters of their own.
    """
    from agentkit_training.engines.master_adam import MasterAdam, is_coarse

    if config.fsdp or config.deepspeed or not any(map(is_coarse, policy.trainable)):
        return None
    return MasterAdam(
        policy.trainable,
        lr=settings.learning_rate,
        betas=settings.betas,
        weight_decay=settings.weight_decay,
    )


def _listener(steps: list[SftStep], listen: Listener) -> Any:
    """A callback that tells of each step and stops before one that is no number."""
    from transformers import TrainerCallback

    class Listening(TrainerCallback):  # type: ignore[misc]  # transformers has no types
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            gradients = [one.grad for one in more["model"].parameters() if one.grad is not None]
            if not all(bool(one.isfinite().all()) for one in gradients):
                raise DivergedError(
                    f"at step {state.global_step} the gradient is not a number; the step was not "
                    "taken. Lower the learning rate, or clip harder",
                    step=state.global_step,
                )

        def on_log(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            logged = more.get("logs") or {}
            if "loss" in logged:
                steps.append(_step(state, logged))
                listen(steps[-1])

    return Listening()


def _step(state: Any, logged: Mapping[str, Any]) -> SftStep:
    return SftStep(
        step=state.global_step - 1,
        steps=state.max_steps,
        loss=float(logged["loss"]),
        gradient_norm=float(logged.get("grad_norm", 0.0)),
        learning_rate=float(logged.get("learning_rate", 0.0)),
        examples=0,
        loss_tokens=0,
        read_tokens=0,
        padding_tokens=0,
        seconds=0.0,
    )
