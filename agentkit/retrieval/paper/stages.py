"""The levels of Algorithm 2 that ask a model, L2 to L4, as stages.

L1 is ``Signature(mode="hard")``, the paper's pruning by types.

Each is a stage like any other, so one of them may also stand in a list of its own making, such as
``CascadeRetriever(stages=[*default_stages(), SemanticScan(judge, keep=8)])``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.paper.judge import ModelJudge
from agentkit.retrieval.paper.prompts import (
    CHECK_SPECIFICATIONS,
    RANK_DESCRIPTIONS,
    RANK_EXAMPLES,
)
from agentkit.retrieval.stages.abstraction import with_features
from agentkit.retrieval.survivors import Survivors
from agentkit.tools.definition import ToolDefinition

Surface: TypeAlias = Literal["best", "survivors"]
"""What L4 leaves: ``best`` the one tool v* (Algorithm 2, line 9), ``survivors`` all of S3 in the
judge's order (section 3.2, where "the final set S4 is surfaced")."""


class SemanticScan:
    """L2: the judge ranks what is left by description; the ``keep`` best stay (line 7).

    Args:
        judge: Ranks.
        keep: k2, 32 in the paper.
    """

    name = "L2 description"

    def __init__(self, judge: ModelJudge, *, keep: int = 32) -> None:
        self._judge = judge
        self._keep = keep

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Keep the best by the judge's order."""
        ranked = await self._judge.rank(RANK_DESCRIPTIONS, goal.intent, survivors.pool, self._keep)
        kept = ranked.order[: self._keep]
        left = _in_order(survivors, kept, "L2", "description").spent(ranked.cost.usage)
        return _noted(left, self.name, ranked.notes)


class ConstraintCheck:
    """L3: the judge accepts or rejects by conditions; rejected tools drop out (line 8).

    A tool that declares no conditions has nothing that could fail, and costs nothing. When all
    are rejected the step has no tool, as in the paper; a note says so.

    Args:
        judge: Checks.
    """

    name = "L3 specification"

    def __init__(self, judge: ModelJudge) -> None:
        self._judge = judge

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Drop what the judge rejects."""
        checked = await self._judge.check(CHECK_SPECIFICATIONS, goal.intent, survivors.pool)
        left = survivors.spent(checked.cost.usage)
        if checked.rejected:
            left = left.where(lambda definition: definition.name not in checked.rejected)
            if not len(left):
                left = left.note(f"{self.name}: every candidate was rejected, the step has no tool")
        return _noted(left, self.name, checked.notes)


class ExampleRerank:
    """L4: the judge ranks by worked examples; the best one is the step's tool (lines 9 and 10).

    Graph features are attached to what is left. Where no candidate has examples the order of L2
    decides, at no cost.

    Args:
        judge: Ranks.
        surface: What is left, see ``Surface``.
    """

    name = "L4 examples"

    def __init__(self, judge: ModelJudge, *, surface: Surface = "best") -> None:
        self._judge = judge
        self._surface = surface

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Order what is left, keep the best, and say where it stands in the DAG."""
        ranked = await self._judge.rank(RANK_EXAMPLES, goal.intent, survivors.pool, 1)
        kept = ranked.order[:1] if self._surface == "best" else ranked.order
        left = _in_order(survivors, kept, "L4", "examples").spent(ranked.cost.usage)
        return _noted(with_features(left), self.name, ranked.notes)


def _in_order(
    survivors: Survivors, order: Sequence[ToolDefinition], level: str, field: str
) -> Survivors:
    """Only the tools of ``order``, ranked so; scores fall from 1 and are added to those before.

    They are raised by as much as any tool has so far, so that the last level decides.
    """
    raised = max((hit.score for hit in survivors.hits), default=0.0)
    names = {definition.name for definition in order}
    left = survivors.where(lambda definition: definition.name in names)
    before = {hit.definition.name: hit.score for hit in left.hits}
    scores = {
        definition.name: raised + 1 - place / len(order) - before.get(definition.name, 0.0)
        for place, definition in enumerate(order)
    }
    reasons = {
        definition.name: f"{level}: {place} of {len(order)}"
        for place, definition in enumerate(order, start=1)
    }
    return left.add(scores, reason=reasons, field=field)


def _noted(survivors: Survivors, level: str, notes: Sequence[str]) -> Survivors:
    for note in notes:
        survivors = survivors.note(f"{level}: {note}")
    return survivors
