"""What the iterations did, as records and as JSON."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings
from agentkit_training.errors import CheckpointError, check_least
from agentkit_training.files import load_tensors, save_tensors, whole_file
from agentkit_training.fine_tuning.examples import Prompting
from agentkit_training.fine_tuning.training import SftSettings
from agentkit_training.toolace.difficulty import TaskDifficulty

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectionSettings:
    """How samples are chosen.

    Attributes:
        strategy: The paper's choice, or one to compare it with.
        low: D must be larger (alpha; 0 in the paper).
        high: D must be smaller (beta; 0.9 in the paper).
        seed: Of the ``random`` strategy.
    """

    strategy: Strategy = "selected"
    low: float = 0.0
    high: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise UsageError(
                f"low is {self.low} and high is {self.high}; no difficulty lies between them"
            )


@dataclass(frozen=True, kw_only=True)
class ToolAceSection:
    """How to iterate. The defaults are those of ToolACE-R, section 4.1.

    Attributes:
        rounds: Most iterations; the paper finds no gain after the third.
        least_gain: A round that raises the accuracy by less ends the run. The paper says
            "marginal"; a point is our reading of it.
        attempts: Samples of each task for its difficulty (k).
        temperature: Of these samples.
        selection: Which samples are trained on.
        refines: Whether self-refine samples are added; each refines one of the samples.
    """

    rounds: int = 3
    least_gain: float = 0.01
    attempts: int = 8
    temperature: float = 1.0
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    refines: bool = True

    def __post_init__(self) -> None:
        check_least(self, "rounds", "attempts")


@dataclass(frozen=True, kw_only=True)
class ToolAceSettings(ToolAceSection):
    """How to iterate, and what the rest of a configuration says about it.

    Attributes:
        no_call: What to say where no call is right; such tasks are left out without it.
        prompting: How tools and calls are written.
        answer_tokens: Longest answer in rollouts and evaluation.
        batch_size: Most answers written at the same time.
        evaluation: How tasks are asked, in training with the same words; ``refine="adaptive"`` is
            Algorithm 1 and holds for validation alone.
        sft: How to fine-tune on what was selected: one epoch in the paper.
        seed: Of the samples; each round draws others.
    """

    no_call: str = ""
    prompting: Prompting = field(default_factory=Prompting)
    answer_tokens: int = 128
    batch_size: int = 64
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    sft: SftSettings = field(default_factory=SftSettings)
    seed: int = 0


Reason: TypeAlias = Literal["too_easy", "too_difficult", "not_drawn"]
"""Why a sample is not taken: D is alpha or less; D is beta or more; chance took others."""

Strategy: TypeAlias = Literal["selected", "all", "random"]
"""``selected`` as in the paper. ``all``, and ``random`` (as many as ``selected`` takes, drawn from
all), are what it is compared with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which samples are taken.

    Attributes:
        taken: Their ids, in order.
        excluded: For each other one the reason, by id.
    """

    taken: tuple[str, ...] = ()
    excluded: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many were excluded for each reason."""
        return dict(Counter(self.excluded.values()))


def select(
    tasks: Iterable[TaskDifficulty],
    settings: SelectionSettings = SelectionSettings(),
) -> Selection:
    """Choose among samples whose difficulty is known.

    Args:
        tasks: The samples; ids are unique.
        settings: How to choose.

    Example:
        >>> def one(name, d):
        ...     return TaskDifficulty(task_id=name, difficulty=d, attempts=(), shortfalls=())
        >>> chosen = select([one("a", 0.0), one("b", 0.5), one("c", 0.9)])
        >>> chosen.taken, dict(chosen.excluded)
        (('b',), {'a': 'too_easy', 'c': 'too_difficult'})
    """
    known = list(tasks)
    selected = _between(known, settings)
    match settings.strategy:
        case "selected":
            return selected
        case "all":
            return Selection(taken=tuple(one.task_id for one in known))
        case "random":
            return _drawn(known, len(selected.taken), settings.seed)


def _between(tasks: Sequence[TaskDifficulty], settings: SelectionSettings) -> Selection:
    excluded: dict[str, Reason] = {}
    for one in tasks:
        if one.difficulty <= settings.low:
            excluded[one.task_id] = "too_easy"
        elif one.difficulty >= settings.high:
            excluded[one.task_id] = "too_difficult"
    taken = tuple(one.task_id for one in tasks if one.task_id not in excluded)
    return Selection(taken=taken, excluded=excluded)


def _drawn(tasks: Sequence[TaskDifficulty], size: int, seed: int) -> Selection:
    generator = random.Random(seed)  # noqa: S311 - a sample, not a secret
    drawn = set(generator.sample(range(len(tasks)), size))
    return Selection(
        taken=tuple(one.task_id for place, one in enumerate(tasks) if place in drawn),
        excluded={
            one.task_id: "not_drawn" for place, one in enumerate(tasks) if place not in drawn
        },
    )


