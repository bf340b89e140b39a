"""Keeping the state of fine-tuning, so that a run that was broken off goes on as if it was not."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit_training.errors import CheckpointError
from agentkit_training.files import room_beside, whole_file
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.settings import SftSettings

if TYPE_CHECKING:
    from agentkit_training.fine_tuning.settings import MasterWeights

FILE = "sft.pt"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunIdentity:
    """What must be equal for one run to go on from another's checkpoint.

    Attributes:
        policy: The policy's name.
        settings: How it is trained, as JSON.
        examples: Digest of the examples.
    """

    policy: str
    settings: str
    examples: str

    @classmethod
    def of(cls, policy: str, settings: SftSettings, examples: Sequence[Example]) -> RunIdentity:
        """The identity of a run."""
        digest = hashlib.sha256()
        for one in examples:
            digest.update(repr((one.task_id, one.prompt, one.completion, *one.written)).encode())
        free = ("save_every", "input_tokens", "gradient_checkpointing")  # learn the same
        relevant = {**asdict(settings), **dict.fromkeys(free)}
        return cls(
            policy=policy,
            settings=json.dumps(relevant, sort_keys=True),
            examples=digest.hexdigest(),
        )

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """What is different in a checkpoint, in words; empty when it is the same run."""
        return [
            f"{name} was {other.get(name)} and is {value}"
            for name, value in asdict(self).items()
            if other.get(name) != value
        ]


def save(folder: Path, *, step: int, weights: MasterWeights, identity: RunIdentity) -> None:
    """Write the state after ``step`` steps; an earlier one is kept until this one is whole.

    Raises:
        CheckpointError: It can not be written, for lack of room for example.
    """
    import torch

    state = {
        "step": step,
        "identity": asdict(identity),
        "weights": weights.state(),
        "adam": weights.adam.state_dict(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / FILE) as draft:
            torch.save(state, draft)
    except (OSError, RuntimeError) as error:  # torch raises RuntimeError when the disk is full
        raise CheckpointError(
            f"the checkpoint after step {step} can not be written to {folder}: {error}"
            f"{room_beside(folder)}. The one before is kept; make room there and go on from it "
            "with --resume"
        ) from error


def steps_taken(folder: Path) -> int:
    """How many steps had been taken when the checkpoint in a folder was written; 0 without one.

    Raises:
        CheckpointError: It can not be read.
    """
    path = folder / FILE
    return int(_read(path)["step"]) if path.is_file() else 0


def restore(folder: Path, *, weights: MasterWeights, identity: RunIdentity) -> int:
    """Take up what ``save`` wrote.

    Returns:
        The steps that have been taken; 0 when there is no checkpoint.

    Raises:
        CheckpointError: It can not be read, or is that of another run.
    """
    path = folder / FILE
    if not path.is_file():
        return 0
    state = _read(path)
    if found := identity.differences(state["identity"]):
        raise CheckpointError(
            f"{path} is the checkpoint of another run: {'; '.join(found)}. Take another folder, or "
            "delete it to begin anew"
        )
    weights.load(state["weights"])
    weights.adam.load_state_dict(state["adam"])
    return int(state["step"])


def _read(path: Path) -> dict[str, Any]:
    """What ``save`` wrote; tensors are read from the file when they are looked at."""
    import torch

    try:
        state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError) as error:
        raise CheckpointError(
            f"{path} can not be read: {error}. Delete it to begin anew"
        ) from error
    return state
