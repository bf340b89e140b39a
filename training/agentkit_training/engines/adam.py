"""The optimiser of an engine: made for a policy, kept from call to call, saved and taken up."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit_training.atomic import whole_file
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import CheckpointError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


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
        import torch

        adam = torch.optim.AdamW(
            policy.trainable,
            lr=settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )
        if self._restored is not None:
            self.step = _taken_up(self._restored, adam)
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
        import torch

        state = None if self._adam is None else self._adam.state_dict()
        try:
            with whole_file(folder / self.file) as draft:
                torch.save({"step": self.step, "adam": state}, draft)
        except (OSError, RuntimeError) as error:  # torch raises either when a disk is full
            raise CheckpointError(
                f"the state of step {self.step} can not be written to {folder}: {error}; the run "
                "itself is unharmed. Make room, or save elsewhere"
            ) from error

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


def _taken_up(path: Path, adam: torch.optim.Optimizer) -> int:
    """Put a saved state into an optimiser; the step that it was saved after."""
    import torch

    try:
        state = torch.load(path, weights_only=True)
        step = int(state["step"])
        if state["adam"] is not None:
            adam.load_state_dict(state["adam"])
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, pickle.PickleError) as error:
        raise CheckpointError(
            f"{path} can not be gone on from: {error}; it is damaged, or was written for another "
            "model or other adapters"
        ) from error
    return step
