"""The optimiser's state in a file: written for a checkpoint, read to go on."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit_training.errors import CheckpointError

if TYPE_CHECKING:
    import torch


def write_state(path: Path, optimizer: torch.optim.Optimizer | None, *, step: int) -> None:
    """Write how far an engine is; what stood there is kept until it is written.

    Args:
        path: Where to.
        optimizer: Its optimiser; None before the first step.
        step: Steps that were taken.

    Raises:
        CheckpointError: It can not be written, as on a full disk.
    """
    import torch

    state = None if optimizer is None else optimizer.state_dict()
    new = path.with_name(f"{path.name}.new")
    try:
        torch.save({"step": step, "adam": state}, new)
        new.replace(path)
    except (OSError, RuntimeError) as error:  # torch raises either when a disk is full
        new.unlink(missing_ok=True)
        raise CheckpointError(
            f"the state of the engine can not be written to {path}: {error}; the run itself is "
            "unharmed. Make room, or save elsewhere"
        ) from error


def take_up_state(path: Path, optimizer: torch.optim.Optimizer) -> int:
    """Put a written state into an optimiser.

    Args:
        path: Where it was written.
        optimizer: Of as many parameters, of the same shapes.

    Returns:
        Steps that were taken.

    Raises:
        CheckpointError: It is damaged, or of another model.
    """
    import torch

    try:
        state = torch.load(path, weights_only=True)
        step = int(state["step"])
        if state["adam"] is not None:
            optimizer.load_state_dict(state["adam"])
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, pickle.PickleError) as error:
        raise CheckpointError(
            f"{path} can not be gone on from: {error}; it is damaged, or was written for another "
            "model or other adapters"
        ) from error
    return step
