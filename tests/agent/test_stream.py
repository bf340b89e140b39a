"""Streaming shows a run while it happens; its result is that of run."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import Agent, tool
from agentkit.agent.types import (
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
)
from agentkit.errors import ModelConnectionError, RunError
from agentkit.library.store import EpisodeFilter
from agentkit.messages import AssistantMessage
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
