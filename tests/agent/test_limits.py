"""A limit ends the run with a stop reason; what happened so far is in the result."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.agent.types import Limits
from agentkit.messages import AssistantMessage, Usage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel, ScriptedModel


async def test_steps(add, call):
    """A model that never stops calling is stopped after max_steps turns."""
    forever = FunctionModel(
        lambda request: AssistantMessage(tool_calls=(call("add", a=1, b=len(request.messages)),))
    )

    result = await Agent(forever, tools=[add], limits=Limits(max_steps=3)).run("go")

    assert (result.stop_reason, len(result.episode.turns), result.output) == ("step_limit", 3, None)


async def test_an_answer_in_the_last_step_counts(add, call):
    """The limit stops a further turn; it does not take away an answer."""
    model = ScriptedModel([[call("add", a=1, b=2)], "3"])

    result = await Agent(model, tools=[add], limits=Limits(max_steps=2)).run("go")

    assert result.stop_reason == "finished"


async def test_calls(add, call):
    """Calls beyond max_calls are answered with the limit, and the model can still conclude."""
    calls = [call("add", id=str(i), a=i, b=i) for i in range(3)]

    result = await Agent(
        ScriptedModel([calls, "done"]), tools=[add], limits=Limits(max_calls=2)
    ).run("go")

    statuses = [r.status for r in result.episode.results]
    assert sorted(statuses) == ["failed", "ok", "ok"]
    assert result.output == "done"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(max_tokens=100), "token_limit"), (Limits(max_cost_usd=0.5), "cost_limit")],
)
async def test_tokens_and_cost(add, call, limits, reason):
    """Spending is checked after each turn."""

    def answer(request):
        message = AssistantMessage(tool_calls=(call("add", a=1, b=2),))
        usage = Usage(requests=1, prompt_tokens=90, completion_tokens=20, cost_usd=0.6)
        return ModelResponse(message=message, usage=usage)

    result = await Agent(FunctionModel(answer), tools=[add], limits=limits).run("go")

    assert (result.stop_reason, len(result.episode.turns)) == (reason, 1)
