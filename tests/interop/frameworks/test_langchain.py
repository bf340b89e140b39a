"""What is particular to LangChain and LangGraph: tool objects, middleware, and runs that end without an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit import tool
from agentkit.interop import Toolset, library_agent, library_middleware
from agentkit.messages import ToolCall

reason = "needs langchain and langgraph in an environment of their own: run make test-interop"
pytest.importorskip("langchain", reason=reason)
lc_tool = pytest.importorskip("langchain_core.tools", reason=reason).tool

Write = Callable[..., ToolCall]


async def test_a_middleware_beside_others(langchain_model, library, store, call):
    """Our middleware works with an agent's own tools and with another middleware."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import ModelRetryMiddleware

    @lc_tool
    def theirs(a: int) -> str:
        """Of the caller."""
        return f"theirs {a}"

    calls = [call("1", "double", x=4), call("2", "theirs", a=1)]
    with FaultyServer([Reply(tool_calls=calls), "Done."]) as server:
        ours = library_middleware(Toolset(library, store=store))
        middleware = [ModelRetryMiddleware(max_retries=0), ours]
        agent = create_agent(langchain_model(server), tools=[theirs], middleware=middleware)
        state = await agent.ainvoke({"messages": "Go"})
    assert state["messages"][-1].content == "Done."
    assert "agentkit_run" not in state
    (episode,) = store.select()
    assert [result.value for result in episode.results] == [8, "theirs 1"]


class Total(BaseModel):
    """A structured answer."""

    total: int


async def test_a_structured_answer(langchain_model, library, store, call):
    """The call by which the framework takes a structured answer is no call of a tool."""
    from langchain.agents.structured_output import ToolStrategy

    script = [
        Reply(tool_calls=[call("1", "double", x=4)]),
        Reply(tool_calls=[call("2", "Total", total=8)]),
    ]
    with FaultyServer(script) as server:
        toolset = Toolset(library, store=store)
        agent = library_agent(toolset, langchain_model(server), response_format=ToolStrategy(Total))
        state = await agent.ainvoke({"messages": "Twice 4?"})
    assert state["structured_response"] == Total(total=8)
    (episode,) = store.select()
    assert episode.output == {"total": 8}
    assert [made.name for made in episode.calls] == ["double"]


async def test_a_tool_of_the_caller_that_raises(langchain_model, library, store, call):
    """An error of the agent's own tool ends the graph, and the episode is kept with it."""

    @lc_tool
    def theirs(a: int) -> str:
        """Of the caller."""
        raise OSError("disk full")

    with FaultyServer([Reply(tool_calls=[call("1", "theirs", a=1)])]) as server:
        agent = library_agent(
            Toolset(library, store=store), langchain_model(server), tools=[theirs]
        )
        with pytest.raises(OSError, match="disk full"):
            await agent.ainvoke({"messages": "Go"})
    (episode,) = store.select()
    assert (episode.stop_reason, episode.error) == ("error", "OSError: disk full")


async def test_an_approval_in_another_process(langchain_model, library, store, call):
    """An agent that is made anew over the same checkpoints goes on with a call that waits."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t1"}}
    with FaultyServer([Reply(tool_calls=[call("1", "wipe", path="/tmp")]), "Done."]) as server:
        for given in ({"messages": "Clean up"}, Command(resume=True)):
            toolset = Toolset(library, store=store)
            agent = library_agent(toolset, langchain_model(server), checkpointer=saver)
            state = await agent.ainvoke(given, config)
    assert state["messages"][-1].content == "Done."
    later, earlier = store.select()
    assert (earlier.stop_reason, later.stop_reason) == ("deferred", "finished")
    assert later.resumes == earlier.episode_id
    assert [result.value for result in later.results] == ["wiped /tmp"]


@pytest.mark.parametrize(
    "word", ["approve", 1, {"type": "approve", "denied": True}, {"type": "reject"}]
)
async def test_what_is_no_yes_runs_nothing(langchain_model, library, store, call, word):
    """Only True, or LangChain's own form of a yes with nothing beside it, approves a call."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    config = {"configurable": {"thread_id": "t1"}}
    with FaultyServer([Reply(tool_calls=[call("1", "wipe", path="/tmp")]), "Done."]) as server:
        toolset = Toolset(library, store=store)
        agent = library_agent(toolset, langchain_model(server), checkpointer=InMemorySaver())
        for given in ({"messages": "Clean up"}, Command(resume=word)):
            await agent.ainvoke(given, config)
    later, _ = store.select()
    assert [result.status for result in later.results] == ["denied"]


@tool
def double(x: int) -> int:
    """Twice a number."""
    return 2 * x


@pytest.fixture(params=["agent", "middleware"])
def made(request):
    """Makes an agent by either door."""
    from langchain.agents import create_agent

    def by_middleware(toolset: Toolset, model: Any, **options: Any) -> Any:
        middleware = [*options.pop("middleware", ()), library_middleware(toolset)]
        return create_agent(model, middleware=middleware, **options)

    return library_agent if request.param == "agent" else by_middleware


@pytest.mark.parametrize("is_sync", [False, True])
async def test_the_limit_of_steps(made, langchain_model, library, store, call, *, is_sync):
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
    assert len(episode.turns) >= 2


async def test_an_agent_inside_of_a_graph(made, langchain_model, library, store, call):
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
