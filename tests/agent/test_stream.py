"""A run as a stream of events, with the progress that tools tell."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import Agent, RunContext, tool
from agentkit.agent import ToolCallFinished, ToolProgress
from agentkit.agent.types import RunFinished, RunStarted, ToolCallStarted, TurnFinished
from agentkit.errors import ModelConnectionError, RunError
from agentkit.library.store import EpisodeFilter
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.base import ModelResponse, TextDelta
from agentkit.testing import ScriptedModel


async def collect(agent, request="go"):
    return [event async for event in agent.stream(request)]


async def test_order_of_events(add, call):
    """Calls start before they finish, turns close after their calls, the result comes last."""
    agent = Agent(ScriptedModel([[call("add", a=1, b=2)], "It is 3."]), tools=[add])

    events = await collect(agent)

    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    one_call = [ToolCallStarted, ToolCallFinished, TurnFinished]
    assert kinds == [RunStarted, *one_call, TurnFinished, RunFinished]


async def test_a_model_that_can_not_stream_still_yields_its_text():
    """One piece holds the whole answer."""

    class Plain:
        name = "plain"

        async def complete(self, request):
            return ModelResponse(message=AssistantMessage(text="whole"))

    events = await collect(Agent(Plain()))

    assert [e.text for e in events if isinstance(e, TextDelta)] == ["whole"]


async def test_leaving_early_cancels_the_run_and_keeps_the_episode(call, store):
    """Breaking out of the iteration stops the tool; the episode so far is in the store."""
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return ""

    agent = Agent(ScriptedModel([[call("slow")], "never"]), tools=[slow], store=store)
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, ToolCallStarted):
            await started.wait()
            break
    await stream.aclose()

    assert stopped.is_set()
    (episode,) = store.select(EpisodeFilter())
    assert episode.stop_reason == "cancelled"
    assert [c.name for c in episode.calls] == ["slow"]


async def test_errors_come_out_of_the_iteration():
    """A model that fails raises where the events are read."""
    with pytest.raises(RunError):
        await collect(Agent(ScriptedModel([ModelConnectionError("gone")])))


@tool
async def copy(ctx: RunContext, files: int) -> str:
    """Copy files."""
    for at in range(1, files + 1):
        ctx.progress(f"{at} of {files}")
        await asyncio.sleep(0)
    return "copied"


@tool
def pack(ctx: RunContext, files: int) -> str:
    """Pack files."""
    for at in range(1, files + 1):
        ctx.progress(f"{at} of {files}")
    return "packed"


def agent_for(name):
    call = ToolCall(call_id="c", name=name, arguments={"files": 2})
    return Agent(ScriptedModel([[call], "Done."]), tools=[copy, pack])


@pytest.mark.parametrize("name", ["copy", "pack"])
def test_progress_comes_before_the_result(name):
    """In order, with the call that it belongs to; the model and the episode do not see it."""

    async def heard():
        return [event async for event in agent_for(name).stream("Go on")]

    events = asyncio.run(heard())
    told = [one for one in events if isinstance(one, ToolProgress)]
    assert [(one.call_id, one.tool_name, one.text) for one in told] == [
        ("c", name, "1 of 2"),
        ("c", name, "2 of 2"),
    ]
    finished = next(at for at, one in enumerate(events) if isinstance(one, ToolCallFinished))
    assert all(events.index(one) < finished for one in told)
    assert "1 of 2" not in str(events[-1].result.episode.to_json())
