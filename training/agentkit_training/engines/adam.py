"""The optimiser of an engine: made for a policy, kept from call to call, saved and restored."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import CheckpointError, PolicyError
from agentkit_training.files import save_tensors
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
class KeptAdam:
    """How far an engine is, and the AdamW that it got there with.

    Attributes:
        file: The name of its file in a checkpoint.
        step: Steps that were taken.
    """

    file: str
    step: int = 0
    _adam: torch.optim.Optimizer | None = field(init=False, default=None)
    _restored: Path | None = field(init=False, default=None)

    def of(self, policy: Policy, settings: OptimizerSettings) -> torch.optim.Optimizer:
        """The optimiser of a policy's trainable weights.

        It goes on from a restored state, or from what an earlier call gave.

        Raises:
            CheckpointError: A restored state is damaged, or of another model.
        """
        adam = adam_for(policy, settings)
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
        save_tensors({"step": self.step, "adam": state}, folder / self.file)

    def restore(self, folder: Path) -> None:
        """Go on from what ``save`` wrote; it is read when the optimiser is asked for.

        Raises:
            CheckpointError: There is no such state in ``folder``.
        """
        if not (folder / self.file).is_file():
            raise CheckpointError(
                f"{folder} holds no {self.file}, the state of this engine; go on with the engine "
                "that the run was begun with"
            )
        self._restored = folder / self.file


def _load(path: Path, adam: torch.optim.Optimizer) -> int:
    """Put a saved state into an optimiser; after how many steps it was saved."""
    import torch

    try:
        saved: dict[str, Any] = torch.load(path, weights_only=True)
        if saved["adam"] is not None:
            adam.load_state_dict(saved["adam"])
        return int(saved["step"])
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, pickle.PickleError) as error:
        raise CheckpointError(
            f"{path} can not be gone on from: {error}; it is damaged, or was written for another "
            "model or other adapters"
        ) from error
