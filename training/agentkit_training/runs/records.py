"""``StepRecord``: the figures of one step, as a line of the run's log."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

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
