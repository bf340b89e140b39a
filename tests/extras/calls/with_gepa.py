"""The extra ``gepa``: agents try texts of a tool, and what made them call it is proposed."""

import asyncio
from collections.abc import Sequence

from shared import SQUARE_12, square, tell

from agentkit import Agent, Library, ToolDefinition
from agentkit.evolution.proposal import Observations
from agentkit.evolution.proposers.optimizer import GepaOptimizer, Score
from agentkit.messages import ToolCall
from agentkit.models import ModelRequest
from agentkit.testing import FunctionModel

GOOD = "The square of a whole number."


def answer(request: ModelRequest) -> str | list[ToolCall]:
    """Call the tool when its text says what it takes; otherwise do without."""
    is_told = request.tools[0].description.summary == GOOD
    return [SQUARE_12] if is_told and len(request.messages) == 1 else request.messages[-1].text


async def evaluate(candidate: ToolDefinition, questions: Sequence[str]) -> list[Score]:
    """Whether an agent that is given the candidate finds the answer."""
    agent = Agent(FunctionModel(answer), tools=[square.with_definition(candidate)])
    answers = [(await agent.run(question)).output for question in questions]
    return [Score(value=float(answer == "144")) for answer in answers]


optimizer = GepaOptimizer(
    FunctionModel(lambda _: f"```\n{GOOD}\n```"),
    evaluate,
    ["What is 12 squared?"],
    max_evaluations=20,
)
seen = Observations(library=Library([square]), tools=("square",))
(proposal,) = asyncio.run(optimizer.propose(seen))
assert proposal.candidate.description.summary == GOOD, proposal
assert proposal.reason.startswith("mean score 1.000 against 0.000"), proposal.reason
tell(proposal.reason, "gepa")
