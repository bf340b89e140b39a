"""The optimiser of an engine: made for a policy, kept from call to call, saved and restored."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.objective import Objective
from agentkit_training.errors import CheckpointError, PolicyError
from agentkit_training.files import load_tensors, save_tensors
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


def adam_for(policy: Policy, settings: OptimizerSettings) -> torch.optim.AdamW:
    """AdamW for a policy's trainable weights, over float32 masters where some are coarse.

    Raises:
        PolicyError: No weight is trainable.
    """
    import torch

    from agentkit_training.engines.master_adam import MasterAdam, is_coarse

    weights = policy.trainable
    if not weights:
        raise PolicyError(
            f"no weight of {policy.name} is trainable; add LoRA adapters, or call "
            "model.requires_grad_(True)"
        )
    kind = MasterAdam if any(map(is_coarse, weights)) else torch.optim.AdamW
    return kind(
        weights,
        lr=settings.learning_rate,
        betas=settings.betas,
        weight_decay=settings.weight_decay,
    )


@dataclass(kw_only=True)
class AdamEngine:
    """What engines that step an AdamW have in common: settings, and how far they are.

    Attributes:
        optimizer: How the weights follow the gradient.
        objective: What an update makes larger.
        scaled: Whether advantages are divided by the group's deviation.
        reference: What the KL divergence is taken to; None leaves it out.
        max_tokens: Most tokens that are read at once; memory grows with it, the gradient does not
            change.
        gradient_checkpointing: Whether an update computes activations again instead of keeping
            them: less memory for long prompts, about a third more work.
        seed: Of what an update draws, such as dropout and the order of rows: they depend on it, the
            step and the process alone, so that a run that was restored draws the same.
        step: Steps that were taken.
    """

    FILE: ClassVar[str]
    """The name of the state in a checkpoint."""

    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    objective: Objective = field(default_factory=Objective)
    scaled: bool = True
    reference: Policy | None = None
    max_tokens: int = 4096
    gradient_checkpointing: bool = False
    seed: int = 0
    step: int = field(init=False, default=0)
    _adam: torch.optim.Optimizer | None = field(init=False, default=None)
    _restored: Path | None = field(init=False, default=None)

    @property
    def has_divergence(self) -> bool:
        """Whether the KL divergence to a reference is a part of the loss."""
        return self.reference is not None and self.objective.kl_coefficient != 0

    def _optimiser_of(self, policy: Policy) -> torch.optim.Optimizer:
        """The optimiser of a policy's trainable weights.

        It goes on from a restored state, or from what an earlier call gave.

        Raises:
            CheckpointError: A restored state is damaged, or of another model.
        """
        adam = adam_for(policy, self.optimizer)
        if self._restored is not None:
            self.step = _load(self._restored, adam)
            self._restored = None
        elif self._adam is not None:
            adam.load_state_dict(self._adam.state_dict())
        self._adam = adam
        return adam

    def save(self, folder: Path) -> None:
        """Write step and state into ``folder``; what stood there is kept until then.

        Raises:
            CheckpointError: It can not be written, as on a full disk.
        """
        state = None if self._adam is None else self._adam.state_dict()
        save_tensors({"step": self.step, "adam": state}, folder / self.FILE)

    def restore(self, folder: Path) -> None:
        """Go on from what ``save`` wrote; it is read when training begins.

        Raises:
            CheckpointError: There is no such state in ``folder``.
        """
        if not (folder / self.FILE).is_file():
            raise CheckpointError(
                f"{folder} holds no {self.FILE}, the state of this engine; go on with the engine "
                "that the run was begun with"
            )
        self._restored = folder / self.FILE


def _load(path: Path, adam: torch.optim.Optimizer) -> int:
    """Put a saved state into an optimiser; after how many steps it was saved."""
    try:
        saved = load_tensors(path)
        if saved["adam"] is not None:
            adam.load_state_dict(saved["adam"])
        return int(saved["step"])
    except (CheckpointError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path} can not be gone on from: {error}; it is damaged, or was written for another "
            "model or other adapters"
        ) from error
