"""The optimiser of an engine: made for a policy, kept from call to call, saved and taken up."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import CheckpointError
from agentkit_training.files import whole_file
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
    _waiting: Any = field(init=False, default=None)

    def of(self, policy: Policy, settings: OptimizerSettings) -> torch.optim.Optimizer:
        """The optimiser of a policy's trainable weights.

        It goes on from a restored state, or from what an earlier call gave.

        Raises:
            CheckpointError: A restored state is damaged, or of another model.
        """
        adam = self.empty(policy.trainable, settings)
        self.fill(adam)
        return adam

    def empty(
        self, parameters: Iterable[torch.nn.Parameter], settings: OptimizerSettings
    ) -> torch.optim.Optimizer:
        """An optimiser without a state, which ``fill`` gives it; ``step`` is known from here on.

        Raises:
            CheckpointError: A restored state is damaged.
        """
        if self._restored is not None:
            self.step, self._waiting = _read(self._restored)
        known = tuple(parameters)
        return self.kind(known)(
            known,
            lr=settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )

    def kind(self, parameters: Sequence[torch.nn.Parameter]) -> type[torch.optim.AdamW]:
        """AdamW, or where some weights are coarse, one that steps float32 masters of them."""
        import torch

        from agentkit_training.engines.master_adam import MasterAdam, is_coarse

        return MasterAdam if any(map(is_coarse, parameters)) else torch.optim.AdamW

    def fill(self, adam: torch.optim.Optimizer) -> None:
        """Let an optimiser go on from a restored state, or from where the one before it was.

        Raises:
            CheckpointError: A restored state is of another model.
        """
        if self._restored is not None:
            try:
                if self._waiting is not None:
                    self.load(adam, self._waiting)
            except (RuntimeError, KeyError, TypeError, ValueError) as error:
                raise _unfit(self._restored, error) from error
            self._restored = self._waiting = None
        elif self._adam is not None:
            adam.load_state_dict(self._adam.state_dict())
        self._adam = adam

    def whole(self, adam: torch.optim.Optimizer) -> dict[str, Any]:
        """The state as it is saved: that of all weights."""
        return adam.state_dict()

    def load(self, adam: torch.optim.Optimizer, whole: dict[str, Any]) -> None:
        """Put what ``whole`` gave into an optimiser.

        Raises:
            ValueError: It is of other weights.
        """
        adam.load_state_dict(whole)

    def save(self, folder: Path) -> None:
        """Write step and state into ``folder``; what stood there is kept until then.

        Raises:
            CheckpointError: It can not be written, as on a full disk.
        """
        import torch

        state = None if self._adam is None else self.whole(self._adam)
        try:
            with whole_file(folder / self.file) as draft:
                torch.save({"step": self.step, "adam": state}, draft)
        except (OSError, RuntimeError) as error:  # torch raises either when a disk is full
            raise CheckpointError(
                f"the state of step {self.step} can not be written to {folder}: {error}; the run "
                "itself is unharmed. Make room, or save elsewhere"
            ) from error

    def give(self) -> None:
        """Hand another process what it saves; nothing where that one has all itself."""

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


def _read(path: Path) -> tuple[int, Any]:
    """A saved state: after how many steps, and the optimiser's."""
    import torch

    try:
        state = torch.load(path, weights_only=True)
        return int(state["step"]), state["adam"]
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, pickle.PickleError) as error:
        raise _unfit(path, error) from error


def _unfit(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{path} can not be gone on from: {error}; it is damaged, or was written for another "
        "model or other adapters"
    )
