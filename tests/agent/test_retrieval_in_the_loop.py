"""The loop offers what the retriever chose, and remembers what was used."""

from __future__ import annotations

from agentkit import Agent, Library, ToolDefinition
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel


def catalogue(count):
    schema = {"type": "object", "properties": {}}
    filler = [ToolDefinition.from_schema(f"tool_{i}", f"Report {i}.", schema) for i in range(count)]
    return Library(
        [*filler, ToolDefinition.from_schema("weather", "Weather forecast for a city.", schema)]
    )


def names(request):
    return [definition.name for definition in request.tools]


async def test_small_libraries_are_offered_whole():
    """Up to 32 tools nothing is ranked."""
    model = ScriptedModel(["a"])

    result = await Agent(model, library=catalogue(31)).run("weather forecast")

    assert len(model.requests[0].tools) == 32
    assert result.episode.turns[0].retrieval is None


async def test_larger_libraries_are_ranked():
    """Beyond that only the best few are offered, and the episode says how they were found."""
    model = ScriptedModel(["a"])

    result = await Agent(model, library=catalogue(40)).run("weather forecast")

    trace = result.episode.turns[0].retrieval
    assert names(model.requests[0])[:2] == ["search_tools", "weather"]
    assert len(model.requests[0].tools) < 10
    assert trace.offered[0] == "weather"
    assert trace.stages[-1].survivors >= 1


async def test_none_offers_everything():
    """Without a retriever all tools are sent, however many."""
    model = ScriptedModel(["a"])

    await Agent(model, library=catalogue(100), retriever=None).run("weather")

    assert len(model.requests[0].tools) == 101


async def test_a_used_tool_stays_offered():
    """A follow-up that names no tool can still use the one from before."""
    call = ToolCall(call_id="1", name="weather")
    model = ScriptedModel([[call], "and tomorrow?"])
    agent = Agent(model, library=catalogue(40))
    first = await agent.run("weather forecast")

    history = (await agent.resume(first, values={"1": "sunny"})).messages
    model2 = ScriptedModel(["b"])
    await Agent(model2, library=catalogue(40)).run("report 7 please", history=history)

    assert names(model2.requests[0])[:2] == ["search_tools", "weather"]
