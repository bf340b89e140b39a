"""What is particular to pydantic-ai: tool objects, toolsets, structured answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit.interop import Toolset, library_capability
from agentkit.messages import ToolCall

reason = "needs pydantic-ai in an environment of its own: run make test-interop"
pydantic_ai = pytest.importorskip("pydantic_ai", reason=reason)

Write = Callable[..., ToolCall]


@pytest.fixture
async def model():
    """Makes the framework's chat model over a server."""
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    clients = []

    def made(server: FaultyServer) -> Any:
        clients.append(AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0))
        return OpenAIChatModel("stub", provider=OpenAIProvider(openai_client=clients[-1]))

    yield made
    for client in clients:
        await client.close()


class Total(BaseModel):
    """A structured answer."""

    total: int


async def test_a_structured_answer(model, library, store, call):
    """The call by which the framework takes a structured answer is no call of a tool."""
    script = [
        Reply(tool_calls=[call("1", "double", x=4)]),
        Reply(tool_calls=[call("2", "final_result", total=8)]),
    ]
    with FaultyServer(script) as server:
        capability = library_capability(Toolset(library, store=store))
        agent = pydantic_ai.Agent(model(server), output_type=Total, capabilities=[capability])
        assert (await agent.run("Twice 4?")).output == Total(total=8)
    (episode,) = store.select()
    assert episode.output == {"total": 8}
    assert [made.name for made in episode.calls] == ["double"]
    assert episode.turns[-1].message.text == '{"total":8}'


async def test_tools_of_the_agent_beside_ours(model, library, store, call):
    """A tool of the framework's agent runs as ever, and its result stands in the episode."""
    script = [Reply(tool_calls=[call("1", "double", x=4), call("2", "theirs", a=1)]), "Done."]
    with FaultyServer(script) as server:
        capability = library_capability(Toolset(library, store=store))
        agent = pydantic_ai.Agent(model(server), capabilities=[capability])

        @agent.tool_plain
        def theirs(a: int) -> str:
            return f"theirs {a}"

        assert (await agent.run("Go")).output == "Done."
    (episode,) = store.select()
    assert [result.value for result in episode.results] == [8, "theirs 1"]


async def test_a_conversation(model, library, store):
    """Runs that share a history are one session, and each tells how much was said before it."""
    with FaultyServer(["Hi.", "Hi again."]) as server:
        capability = library_capability(Toolset(library, store=store))
        agent = pydantic_ai.Agent(model(server), capabilities=[capability])
        first = await agent.run("Hello")
        await agent.run("And now?", message_history=first.all_messages())
    later, earlier = store.select()
    assert (earlier.history_length, later.history_length) == (0, 2)
    assert earlier.session_id == later.session_id is not None


async def test_a_limit_of_the_framework(model, library, store, call):
    """A run that the framework's limits stop is kept with the limit as its reason."""
    script = [Reply(tool_calls=[call(str(at), "double", x=at)]) for at in range(4)]
    with FaultyServer(script) as server:
        capability = library_capability(Toolset(library, store=store))
        agent = pydantic_ai.Agent(model(server), capabilities=[capability])
        with pytest.raises(pydantic_ai.UsageLimitExceeded):
            await agent.run("Go", usage_limits=pydantic_ai.UsageLimits(request_limit=2))
    (episode,) = store.select()
    assert (episode.stop_reason, len(episode.turns)) == ("step_limit", 2)


async def leave_text(agent: Any) -> None:
    """Leave the stream of the answer's text."""
    async with agent.run_stream("Twice 4?") as streamed:
        async for _ in streamed.stream_text():
            break


async def leave_events(agent: Any) -> None:
    """Leave the stream of events after the first result."""
    async with agent.run_stream_events("Twice 4?") as events:
        async for event in events:
            if type(event).__name__ == "FunctionToolResultEvent":
                break


async def leave_nodes(agent: Any) -> None:
    """Leave the iteration over nodes before the second request."""
    async with agent.iter("Twice 4?") as run:
        requests = 0
        async for node in run:
            requests += pydantic_ai.Agent.is_model_request_node(node)
            if requests == 2:
                break


@pytest.mark.parametrize("leave", [leave_text, leave_events, leave_nodes])
async def test_leaving_early(model, library, store, call, leave):
    """Who leaves a stream or an iteration cancels the run; what happened so far is kept."""
    script = [Reply(tool_calls=[call("1", "double", x=4)]), "It is 8, which is twice four."]
    with FaultyServer(script) as server:
        capability = library_capability(Toolset(library, store=store))
        await leave(pydantic_ai.Agent(model(server), capabilities=[capability]))
    (episode,) = store.select()
    assert episode.stop_reason == "cancelled"
    assert [result.value for result in episode.results] == [8]


async def test_a_run_that_breaks_before_the_model_is_asked(model, library, store):
    """A run that the application breaks before its first step is kept with the error."""
    with FaultyServer([]) as server:
        capability = library_capability(Toolset(library, store=store))
        agent = pydantic_ai.Agent(model(server), capabilities=[capability])

        @agent.system_prompt
        def words() -> str:
            raise OSError("no such prompt")

        with pytest.raises(OSError, match="no such prompt"):
            await agent.run("Twice 4?")
    (episode,) = store.select()
    assert (episode.request, episode.stop_reason) == ("Twice 4?", "error")
    assert episode.error == "OSError: no such prompt"