_RECORD, _WEIGHTS = "round.json", "weights.pt"

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
        left_out: How many tasks could make no sample, by reason.
        examples: Examples that were trained on.
        too_long: Ids of samples that were selected and are too long to train on.
        accuracy_before: Share of the validation tasks that are solved, before the round.
        accuracy_after: After it.
        losses: Of each optimiser step, but for those before the round was gone on with.
        steps: Optimiser steps in all.
    """

    number: int
    samples: tuple[SampleRecord, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    examples: int = 0
    too_long: tuple[str, ...] = ()
    accuracy_before: float = 0.0
    accuracy_after: float = 0.0
    losses: tuple[float, ...] = ()
    steps: int = 0

    @property
    def gain(self) -> float:
        """How much accuracy the round brought."""
        return self.accuracy_after - self.accuracy_before

    @property
    def taken(self) -> tuple[str, ...]:
        """Ids of the samples that were selected."""
        return tuple(one.sample_id for one in self.samples if one.excluded is None)

    def in_words(self) -> str:
        """What was selected, why the rest was not, and what it brought.

        Example:
            >>> hard = SampleRecord(
            ...     sample_id="a", difficulty=1.0, attempts=(), excluded="too_difficult"
            ... )
            >>> RoundRecord(number=1, samples=(hard,)).in_words()
            'round 1: 0 of 1 samples selected (1 too difficult); nothing was learned'
        """
        reasons = Counter(one.excluded for one in self.samples if one.excluded is not None)
        why = [f"{count} {name.replace('_', ' ')}" for name, count in reasons.most_common()]
        taken = f"{len(self.taken)} of {len(self.samples)}"
        told = f"round {self.number}: {taken} samples selected"
        told += f" ({', '.join(why)})" if why else ""
        if self.left_out:
            lost = ", ".join(f"{count} ({reason})" for reason, count in self.left_out.items())
            told += f"; left out: {lost}"
        if not self.examples:
            return f"{told}; nothing was learned"
        before, after = f"{self.accuracy_before:.1%}", f"{self.accuracy_after:.1%}"
        return (
            f"{told}; {self.examples} examples learned; validation accuracy {before} before and "
            f"{after} after"
        )

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

    def ending(self, least_gain: float) -> str:
        """Why there is no further round, and whose weights the policy has, in words.

        Args:
            least_gain: What a round had to bring.
        """
        last = self.rounds[-1]
        match self.stopped:
            case "nothing_selected":
                why = f"round {last.number} had nothing to learn from{_advice(last)}"
            case "marginal_gain":
                gained = f"round {last.number} gained {100 * last.gain:.1f} points"
                why = f"{gained}, less than least_gain {least_gain}"
            case "all_rounds":
                why = f"all rounds are done, {last.number} of them"
        kept = f"has the weights of round {self.best}" if self.best else "is as it came"
        return f"ended: {why}; the policy {kept}"


def _advice(last: RoundRecord) -> str:
    """What helps where the policy comes near no answer; empty where it may be good enough."""
    if not last.samples or any(one.excluded != "too_difficult" for one in last.samples):
        return ""
    return ", as all samples are too difficult (fine-tune without rounds first, or select higher)"


def round_folder(folder: Path, number: int) -> Path:
    """Where a round is kept: its record and its weights, until then checkpoints of fine-tuning."""
    return folder / f"round-{number}"


def kept_rounds(folder: Path) -> tuple[RoundRecord, ...]:
    """The whole rounds of the run in a folder, in order.

    Raises:
        CheckpointError: One can not be read.
    """
    found: list[RoundRecord] = []
    while (path := round_folder(folder, len(found) + 1) / _RECORD).is_file():
        found.append(RoundRecord.from_json(path.read_bytes()))
    return tuple(found)


def kept_weights(folder: Path, number: int) -> dict[str, torch.Tensor]:
    """The weights after a round.

    Raises:
        CheckpointError: They can not be read.
    """
    return load_tensors(round_folder(folder, number) / _WEIGHTS)


def keep_round(folder: Path, record: RoundRecord, weights: Mapping[str, torch.Tensor]) -> None:
    """Keep a round. The record comes last: a round with a record is whole.

    Raises:
        CheckpointError: It can not be written.
    """
    place = round_folder(folder, record.number)
    save_tensors(weights, place / _WEIGHTS)
    try:
        with whole_file(place / _RECORD) as draft:
            draft.write_text(record.to_json(), encoding="utf-8")
    except OSError as error:
        raise CheckpointError(f"{place} can not be written: {error}; make room there") from error


def tuning_of(folder: Path, number: int) -> Path:
    """Where checkpoints of a round's fine-tuning are until the round is whole."""
    return round_folder(folder, number) / "sft"
