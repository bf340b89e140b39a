"""Rankers: anything that scores candidates, such as a cross-encoder or a planner model."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.errors import UsageError
from agentkit.messages import Usage
from agentkit.retrieval.goals import SubGoal
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """What a ranker found.

    Attributes:
        scores: By tool name, higher is better, 0 for no fit; they are divided by the highest.
            Tools that are left out count as 0, names that were not asked for are ignored.
        usage: What it spent on models.
        notes: Fallbacks that were taken.
    """

    scores: Mapping[str, float]
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


Ranker: TypeAlias = Callable[
    [SubGoal, Sequence[ToolDefinition]],
    Ranking | Mapping[str, float] | Awaitable[Ranking | Mapping[str, float]],
]
"""Scores candidates for a sub-goal: a plain or an async callable, called once with all of them."""


async def ranked_by(ranker: Ranker, goal: SubGoal, candidates: Sequence[ToolDefinition]) -> Ranking:
    """What ``ranker`` says of the candidates, its scores between 0 and 1.

    Raises:
        UsageError: It gave something else than finite scores by name.
    """
    answer: object = ranker(goal, candidates)
    if inspect.isawaitable(answer):
        answer = await answer
    ranking = Ranking(scores=answer) if isinstance(answer, Mapping) else answer
    if not isinstance(ranking, Ranking):
        raise UsageError(
            f"the ranker {ranker!r} returned {type(answer).__name__}; it must return a mapping "
            "from tool names to scores, or a Ranking"
        )
    names = {candidate.name for candidate in candidates}
    scores = {name: score for name, score in ranking.scores.items() if name in names}
    for name, score in scores.items():
        if not _is_finite(score):
            raise UsageError(
                f"the ranker {ranker!r} gave {name!r} the score {score!r}; a score is a finite "
                "number, and 0 or nothing is said of a tool that does not fit"
            )
    highest = max(scores.values(), default=0.0)
    shares = {
        name: max(score, 0.0) / highest if highest > 0 else 0.0 for name, score in scores.items()
    }
    return Ranking(scores=shares, usage=ranking.usage, notes=ranking.notes)


def _is_finite(score: object) -> bool:
    try:
        return math.isfinite(score)  # type: ignore[arg-type]  # asked of anything
    except (TypeError, OverflowError):
        return False
