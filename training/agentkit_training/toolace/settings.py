"""How the iterations go on."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings
from agentkit_training.fine_tuning.examples import Prompting
from agentkit_training.fine_tuning.settings import SftSettings
from agentkit_training.ranges import check_least
from agentkit_training.toolace.difficulty import TaskDifficulty


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
        refines: Whether self-refine samples are added.
        first_answer: Which answer these refine: one of the samples, which costs nothing more, or
            the greedy one, which is what the runtime will refine.
    """

    rounds: int = 3
    least_gain: float = 0.01
    attempts: int = 8
    temperature: float = 1.0
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    refines: bool = True
    first_answer: Literal["sampled", "greedy"] = "sampled"

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

    def to_json(self) -> str:
        """The settings as JSON text, by which runs are told apart. More rounds are no other run."""
        return json.dumps({**asdict(self), "rounds": None, "batch_size": None}, sort_keys=True)


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
