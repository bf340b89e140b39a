"""Runs that end without an answer keep their episode, also with the middleware alone."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit import Library, tool
from agentkit.interop import Toolset, library_agent, library_middleware
from agentkit.interop.langchain import Chains
from agentkit.library import Store, open_store
from agentkit.messages import ToolCall

reason = "needs langchain and langgraph in an environment of their own: run make test-interop"
pytest.importorskip("langchain", reason=reason)

Write = Callable[..., ToolCall]


@tool
def double(x: int) -> int:
    """Twice a number."""
    return 2 * x


@pytest.fixture(params=["agent", "middleware"])
def made(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes an agent by either door."""
    from langchain.agents import create_agent

    def by_middleware(toolset: Toolset, model: Any, **options: Any) -> Any:
        middleware = [*options.pop("middleware", ()), library_middleware(toolset)]
        return create_agent(model, middleware=middleware, **options)

    return library_agent if request.param == "agent" else by_middleware


@pytest.mark.parametrize("is_sync", [False, True])
async def test_the_limit_of_steps(
    made: Any, langchain_model: Any, library: Library, store: Store, call: Write, *, is_sync: bool
) -> None:
    """A graph that reaches its limit of steps is kept with the limit as its reason."""
    from langgraph.errors import GraphRecursionError

    script = [Reply(tool_calls=[call(str(at), "double", x=at)]) for at in range(8)]
    with FaultyServer(script) as server:
        agent = made(Toolset(library, store=store), langchain_model(server))
        given, config = {"messages": "Go"}, {"recursion_limit": 6}
        invoke = partial(asyncio.to_thread, agent.invoke) if is_sync else agent.ainvoke
        with pytest.raises(GraphRecursionError):
            await invoke(given, config)
    (episode,) = store.select()
    assert episode.stop_reason == "step_limit"
    assert "Recursion limit of 6" in (episode.error or "")
    assert len(episode.turns) >= 2


async def test_an_agent_inside_of_a_graph(
    made: Any, langchain_model: Any, library: Library, store: Store, call: Write
) -> None:
    """An agent that another graph calls ends by itself, though the other goes on."""
    from langgraph.errors import GraphRecursionError
    from langgraph.graph import START, MessagesState, StateGraph

    script = [Reply(tool_calls=[call(str(at), "double", x=at)]) for at in range(8)]
    with FaultyServer(script) as server:
        agent = made(Toolset(library, store=store), langchain_model(server))

        async def inner(state: Any) -> dict[str, Any]:
            try:
                return dict(await agent.ainvoke(state, {"recursion_limit": 6}))
            except GraphRecursionError:
                kept = [episode.stop_reason for episode in store.select()]
                return {"messages": [f"caught, kept {kept}"]}

        graph = StateGraph(MessagesState)
        graph.add_node("inner", inner)
        graph.add_edge(START, "inner")
        state = await graph.compile().ainvoke({"messages": "Go"})
    assert state["messages"][-1].content == "caught, kept ['step_limit']"
    assert len(list(store.select())) == 1


async def test_leaving_a_stream_early(
    made: Any, langchain_model: Any, library: Library, store: Store, call: Write
) -> None:
    """Who leaves a stream between two steps ends the run; what happened so far is kept."""
    script = [Reply(tool_calls=[call("1", "double", x=4)]), "It is 8."]
    with FaultyServer(script) as server:
        agent = made(Toolset(library, store=store), langchain_model(server))
        async with aclosing(agent.astream({"messages": "Twice 4?"})) as parts:
            async for part in parts:
                if "tools" in part:
                    break
    (episode,) = store.select()
    assert episode.stop_reason == "cancelled"
    assert [result.value for result in episode.results] == [8]


async def test_many_libraries_in_threads(made: Any, langchain_model: Any, call: Write) -> None:
    """Agents of several libraries end side by side, each run in its own store by its own reason."""
    from langgraph.errors import GraphRecursionError

    def answer(request: Any) -> Reply | str:
        asked = request.body["messages"]
        if asked[0]["content"] == "Stop" and len(asked) > 1:
            return "Stopped."
        return Reply(tool_calls=[call(str(len(asked)), "double", x=len(asked))])

    def run(agent: Any, request: str) -> None:
        with suppress(GraphRecursionError):
            agent.invoke({"messages": request}, {"recursion_limit": 8})

    stores = [open_store("memory:") for _ in range(6)]
    with FaultyServer(answer) as server:
        toolsets = [Toolset(Library([double]), store=one) for one in stores]
        agents = [made(toolset, langchain_model(server)) for toolset in toolsets]
        runs = [(agent, word) for agent in agents for word in ("Stop", "Go")]
        await asyncio.gather(*(asyncio.to_thread(run, *one) for one in runs))
    for store in stores:
        reasons = {episode.request: episode.stop_reason for episode in store.select()}
        assert reasons == {"Stop": "finished", "Go": "step_limit"}


def test_a_chain_whose_end_is_never_told() -> None:
    """What LangChain has forgotten is forgotten here, though no end was heard of."""
    known = Chains()
    graph, node = uuid4(), uuid4()
    known.began(graph, None, ())
    known.began(node, graph, ("graph:step:1",))
    assert len(known) == 2
    del graph, node
    gc.collect()
    assert len(known) == 0


async def test_a_graph_that_stops_before_its_tools(
    made: Any, langchain_model: Any, library: Library, store: Store, call: Write
) -> None:
    """A graph that was told to stop at a node waits for somebody, and goes on as another run."""
    from langgraph.checkpoint.memory import InMemorySaver

    config = {"configurable": {"thread_id": "t1"}}
    with FaultyServer([Reply(tool_calls=[call("1", "double", x=4)]), "It is 8."]) as server:
        options = {"checkpointer": InMemorySaver(), "interrupt_before": ["tools"]}
        agent = made(Toolset(library, store=store), langchain_model(server), **options)
        await agent.ainvoke({"messages": "Twice 4?"}, config)
        await agent.ainvoke(None, config)
    later, earlier = store.select()
    assert (earlier.stop_reason, later.stop_reason) == ("deferred", "finished")
    assert later.resumes == earlier.episode_id
    assert [result.value for result in later.results] == [8]
