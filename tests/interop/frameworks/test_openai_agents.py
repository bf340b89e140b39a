"""What is particular to openai-agents: tool objects, hooks, sessions, streams, handoffs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit.interop import LibraryRunner, Toolset
from agentkit.messages import ToolCall

reason = "needs openai-agents in an environment of its own: run make test-interop"
agents = pytest.importorskip("agents", reason=reason)

Write = Callable[..., ToolCall]


@pytest.fixture
async def agent():
    """Makes the framework's agent over a server."""
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(disabled=True)
    clients = []

    def made(server: FaultyServer, **options: Any) -> Any:
        clients.append(AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0))
        model = agents.OpenAIChatCompletionsModel("stub", openai_client=clients[-1])
        return agents.Agent(name="tester", model=model, **options)

    yield made
    for client in clients:
        await client.close()


async def test_hooks_and_tools_of_the_caller(agent, library, store, call):
    """The caller's hooks are told as ever, and the caller's tools stay beside ours."""
    told: list[str] = []

    class Hooks(agents.RunHooks):
        async def on_agent_start(self, *_: Any) -> None:
            told.append("agent")

        async def on_llm_end(self, *_: Any) -> None:
            told.append("answer")

        async def on_tool_end(self, context: Any, *_: Any) -> None:
            told.append(context.tool_name)

    @agents.function_tool
    def theirs(a: int) -> str:
        """Of the caller."""
        return f"theirs {a}"

    script = [Reply(tool_calls=[call("1", "double", x=4), call("2", "theirs", a=1)]), "Done."]
    with FaultyServer(script) as server:
        tester = agent(server, tools=[theirs])
        runner = LibraryRunner(Toolset(library, store=store))
        await runner.run(tester, "Go", hooks=Hooks())
    assert tester.tools == [theirs]  # the caller's agent is as it was
    assert sorted(told) == ["agent", "answer", "answer", "double", "theirs"]
    (episode,) = store.select()
    assert [result.value for result in episode.results] == [8, "theirs 1"]


async def test_the_limit_of_turns(agent, library, store, call):
    """A run that takes too many turns is kept with the limit as its reason."""
    script = [Reply(tool_calls=[call(str(at), "double", x=at)]) for at in range(4)]
    with FaultyServer(script) as server:
        runner = LibraryRunner(Toolset(library, store=store))
        with pytest.raises(agents.MaxTurnsExceeded):
            await runner.run(agent(server), "Go", max_turns=2)
    (episode,) = store.select()
    assert (episode.stop_reason, len(episode.turns)) == ("step_limit", 2)


async def test_leaving_a_stream_early(agent, library, store, call):
    """Who leaves a stream cancels the run; what happened so far is kept."""
    script = [Reply(tool_calls=[call("1", "double", x=4)]), Reply(text="late", seconds=30)]
    with FaultyServer(script) as server:
        runner = LibraryRunner(Toolset(library, store=store))
        async with runner.stream(agent(server), "Go") as result:
            async for event in result.stream_events():
                if event.type == "run_item_stream_event" and event.name == "tool_output":
                    break
    (episode,) = store.select()
    assert episode.stop_reason == "cancelled"
    assert [result.value for result in episode.results] == [8]


async def test_resuming_without_a_session(agent, library, store, call):
    """The waiting episode is found by the calls that it waits for, also by another runner."""
    wipe = [Reply(tool_calls=[call(one, "wipe", path="/tmp")]) for one in ("c1", "c2")]
    with FaultyServer([*wipe, "Done."]) as server:
        tester, toolset = agent(server), Toolset(library, store=store)
        first = await LibraryRunner(toolset).run(tester, "Clean up")
        await LibraryRunner(toolset).run(tester, "Clean up, too")
        state = first.to_state()
        state.approve(first.interruptions[0])
        await LibraryRunner(toolset).run(tester, state)
    last, other, waiting = store.select()
    assert (last.resumes, other.request) == (waiting.episode_id, "Clean up, too")
    assert [result.value for result in last.results] == ["wiped /tmp"]


async def test_a_handoff(agent, library, store, call):
    """What an agent does that is handed off to, with tools of its own, is part of the same run."""
    import agents

    def pay(amount: int) -> str:
        """Pay a bill."""
        return f"paid {amount}"

    script = [
        Reply(tool_calls=[call("1", "double", x=4)]),
        Reply(tool_calls=[call("2", "transfer_to_cashier")]),
        Reply(tool_calls=[call("3", "pay", amount=7)]),
        "Paid.",
    ]
    with FaultyServer(script) as server:
        cashier = agent(server, tools=[agents.function_tool(pay)]).clone(name="cashier")
        tester = agent(server, handoffs=[cashier])
        result = await LibraryRunner(Toolset(library, store=store)).run(tester, "Go")
    assert (result.last_agent.name, result.final_output) == ("cashier", "Paid.")
    (episode,) = store.select()
    assert [one.name for one in episode.calls] == ["double", "transfer_to_cashier", "pay"]
    assert [one.value for one in episode.results][::2] == [8, "paid 7"]
