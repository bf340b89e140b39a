"""What the iterations did, as records and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from agentkit_training.errors import CheckpointError
from agentkit_training.selection import Reason

StopReason: TypeAlias = Literal["marginal_gain", "all_rounds", "nothing_selected"]
"""Why there is no further round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleRecord:
    """One training sample in one round.

    Attributes:
        sample_id: Of the task, or of its self-refine sample.
        difficulty: D, by the policy as it was when the round began.
        attempts: What it called in each attempt, as text.
        excluded: Why it was not trained on; None when it was.
    """

    sample_id: str
    difficulty: float
    attempts: tuple[str, ...]
    excluded: Reason | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundRecord:
    """One iteration.

    Attributes:
        number: From 1.
        samples: Every sample whose difficulty was estimated.
        histogram: How many samples have D in each tenth of [0, 1].
        left_out: How many tasks could make no sample, by reason.
        unchanged: Ids of self-refine samples whose first answer was right already.
        examples: Examples that were trained on.
        too_long: Ids of samples that were selected and are too long to train on.
        accuracy_before: Share of the validation tasks that are solved, before the round.
        accuracy_after: After it.
        losses: Of each optimiser step.
        seconds: Wall time of each phase.
    """

    number: int
    samples: tuple[SampleRecord, ...] = ()
    histogram: tuple[int, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    unchanged: tuple[str, ...] = ()
    examples: int = 0
    too_long: tuple[str, ...] = ()
    accuracy_before: float = 0.0
    accuracy_after: float = 0.0
    losses: tuple[float, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        """How much accuracy the round brought."""
        return self.accuracy_after - self.accuracy_before

    @property
    def taken(self) -> tuple[str, ...]:
        """Ids of the samples that were selected."""
        return tuple(one.sample_id for one in self.samples if one.excluded is None)

    def to_json(self) -> str:
        """The record as JSON text."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> RoundRecord:
        """The inverse of ``to_json``.

        Raises:
            CheckpointError: The text is no such record.
        """
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_json(text)
        except ValidationError as error:
            raise CheckpointError(
                f"the record of a round can not be read: {error}. Delete its folder to run the "
                "round again"
            ) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolAceReport:
    """What a run did.

    Attributes:
        base_accuracy: Of the policy as it came.
        rounds: The iterations.
        best: Number of the round whose weights the policy has now; 0 when none was better than
            the policy as it came.
        stopped: Why there is no further round.
    """

    base_accuracy: float
    rounds: tuple[RoundRecord, ...]
    best: int
    stopped: StopReason

    @property
    def accuracy(self) -> float:
        """Of the policy as it is now, on the validation tasks."""
        return self.rounds[self.best - 1].accuracy_after if self.best else self.base_accuracy
