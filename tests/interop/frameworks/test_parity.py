"""What holds in every framework that our tools are handed to."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit import Library, tool
from agentkit.agent import ToolPolicy
from agentkit.diagnosis import diagnose
from agentkit.errors import ModelRetry
from agentkit.interop import Toolset
from agentkit.messages import ToolCall

Write = Callable[..., ToolCall]

if not any(map(importlib.util.find_spec, ("pydantic_ai", "agents", "langchain"))):
    reason = "needs pydantic-ai, openai-agents or langchain, each in its own environment"
    pytest.skip(f"{reason}: run make test-interop", allow_module_level=True)


def tool_texts(server: FaultyServer, request: int = -1) -> dict[str, str]:
    """What the model read as results, by call id."""
    messages = server.requests[request].body["messages"]
    return {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}


def offered(server: FaultyServer, request: int = 0) -> dict[str, dict[str, Any]]:
    """The schemas that a request offered, by name."""
    tools = server.requests[request].body["tools"]
    return {one["function"]["name"]: one["function"]["parameters"] for one in tools}


@pytest.mark.parametrize("stream", [False, True])
async def test_run_and_record(host, library, store, call, *, stream):
    """A call is run, its result read, and the run kept with turns, usage, model and version."""
    script = [Reply(tool_calls=[call("1", "double", x=4)]), "It is 8."]
    with FaultyServer(script) as server:
        ended = await host(Toolset(library, store=store, name="shop"), server).run(
            "Twice 4?", stream=stream
        )
        assert (ended.error, ended.output) == (None, "It is 8.")
        assert tool_texts(server) == {"1": "8"}
    (episode,) = store.select()
    assert (episode.request, episode.output) == ("Twice 4?", "It is 8.")
    assert (episode.stop_reason, episode.error) == ("finished", None)
    assert [turn.message.text for turn in episode.turns] == ["", "It is 8."]
    assert [result.value for result in episode.results] == [8]
    assert (episode.model, episode.metadata) == ("stub", {"toolset": "shop"})
    assert (episode.usage.requests, episode.usage.total_tokens) == (2, 34)
    assert episode.turns[0].usage.prompt_tokens == 12
    assert episode.seconds > 0


async def test_a_wrong_call_is_told_and_learned_from(host, library, store, call):
    """The model reads which rule a call broke, and the diagnosis of the episode sees the same."""
    script = [
        Reply(tool_calls=[call("1", "double", x="four")]),
        Reply(tool_calls=[call("2", "double", x=4)]),
        "It is 8.",
    ]
    with FaultyServer(script) as server:
        ended = await host(Toolset(library, store=store), server).run("Twice 4?")
        assert ended.output == "It is 8."
        assert "must be an integer" in tool_texts(server)["1"]
    (episode,) = store.select()
    failure = episode.results[0].failure
    assert failure is not None
    assert (failure.kind, failure.path) == ("invalid_arguments", "x")
    assert diagnose(episode, library, None).recoveries[0].outcome == "recovered"


async def test_a_tool_that_raises_and_one_that_hangs(host, store, call):
    """An exception, a retry that the author asks for and a timeout are words, never a broken run."""

    @tool
    def divide(x: int) -> float:
        """One by x."""
        return 1 / x

    @tool
    def find(name: str) -> str:
        """Find a person."""
        raise ModelRetry("say the family name, too")

    @tool
    async def wait() -> None:
        """Wait for ever."""
        await asyncio.sleep(60)

    calls = [call("1", "divide", x=0), call("2", "find", name="Ann"), call("3", "wait")]
    toolset = Toolset(
        Library([divide, find, wait]), store=store, policy=ToolPolicy(timeout_seconds=0.05)
    )
    with FaultyServer([Reply(tool_calls=calls), "Sorry."]) as server:
        assert (await host(toolset, server).run("Try.")).output == "Sorry."
        texts = tool_texts(server)
    assert "ZeroDivisionError" in texts["1"]
    assert "say the family name, too" in texts["2"]
    assert "0.05 seconds" in texts["3"]
    (episode,) = store.select()
    kinds = [result.failure.kind for result in episode.results if result.failure]
    assert kinds == ["tool_error", "retry_requested", "timeout"]


def catalogue() -> Library:
    """Sixty tools, more than are offered whole."""

    def made(at: int) -> Any:
        def function(x: int) -> int:
            return at * x

        text = f"Convert amounts of currency number {at} into credits."
        return tool(function, name=f"convert_{at}", description=text)

    @tool
    def forecast(city: str) -> str:
        """Tomorrow's weather in a city: rain, wind and temperature."""
        return f"rain in {city}"

    @tool
    def timetable(station: str) -> str:
        """Departures of trains from a railway station."""
        return f"a train leaves {station} at 9"

    return Library([*(made(at) for at in range(58)), forecast, timetable])


