"""``MainJobReport``: what the main job found, as typed numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

from agentkit.episodes import StopReason
from agentkit.evaluation.scoring import Score
from agentkit.messages import Usage

Condition = Literal["retrieved", "given"]
"""Where the offered tools come from: our retrieval over the whole catalogue, or the benchmark."""

RECALL_AT = (1, 5, 32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One question, asked under one condition.

    Attributes:
        task_id: The question.
        category: Its category.
        condition: Where the offered tools came from.
        score: How good the calls are.
        gold_offered: Whether every gold tool was among the offered ones.
        offered: How many tools were offered.
        refinements: Rounds after the direct answer.
        converged: Whether two consecutive answers agreed; None when nothing was refined.
        usage: What the model read and wrote.
        seconds: Wall time of the run.
        stop_reason: Why the run ended.
        episode_id: Where to look for everything else.
        error: What went wrong with the model; empty when nothing did.
    """

    task_id: str
    category: str
    condition: Condition
    score: Score
    gold_offered: bool
    offered: int
    refinements: int
    converged: bool | None
    usage: Usage
    seconds: float
    stop_reason: StopReason
    episode_id: str
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalReport:
    """How well the tools of the gold calls are found.

    Attributes:
        questions: How many were asked.
        recall: Mean share of a question's gold tools among the first k, by k.
        recall_by_name: The same, when a tool of the same upstream name counts as the gold one.
        offered_recall: Mean share of the gold tools among those offered in full.
        mean_offered: Mean number of tools offered in full.
        mean_tokens: Mean estimate of the prompt tokens that the offer costs.
        seconds: Wall time of all of them, the indexing of the catalogue included.
    """

    questions: int
    recall: Mapping[int, float]
    recall_by_name: Mapping[int, float]
    offered_recall: float
    mean_offered: float
    mean_tokens: float
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionReport:
    """All answers under one condition, counted.

    Attributes:
        condition: Where the offered tools came from.
        questions: How many were asked.
        gold_offered: Questions for which every gold tool was offered.
        right_tools: Answers that called exactly the gold tools.
        right_tools_by_name: The same, namesakes of a gold tool counted as it.
        exact: Answers that are exactly right.
        exact_by_name: The same, namesakes counted.
        refinements: Mean rounds after the direct answer.
        converged: Answers on which two consecutive rounds agreed.
        prompt_tokens: Mean tokens read per question.
        cached_tokens: The mean part of them that a prompt cache served.
        completion_tokens: Mean tokens written per question.
        seconds: Mean wall time per question.
        errors: Questions on which the model failed; they count as wrong.
    """

    condition: Condition
    questions: int
    gold_offered: int
    right_tools: int
    right_tools_by_name: int
    exact: int
    exact_by_name: int
    refinements: float
    converged: int
    prompt_tokens: float
    cached_tokens: float
    completion_tokens: float
    seconds: float
    errors: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryReport:
    """The answers to one category's questions, by condition.

    Attributes:
        category: The category.
        questions: How many were asked, by condition.
        right_tools: Answers that called exactly the gold tools, by condition.
        exact: Answers that are exactly right, by condition.
    """

    category: str
    questions: Mapping[Condition, int]
    right_tools: Mapping[Condition, int]
    exact: Mapping[Condition, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class NotScored:
    """Questions that were left out, and why."""

    category: str
    questions: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MainJobReport:
    """What the main job found.

    Attributes:
        run_id: Label of the run's episodes (``run=...``).
        benchmark: Name and release of the questions.
        model: The model's name.
        catalogue: Definitions in the library.
        names: Different names among them upstream.
        library_version: The version that the runs were pinned to.
        planned: Questions to ask.
        seed: Of the sample.
        refine: How calls were refined.
        retrieval: How well tools were found; None when that was not measured.
        answers: Each question and condition, in the order asked.
        not_scored: What was left out of the sample.
        seconds: Wall time of everything.
        stopped: Why fewer questions were asked than planned; empty when all were.
    """

    run_id: str
    benchmark: str
    model: str
    catalogue: int
    names: int
    library_version: int
    planned: int
    seed: int
    refine: str
    retrieval: RetrievalReport | None
    answers: tuple[Answer, ...]
    not_scored: tuple[NotScored, ...] = ()
    seconds: float = 0.0
    stopped: str = ""

    @property
    def conditions(self) -> tuple[ConditionReport, ...]:
        """The answers counted, one report a condition, in the order first seen."""
        order = dict.fromkeys(answer.condition for answer in self.answers)
        return tuple(count_answers(c, self.answers) for c in order)

    @property
    def categories(self) -> tuple[CategoryReport, ...]:
        """The answers counted by category, in alphabetical order."""
        names = sorted({answer.category for answer in self.answers})
        return tuple(_count_category(name, self.answers) for name in names)

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        record = asdict(self)
        record["conditions"] = [asdict(condition) for condition in self.conditions]
        record["categories"] = [asdict(category) for category in self.categories]
        return record


def count_answers(condition: Condition, answers: Iterable[Answer]) -> ConditionReport:
    """Count the answers under one condition.

    Args:
        condition: The condition; answers under another one are passed over.
        answers: The answers.
    """
    own = [answer for answer in answers if answer.condition == condition]
    return ConditionReport(
        condition=condition,
        questions=len(own),
        gold_offered=sum(answer.gold_offered for answer in own),
        right_tools=sum(answer.score.right_tools for answer in own),
        right_tools_by_name=sum(answer.score.right_tools_by_name for answer in own),
        exact=sum(answer.score.exact for answer in own),
        exact_by_name=sum(answer.score.exact_by_name for answer in own),
        refinements=mean([answer.refinements for answer in own]),
        converged=sum(answer.converged is True for answer in own),
        prompt_tokens=mean([answer.usage.prompt_tokens for answer in own]),
        cached_tokens=mean([answer.usage.cached_tokens for answer in own]),
        completion_tokens=mean([answer.usage.completion_tokens for answer in own]),
        seconds=mean([answer.seconds for answer in own]),
        errors=sum(bool(answer.error) for answer in own),
    )


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 for no values."""
    return fmean(values) if values else 0.0


def _count_category(category: str, answers: Iterable[Answer]) -> CategoryReport:
    own = [answer for answer in answers if answer.category == category]
    return CategoryReport(
        category=category,
        questions=dict(Counter(answer.condition for answer in own)),
        right_tools=dict(Counter(answer.condition for answer in own if answer.score.right_tools)),
        exact=dict(Counter(answer.condition for answer in own if answer.score.exact)),
    )
