"""What is particular to LangChain and LangGraph: tool objects, middleware, limits of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit import Library
from agentkit.interop import Toolset, library_agent, library_middleware
from agentkit.library import Store
from agentkit.messages import ToolCall

reason = "needs langchain and langgraph in an environment of their own: run make test-interop"
pytest.importorskip("langchain", reason=reason)
lc_tool = pytest.importorskip("langchain_core.tools", reason=reason).tool

Write = Callable[..., ToolCall]


async def test_a_middleware_beside_others(
    langchain_model: Any, library: Library, store: Store, call: Write
) -> None:
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


async def test_a_structured_answer(
    langchain_model: Any, library: Library, store: Store, call: Write
) -> None:
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


async def test_a_tool_of_the_caller_that_raises(
    langchain_model: Any, library: Library, store: Store, call: Write
) -> None:
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


async def test_a_conversation(langchain_model: Any, library: Library, store: Store) -> None:
    """Calls of one thread are one session, and each tells how much was said before it."""
    from langgraph.checkpoint.memory import InMemorySaver

    config = {"configurable": {"thread_id": "t1"}}
    with FaultyServer(["Hi.", "Hi again."]) as server:
        toolset = Toolset(library, store=store)
        agent = library_agent(toolset, langchain_model(server), checkpointer=InMemorySaver())
        await agent.ainvoke({"messages": "Hello"}, config)
        await agent.ainvoke({"messages": "And now?"}, config)
    later, earlier = store.select()
    assert (earlier.history_length, later.history_length) == (0, 2)
    assert earlier.session_id == later.session_id == "t1"


async def test_an_approval_in_another_process(
    langchain_model: Any, library: Library, store: Store, call: Write
) -> None:
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