async def test_retrieval_chooses_and_search_finds_more(host, store, call):
    """Of a large library few tools are offered; what the model searches for can be called next."""
    script = [
        Reply(tool_calls=[call("1", "forecast", city="Oslo")]),
        Reply(tool_calls=[call("2", "search_tools", query="departures of trains", limit=1)]),
        Reply(tool_calls=[call("3", "timetable", station="Oslo S")]),
        "Take an umbrella.",
    ]
    with FaultyServer(script) as server:
        toolset = Toolset(catalogue(), store=store)
        ended = await host(toolset, server).run("Will it rain in Oslo? Weather forecast, please.")
        assert (ended.error, ended.output) == (None, "Take an umbrella.")
        first, third = offered(server), offered(server, 2)
        assert {"forecast", "search_tools"} <= first.keys()
        assert len(first) < 20
        assert "timetable" not in first
        assert set(third) == {*first, "timetable"}
        assert tool_texts(server)["3"] == "a train leaves Oslo S at 9"
    (episode,) = store.select()
    retrieval = episode.turns[0].retrieval
    assert retrieval is not None
    assert "forecast" in retrieval.offered
    assert [trace.shortlist[0] for trace in episode.turns[1].searches] == ["timetable"]


async def test_a_tool_that_nobody_offered(host, library, store, call):
    """Whatever the framework does about a call of an unknown tool, the run is kept with the call."""
    with FaultyServer([Reply(tool_calls=[call("1", "treble", x=4)]), "Sorry."]) as server:
        ended = await host(Toolset(library, store=store), server).run("Thrice 4?")
    (episode,) = store.select()
    assert [made.name for made in episode.calls] == ["treble"]
    assert episode.stop_reason == ("error" if ended.error else "finished")


@pytest.mark.parametrize("approved", [True, False])
async def test_approval_in_the_way_of_the_framework(host, library, store, call, *, approved):
    """A destructive call waits for a person, whom the framework asks; other calls run meanwhile."""
    calls = [call("1", "wipe", path="/tmp"), call("2", "double", x=4)]
    with FaultyServer([Reply(tool_calls=calls), "Well."]) as server:
        ended = await host(Toolset(library, store=store), server).run("Clean up.")
        assert (ended.error, ended.waits) == (None, ["wipe"])
        (waiting,) = store.select()  # kept at once: nobody may ever answer
        assert waiting.stop_reason == "deferred"
        assert {one.call_id: one.status for one in waiting.results}["1"] == "deferred"
        ended = await ended.decide(approved=approved)
        assert ended.output == "Well."
        texts = tool_texts(server)
    assert texts["2"] == "8"
    assert (texts["1"] == "wiped /tmp") is approved
    after = next(one for one in store.select() if one.episode_id != waiting.episode_id)
    assert after.stop_reason == "finished"
    results = {one.call_id: one.status for one in after.results}
    assert results["1"] == ("ok" if approved else "denied")


async def test_a_toolset_that_asks_itself(host, library, store, call):
    """With ``approve`` the framework asks nobody: the application's function decides."""
    asked: list[str] = []

    def approve(one: ToolCall, _: Any) -> bool:
        asked.append(one.arguments["path"])
        return one.arguments["path"] == "/tmp"

    calls = [call("1", "wipe", path="/tmp"), call("2", "wipe", path="/")]
    with FaultyServer([Reply(tool_calls=calls), "Well."]) as server:
        toolset = Toolset(library, store=store, policy=ToolPolicy(approve=approve))
        ended = await host(toolset, server).run("Clean up.")
        assert (ended.output, asked) == ("Well.", ["/tmp", "/"])
        texts = tool_texts(server)
    assert texts["1"] == "wiped /tmp"
    assert "was not approved" in texts["2"]
    (episode,) = store.select()
    assert [result.status for result in episode.results] == ["ok", "denied"]


async def test_parallel_calls(host, store, call):
    """Calls of one answer run side by side; those that write keep the order of the model."""
    running, most, written = 0, 0, []

    @tool(effects=["reads"])
    def look(x: int) -> int:
        """Look."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        deadline = time.monotonic() + 5
        while most < 2 and time.monotonic() < deadline:
            time.sleep(0.002)
        running -= 1
        return x

    @tool(effects=["writes"])
    async def write(x: int) -> str:
        """Write."""
        await asyncio.sleep(0.02 if x == 1 else 0)
        written.append(x)
        return "written"

    calls = [
        call("1", "write", x=1),
        call("2", "look", x=2),
        call("3", "look", x=3),
        call("4", "write", x=4),
    ]
    with FaultyServer([Reply(tool_calls=calls), "Done."]) as server:
        toolset = Toolset(Library([look, write]), store=store)
        assert (await host(toolset, server).run("Go.")).output == "Done."
    assert (most, written) == (2, [1, 4])
    (episode,) = store.select()
    assert [result.call_id for result in episode.results] == ["1", "2", "3", "4"]


async def test_the_model_fails(host, library, store, call):
    """A run whose model fails raises as the framework raises, and its episode is kept."""
    with FaultyServer([Reply(tool_calls=[call("1", "double", x=4)])]) as server:
        ended = await host(Toolset(library, store=store), server).run("Twice 4?")
    assert ended.error is not None
    (episode,) = store.select()
    assert episode.stop_reason == "error"
    assert "script of 1 steps is spent" in (episode.error or "")
    assert [result.value for result in episode.results] == [8]


async def test_a_cancelled_run(host, library, store, call):
    """A run that is cancelled while the model thinks is kept as cancelled."""
    if host.name == "langchain_sync":
        pytest.skip("a thread cannot be cancelled")
    script = [Reply(tool_calls=[call("1", "double", x=4)]), Reply(text="late", seconds=30)]
    with FaultyServer(script) as server:
        task = asyncio.create_task(host(Toolset(library, store=store), server).run("Twice 4?"))
        while len(server.requests) < 2:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (episode,) = store.select()
    assert episode.stop_reason == "cancelled"
    assert [result.value for result in episode.results] == [8]
