"""``MainJob``: the settings of the main job, and what it tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agentkit.episodes import RefineMode
from agentkit.evaluation.report import Answer, Condition
from agentkit.models.base import ModelSettings, ToolChoice


@dataclass(frozen=True, kw_only=True, slots=True)
class MainJob:
    """What to do.

    Attributes:
        questions: How many questions the model is asked, each under every condition.
        retrieval_questions: How many questions retrieval alone is measured on.
        conditions: Where offered tools come from.
        refine: How proposed calls are refined.
        max_refinements: Most rounds.
        tool_choice: ``required`` forces a call. Questions whose right answer is no call are then
            left out, and the report says so.
        max_offered: Questions that come with more tools than this are left out: their prompt
            would not fit a small model's context.
        budget_seconds: No further question is begun after this long; None for no bound.
        settings: How to generate.
        seed: Of the sample.
    """

    questions: int = 16
    retrieval_questions: int = 400
    conditions: tuple[Condition, ...] = ("retrieved", "given")
    refine: RefineMode = "adaptive"
    max_refinements: int = 5
    tool_choice: ToolChoice = "required"
    max_offered: int = 8
    budget_seconds: float | None = 300.0
    settings: ModelSettings = ModelSettings(temperature=0.0, max_tokens=256)  # noqa: RUF009 - immutable
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobProgress:
    """How far the job is.

    Attributes:
        stage: What is going on.
        done: How much of it is done.
        total: How much there is.
        answer: The newest answer, in the stage ``questions``.
    """

    stage: Literal["retrieval", "questions"]
    done: int
    total: int
    answer: Answer | None = None


Listener = Callable[[JobProgress], None]


def ignore(progress: JobProgress) -> None:
    """Where progress goes when nobody looks."""
