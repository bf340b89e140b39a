"""Keeping the rounds of a run in a folder, so that it goes on after the last whole one."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit.evaluation import Benchmark
from agentkit.evaluation.task_files import task_to_json
from agentkit.library import Library
from agentkit.tools.canonical import canonical_json
from agentkit_training.errors import CheckpointError
from agentkit_training.files import whole_file
from agentkit_training.policy.policy import Policy
from agentkit_training.toolace.records import RoundRecord
from agentkit_training.toolace.settings import ToolAceSettings

if TYPE_CHECKING:
    import torch

RECORD = "round.json"
WEIGHTS = "weights.pt"
_RUN = "run.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """What a run is, and what it found before its first round.

    Attributes:
        policy: The policy's name.
        settings: How it is trained, as JSON.
        tasks: Digest of the training and validation tasks and of the library.
        base_accuracy: Of the policy as it came.
    """

    policy: str
    settings: str
    tasks: str
    base_accuracy: float = 0.0

    def differences(self, other: Mapping[str, object]) -> list[str]:
        """What is different in a kept run, in words; accuracies do not count."""
        mine = {**asdict(self), "base_accuracy": None}
        return [
            f"{name} was {other.get(name)} and is {value}"
            for name, value in mine.items()
            if value is not None and other.get(name) != value
        ]


def facts_of(
    policy: Policy,
    settings: ToolAceSettings,
    benchmarks: tuple[Benchmark, ...],
    library: Library | None,
) -> RunFacts:
    """What tells this run from others."""
    digest = hashlib.sha256()
    for one in benchmarks:
        for task in one.tasks:
            digest.update(canonical_json(task_to_json(task)))
        digest.update("\0".join(sorted(d.digest for d in one.definitions)).encode())
    digest.update(b"" if library is None else library.digest.encode())
    return RunFacts(policy=policy.name, settings=settings.to_json(), tasks=digest.hexdigest())


class KeptRounds:
    """The folder of a run: what it is, and for each whole round its record and its weights.

    Args:
        folder: Where; made when it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begun(self, facts: RunFacts) -> float | None:
        """The base accuracy of the run that was begun here; None when there is none.

        Raises:
            CheckpointError: The run here is another one.
        """
        path = self._folder / _RUN
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            base = float(found["base_accuracy"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} can not be read: {error}") from error
        if different := facts.differences(found):
            raise CheckpointError(
                f"{self._folder} holds another run: {'; '.join(different)}. Take another folder, "
                "or delete it to begin anew"
            )
        return base

    def begin(self, facts: RunFacts) -> None:
        """Say what is run here."""
        _write(self._folder / _RUN, json.dumps(asdict(facts), indent=1).encode())

    def rounds(self) -> tuple[RoundRecord, ...]:
        """The whole rounds, in order."""
        found: list[RoundRecord] = []
        while (path := self.of(len(found) + 1) / RECORD).is_file():
            found.append(RoundRecord.from_json(path.read_bytes()))
        return tuple(found)

    def of(self, number: int) -> Path:
        """The folder of one round."""
        return self._folder / f"round-{number}"

    def keep(self, record: RoundRecord, weights: Mapping[str, torch.Tensor]) -> None:
        """Keep a round. The record comes last: a round with a record is whole.

        Raises:
            CheckpointError: It can not be written.
        """
        import torch

        folder = self.of(record.number)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with whole_file(folder / WEIGHTS) as draft:
                torch.save(dict(weights), draft)
        except (OSError, RuntimeError) as error:  # torch raises RuntimeError when the disk is full
            raise CheckpointError(
                f"the weights of round {record.number} can not be written to {folder}: {error}. "
                "Earlier rounds are kept; make room there and start again"
            ) from error
        _write(folder / RECORD, record.to_json().encode())

    def weights(self, number: int) -> dict[str, torch.Tensor]:
        """The weights after a round.

        Raises:
            CheckpointError: They can not be read.
        """
        import torch

        path = self.of(number) / WEIGHTS
        try:
            state: dict[str, torch.Tensor] = torch.load(path, weights_only=True, map_location="cpu")
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise CheckpointError(
                f"{path} can not be read: {error}. Delete {path.parent} to run the round again"
            ) from error
        return state


def tuning_of(folder: Path) -> Path:
    """Where checkpoints of a round's fine-tuning are until the round is whole.

    Args:
        folder: Of the round.
    """
    return folder / "sft"


def trainable_weights(policy: Policy) -> dict[str, torch.Tensor]:
    """A copy of the weights that learn, by name."""
    return {
        name: one.detach().cpu().clone()
        for name, one in policy.model.named_parameters()
        if one.requires_grad
    }


def put_back(policy: Policy, weights: Mapping[str, torch.Tensor]) -> None:
    """Give the policy weights that ``trainable_weights`` took.

    Raises:
        CheckpointError: They are those of another policy.
    """
    import torch

    own = {name: one for name, one in policy.model.named_parameters() if one.requires_grad}
    if {n: one.shape for n, one in own.items()} != {n: one.shape for n, one in weights.items()}:
        raise CheckpointError(
            f"the kept weights are not those of {policy.name}: {len(weights)} tensors for "
            f"{len(own)} that learn, or other shapes. Load the policy as the run began with it"
        )
    with torch.no_grad():
        for name, one in own.items():
            one.copy_(weights[name])


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise CheckpointError(f"{path} can not be written: {error}; make room there") from error
