"""``StepRecord``: the figures of one step, as a line of the run's log."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from agentkit.errors import MissingExtraError
from agentkit.messages import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One step, or one look at held-out tasks.

    Attributes:
        step: Its number, from 0.
        phase: What was done: ``sft``, ``grpo``, ``evaluate`` and the like.
        figures: Numbers by name, such as ``reward``, ``loss``, ``library/tools``.
        labels: How many turns bear each failure label.
        notes: What happened, in words: proposals, tasks left out.
        steps: How many steps the phase has in all; None where nobody knows yet.
    """

    step: int
    phase: str
    figures: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    steps: int | None = None

    def to_line(self) -> str:
        """The record as one line of JSON; numbers that JSON does not know are null."""
        record = {
            "step": self.step,
            "phase": self.phase,
            "figures": {
                name: value if math.isfinite(value) else None
                for name, value in self.figures.items()
            },
            "labels": dict(self.labels),
            "notes": list(self.notes),
            "steps": self.steps,
        }
        kept = {name: value for name, value in record.items() if value or name == "step"}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, record: JsonObject) -> StepRecord:
        """The inverse of ``to_line``, once the line is read as JSON."""
        figures = {
            name: math.nan if value is None else float(value)
            for name, value in record.get("figures", {}).items()
        }
        return cls(
            step=int(record["step"]),
            phase=str(record.get("phase", "")),
            figures=figures,
            labels={name: int(count) for name, count in record.get("labels", {}).items()},
            notes=tuple(record.get("notes", ())),
            steps=record.get("steps"),
        )


Listener: TypeAlias = Callable[[StepRecord], None]
"""Told of each record of a run."""


def ignore(record: StepRecord) -> None:
    """Where records go when nobody looks."""


TrackerName: TypeAlias = Literal["tensorboard", "wandb"]


class Tracker(Protocol):
    """Is told of each step."""

    def log(self, record: StepRecord) -> None:
        """Take the figures of a step."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


def open_tracker(name: TrackerName, *, folder: Path, run: str) -> Tracker:
    """A tracker by name.

    Args:
        name: Which one.
        folder: Where it may write.
        run: The run's name.

    Raises:
        MissingExtraError: Its package is not installed.
    """
    return _TensorBoard(folder) if name == "tensorboard" else _Wandb(folder, run)


def flat(record: StepRecord) -> dict[str, float]:
    """Figures and label counts under one set of names: ``grpo/reward``, ``grpo/label/pass``."""
    figures = {f"{record.phase}/{name}": value for name, value in record.figures.items()}
    labels = {f"{record.phase}/label/{name}": float(n) for name, n in record.labels.items()}
    return {**figures, **labels}


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError(
                "the TensorBoard tracker",
                package="tensorboard",
                install="pip install 'agentkit-training[tensorboard]'",
            ) from error
        self._writer: Any = SummaryWriter(str(folder / "tensorboard"))

    def log(self, record: StepRecord) -> None:
        for name, value in flat(record).items():
            self._writer.add_scalar(name, value, record.step)

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    """A run of W&B, gone on with where the run is.

    Each phase has steps of its own: W&B drops what comes with a lower step than the last.
    """

    def __init__(self, folder: Path, run: str) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtraError(
                "the Weights & Biases tracker",
                package="wandb",
                install="pip install 'agentkit-training[wandb]'",
            ) from error
        self._run: Any = wandb.init(
            project="agentkit-training",
            name=run,
            dir=str(folder),
            id=_lasting_id(folder / "wandb.id"),
            resume="allow",
        )
        self._phases: set[str] = set()

    def log(self, record: StepRecord) -> None:
        step = f"{record.phase}/step"
        if record.phase not in self._phases:
            self._phases.add(record.phase)
            self._run.define_metric(step, hidden=True)
            self._run.define_metric(f"{record.phase}/*", step_metric=step)
        self._run.log({**flat(record), step: record.step})

    def close(self) -> None:
        self._run.finish()


def _lasting_id(file: Path) -> str:
    """What W&B knows the run by, the same each time the run is gone on with."""
    if not file.exists():
        file.write_text(uuid.uuid4().hex[:12], encoding="ascii")
    return file.read_text(encoding="ascii")
