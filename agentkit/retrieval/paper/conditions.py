"""A model that reads conditions in words, for the stage ``Specification`` of the default mode."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.paper.judge import ModelJudge
from agentkit.retrieval.paper.prompts import CHECK_SPECIFICATIONS
from agentkit.retrieval.stages.specification import Judgement
from agentkit.tools.definition import ToolDefinition


class ConditionJudge:
    """Lets a model say which tools can not serve a step: L3 of paper mode in the default cascade.

    Args:
        judge: The model, with the budget of its prompts.

    Example:
        >>> import asyncio
        >>> from dataclasses import replace
        >>> from agentkit.testing import FunctionModel
        >>> from agentkit.tools.definition import Specification
        >>> tool = ToolDefinition.from_schema("root", "Square root.", {})
        >>> tool = replace(tool, specification=Specification(text=("Not for negative numbers.",)))
        >>> judge = ConditionJudge(ModelJudge(FunctionModel(lambda _: '{"1": false}')))
        >>> asyncio.run(judge(SubGoal(intent="root of -4"), [tool])).rejected
        {'root': 'the judge says that it can not serve'}
    """

    def __init__(self, judge: ModelJudge) -> None:
        self._judge = judge

    async def __call__(self, goal: SubGoal, candidates: Sequence[ToolDefinition]) -> Judgement:
        """Which of the candidates can not serve the goal, given their specifications."""
        checked = await self._judge.check(CHECK_SPECIFICATIONS, goal.intent, candidates)
        reason = "the judge says that it can not serve"
        return Judgement(
            rejected={one.name: reason for one in candidates if one.name in checked.rejected},
            usage=checked.cost.usage,
            notes=checked.notes,
        )
