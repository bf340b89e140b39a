"""``sft_with_trl``: the same examples trained by TRL's ``SFTTrainer``, in as many processes.

``sft`` is for one process and one device; this one is for ``torchrun``. Both learn from the same
tokens with the same loss, and a test holds that they take the same steps. Where they differ: the
order of examples is TRL's, and no checkpoints are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.adam import adam_for
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.trl.engine import untouched
from agentkit_training.errors import DivergedError
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.training import (
    Listener,
    SftReport,
    SftSettings,
    SftStep,
    fitting,
    ignore,
    rows_of_trl,
    share_of,
)
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.reference import recomputing_option

if TYPE_CHECKING:
    from trl import SFTConfig, SFTTrainer


def sft_with_trl(
    policy: Policy,
    examples: Sequence[Example],
    settings: SftSettings = SftSettings(),  # noqa: B008 - immutable
    *,
    listen: Listener = ignore,
) -> SftReport:
    """Make the gold answers likelier with TRL.

    Args:
        policy: What learns, as ``sft`` has it.
        examples: What it learns from.
        settings: How. ``batch_size`` is that of all processes together; ``input_tokens`` and
            ``save_every`` do not count here.
        listen: Told of each step.

    Raises:
        DivergedError: The gradient is not a number; the weights are those before the step.
        UsageError: There is nothing to train on, or a batch is not shared out evenly.
    """
    kept = fitting(examples, settings)
    steps: list[SftStep] = []
    with TemporaryDirectory() as folder, untouched(policy):
        config = _config(settings, len(kept), folder, on_cpu=policy.device.type == "cpu")
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


def _config(settings: SftSettings, count: int, folder: str, *, on_cpu: bool) -> SFTConfig:
    from trl import SFTConfig

    share = share_of(settings.batch_size, _processes())
    at_once = rows_of_trl(share)
    steps = math.ceil(count / settings.batch_size) * settings.epochs
    optimizer = settings.optimizer
    asked: dict[str, Any] = {
        "output_dir": folder,
        "use_cpu": on_cpu,
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
    return SFTConfig(**asked)


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
        optimizers=(adam_for(policy, settings), None),
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
