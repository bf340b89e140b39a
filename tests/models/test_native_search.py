"""The provider searches among deferred tools; where it can not, our own search does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.model_server import ProviderServer
from support.server_steps import Reply

from agentkit import Agent, Tool, tool
from agentkit.agent import SelectionPolicy
from agentkit.messages import ToolCall
from agentkit.models import DeferringChatModel, OpenAICompatibleModel
from agentkit.models.anthropic import anthropic_model
from agentkit.models.openai import openai_responses_model
from agentkit.testing import ScriptedModel
from agentkit.tools import ToolDefinition

CALL = ToolCall(call_id="c", name="rare_trick", arguments={"n": 4})


def catalogue() -> list[Tool]:
    """Forty tools, of which the request speaks of one and the model needs another."""

    def build(name: str, purpose: str) -> Tool:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        definition = ToolDefinition.from_schema(name, purpose, schema)
        return Tool(definition=definition, function=lambda n: n * n)

    others = [build(f"ledger_{i}", f"Book entry number {i} into the ledger.") for i in range(38)]
    return [*others, build("weather", "The weather of a day."), build("rare.trick", "A trick.")]


@pytest.fixture
def open_searching(monkeypatch: pytest.MonkeyPatch) -> Callable[..., DeferringChatModel]:
    """Opens a model whose provider searches; skips where its package is not installed."""

    def open_at(name: str, server: ProviderServer):
        pytest.importorskip(name.partition("-")[0], reason=f"the extra of {name} is not installed")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
        if name == "anthropic":
            return anthropic_model("claude", tool_search="bm25")
        return openai_responses_model("gpt", tool_search=True)

    return open_at


SEARCHING = ["anthropic", "openai-responses"]


def loaded(body: dict, *, deferred: bool) -> list[str]:
    """Names of the tools in a request that are deferred, or are not."""
    return [
        tool.get("name", tool.get("type"))
        for tool in body["tools"]
        if bool(tool.get("defer_loading")) == deferred
    ]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", SEARCHING)
async def test_provider_searches_and_the_call_runs(open_searching, name, streamed) -> None:
    """What fits is offered, the rest is deferred, and what the provider found can be called."""
    found = Reply(reasoning="hm", found=["rare_trick"], tool_calls=[CALL])
    with ProviderServer([found, "It is 16."]) as server:
        async with open_searching(name, server) as model:
            agent = Agent(model, tools=catalogue(), instructions="Be brief.")
            if streamed:
                events = [event async for event in agent.stream("How is the weather today?")]
                result = events[-1].result
            else:
                result = await agent.run("How is the weather today?")
        first, second = (request.body for request in server.requests)
    assert result.output == "It is 16."
    assert result.episode.results[0].value == 16
    assert result.episode.calls[0].name == "rare.trick"
    assert "weather" in loaded(first, deferred=False)
    assert "search_tools" not in loaded(first, deferred=False)
    assert "rare_trick" in loaded(first, deferred=True)
    assert len(loaded(first, deferred=True)) + len(loaded(first, deferred=False)) == 41
    assert second["tools"] == first["tools"]  # so that the provider's cache holds


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", SEARCHING)
async def test_what_was_found_goes_back_as_it_came(open_searching, name, streamed) -> None:
    """Reasoning and the search are sent back in front of the call that followed them."""
    found = Reply(reasoning="hm hm", found=["rare_trick"], tool_calls=[CALL])
    with ProviderServer([found, "It is 16."]) as server:
        async with open_searching(name, server) as model:
            agent = Agent(model, tools=catalogue())
            if streamed:
                _ = [event async for event in agent.stream("How is the weather today?")]
            else:
                await agent.run("How is the weather today?")
        body = server.requests[1].body
    if name == "anthropic":
        thinking, asked, result, call = body["messages"][1]["content"]
        assert thinking == {"type": "thinking", "thinking": "hm hm", "signature": "sealed"}
        assert asked["type"] == "server_tool_use"
        assert asked["input"] == {"query": "rare_trick"}
        assert result["content"]["tool_references"][0]["tool_name"] == "rare_trick"
        assert call["type"] == "tool_use"
    else:
        kinds = ["reasoning", "tool_search_call", "tool_search_output", "function_call"]
        assert [item.get("type") for item in body["input"][1:5]] == kinds
        assert body["input"][1]["encrypted_content"] == "sealed"


@pytest.mark.parametrize("name", SEARCHING)
async def test_small_library_is_offered_whole(open_searching, name) -> None:
    """Where everything is offered there is nothing to search."""

    @tool
    def square(n: int) -> int:
        """The square of n."""
        return n * n

    with ProviderServer(["well"]) as server:
        async with open_searching(name, server) as model:
            await Agent(model, tools=[square]).run("hi")
        assert loaded(server.requests[0].body, deferred=False) == ["square"]


@pytest.mark.parametrize("name", SEARCHING)
async def test_search_can_be_switched_off(open_searching, name) -> None:
    """``search_tool=False`` holds for the provider's search as for ours."""
    with ProviderServer(["well"]) as server:
        async with open_searching(name, server) as model:
            await Agent(model, tools=catalogue(), selection=SelectionPolicy(search_tool=False)).run(
                "How is the weather?"
            )
        assert loaded(server.requests[0].body, deferred=True) == []


async def test_others_search_with_our_retriever() -> None:
    """A model whose provider can not search has ``search_tools``, and no deferred tools."""
    with ProviderServer(["well"]) as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url) as model:
            await Agent(model, tools=catalogue()).run("How is the weather today?")
        names = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    assert "search_tools" in names
    assert len(names) < 20
    scripted = ScriptedModel(["well"])
    await Agent(scripted, tools=catalogue()).run("How is the weather today?")
    assert scripted.requests[0].deferred == ()


@pytest.mark.parametrize("name", SEARCHING)
async def test_conversation_goes_on_with_what_was_found(open_searching, name) -> None:
    """In the next run of a session, a tool that was called is offered at once."""
    script = [Reply(found=["rare_trick"], tool_calls=[CALL]), "16", "Yes."]
    with ProviderServer(script) as server:
        async with open_searching(name, server) as model:
            agent = Agent(model, tools=catalogue())
            first = await agent.run("How is the weather today?")
            await agent.run("Sure?", history=first)
        body = server.requests[2].body
    assert "rare_trick" in loaded(body, deferred=False)
    assert "rare_trick" not in loaded(body, deferred=True)
