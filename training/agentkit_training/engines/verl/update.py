"""``VerlUpdate``: how verl moves the weights, in its own words, so that it takes our steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agentkit.errors import UsageError
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.objective import Objective
from agentkit_training.policy.lora import LoraSettings

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
class VerlUpdate:
    """What an update of verl does.

    Attributes:
        optimizer: How the weights follow the gradient.
        objective: What an update makes larger.
        scaled: Whether advantages are divided by the group's deviation.
        lora: Adapters to train; None trains every weight.
        max_tokens: Most tokens that a device reads at once.
        gradient_checkpointing: Whether activations are computed again, to save memory.

    Raises:
        UsageError: verl has no such schedule.
    """

    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    objective: Objective = field(default_factory=Objective)
    scaled: bool = True
    lora: LoraSettings | None = None
    max_tokens: int = 16_384
    gradient_checkpointing: bool = True

    def __post_init__(self) -> None:
        if self.optimizer.schedule == "linear":
            raise UsageError(
                "engine.optimizer.schedule is linear, which verl does not have; take constant or "
                "cosine"
            )

    def actor(self, *, batch_size: int) -> dict[str, Any]:
        """The section ``actor_rollout_ref.actor`` of verl's configuration.

        Args:
            batch_size: Tasks of a step, which is one update.
        """
        optimizer, objective = self.optimizer, self.objective
        clipped_at = optimizer.max_gradient_norm or 1e9  # verl always clips
        return {
            "optim": {
                "lr": optimizer.learning_rate,
                "lr_scheduler_type": optimizer.schedule,
                "lr_warmup_steps_ratio": optimizer.warmup_ratio,
                "weight_decay": optimizer.weight_decay,
                "betas": list(optimizer.betas),
                "clip_grad": clipped_at,
            },
            "grad_clip": clipped_at,
            "ppo_mini_batch_size": batch_size,
            "use_dynamic_bsz": True,
            "ppo_max_token_len_per_gpu": self.max_tokens,
            "clip_ratio_low": objective.clip_low,
            "clip_ratio_high": objective.clip_high,
            "loss_agg_mode": _MEANS[objective.loss_type],
            "loss_scale_factor": (
                objective.max_completion_tokens if objective.loss_type == "dr_grpo" else None
            ),
            "use_kl_loss": bool(objective.kl_coefficient),
            "kl_loss_coef": objective.kl_coefficient,
            "kl_loss_type": "low_var_kl",
        }

    def model(self) -> dict[str, Any]:
        """The section ``actor_rollout_ref.model``, without the weights."""
        found: dict[str, Any] = {"enable_gradient_checkpointing": self.gradient_checkpointing}
        if self.lora is not None:
            targets = self.lora.targets
            found |= {
                "lora_rank": self.lora.rank,
                "lora_alpha": self.lora.alpha,
                "target_modules": targets if isinstance(targets, str) else list(targets),
            }
        return found

    def rollout(self) -> dict[str, Any]:
        """What ``actor_rollout_ref.rollout`` has more for it."""
        found: dict[str, Any] = {"temperature": self.objective.temperature}
        if self.lora is not None:
            found["load_format"] = "safetensors"  # servers hold the base weights under adapters
        return found


@dataclass(frozen=True, kw_only=True)
class VerlCluster:
    """Where verl runs, and what it keeps.

    Attributes:
        machines: How many.
        devices: Of each.
        tensor_parallel: Devices over which a server of rollouts lays the weights.
        steps: Most steps; None for whole epochs.
        seed: Of the order of tasks.
        evaluate_every: Steps between looks at the validation tasks; 0 looks at the end alone.
        checkpoint_every: Steps between checkpoints.
        loggers: Where figures go, in verl's words.
    """

    machines: int = 1
    devices: int = 8
    tensor_parallel: int = 1
    steps: int | None = None
    seed: int = 0
    evaluate_every: int = 0
    checkpoint_every: int = 10
    loggers: tuple[str, ...] = ("console",)

    def trainer(self, *, folder: str, name: str) -> dict[str, Any]:
        """The section ``trainer`` of verl's configuration.

        Args:
            folder: Where checkpoints go.
            name: Of the run.
        """
        return {
            "nnodes": self.machines,
            "n_gpus_per_node": self.devices,
            "total_training_steps": self.steps,
            "save_freq": self.checkpoint_every,
            "test_freq": self.evaluate_every or self.steps or -1,
            "default_local_dir": folder,
            "project_name": "agentkit-training",
            "experiment_name": name,
            "logger": list(self.loggers),
        }
