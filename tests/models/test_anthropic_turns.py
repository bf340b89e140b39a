"""Turns that Anthropic pauses go on, and settings of its output stand beside a schema."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.model_server import ProviderServer
from support.server_steps import HalfStream, Reply

from agentkit import Agent, tool
from agentkit.errors import ModelConnectionError, ModelResponseError, RunError
from agentkit.messages import ToolCall, UserMessage
from agentkit.models import ModelRequest, ModelResponse, ModelSettings, RetryPolicy
from agentkit.models.anthropic import MOST_PAUSES, anthropic_model
from agentkit.models.http_model import HttpModel

pytest.importorskip("anthropic", reason="anthropic is not installed")

PAUSED = Reply(text="Let me see. ", found=["square"], finish_reason="pause_turn")
CALL = ToolCall(call_id="c", name="square", arguments={"n": 4})


@tool
def square(n: int) -> int:
    """The square of n."""
    return n * n


@pytest.fixture
def open_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[ProviderServer], HttpModel]:
    """Opens a model of Anthropic's at a server, with one attempt."""

    def opened(server: ProviderServer) -> HttpModel:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
        return anthropic_model("claude-sonnet-5-5", retry=RetryPolicy(attempts=1))

    return opened


async def ask(model: HttpModel, request: ModelRequest, *, streamed: bool) -> ModelResponse:
    """The response, whole or streamed."""
    if not streamed:
        return await model.complete(request)
    *pieces, response = [event async for event in model.stream(request)]
    assert isinstance(response, ModelResponse)
    assert "".join(piece.text for piece in pieces) == response.message.text
    return response


@pytest.mark.parametrize("streamed", [False, True])
async def test_paused_turn_goes_on(open_at, question, streamed) -> None:
    """What was said is sent back as it came, and all pauses make one answer and one sum."""
    with ProviderServer([PAUSED, PAUSED, "It is 16."]) as server:
        async with open_at(server) as model:
            response = await ask(model, question, streamed=streamed)
    assert response.message.text == "Let me see. Let me see. It is 16."
    assert response.finish_reason == "stop"
    assert response.usage.prompt_tokens == 3 * 12
    assert response.usage.completion_tokens == 3 * 5
    assert len(response.message.provider_items) == 4
    first, second, third = (request.body["messages"] for request in server.requests)
    assert second[:-1] == third[:-1] == first
    kinds = [block["type"] for block in third[-1]["content"]]
    assert kinds == ["server_tool_use", "tool_search_tool_result", "text"] * 2


@pytest.mark.parametrize("streamed", [False, True])
async def test_calls_beside_a_pause_are_run(open_at, streamed) -> None:
    """A pause beside a call of ours is none: the agent runs the call and asks again."""
    beside = Reply(text="One moment.", tool_calls=[CALL], finish_reason="pause_turn")
    with ProviderServer([beside, "It is 16."]) as server:
        async with open_at(server) as model:
            agent = Agent(model, tools=[square])
            if streamed:
                *_, last = [event async for event in agent.stream("4 squared?")]
                result = last.result
            else:
                result = await agent.run("4 squared?")
    assert result.output == "It is 16."
    assert [made.value for made in result.episode.results] == [16]


@pytest.mark.parametrize(
    ("steps", "said"),
    [([PAUSED] * (MOST_PAUSES + 1), "11 times"), ([Reply(finish_reason="pause_turn")], "without")],
    ids=["too often", "silent"],
)
async def test_pauses_without_end(open_at, steps, said) -> None:
    """A turn that never ends is an error that says so; the run's episode is kept."""
    script = [Reply(tool_calls=[CALL]), *steps, "never asked"]
    with ProviderServer(script) as server:
        async with open_at(server) as model:
            with pytest.raises(RunError, match=said) as caught:
                await Agent(model, tools=[square]).run("4 squared?")
        assert len(server.requests) == len(script) - 1
    assert isinstance(caught.value.__cause__, ModelResponseError)
    assert [made.value for made in caught.value.episode.results] == [16]


async def test_stream_cut_after_a_pause(open_at, question) -> None:
    """A paused turn whose rest does not come is half an answer, and so an error."""
    with ProviderServer([PAUSED, HalfStream(text="It is 16.", events=4)]) as server:
        async with open_at(server) as model:
            with pytest.raises(ModelConnectionError):
                await ask(model, question, streamed=True)
        assert len(server.requests) == 2


async def test_output_settings_stand_beside_a_schema(open_at) -> None:
    """Further settings of the output are sent with the schema, and do not replace it."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    request = ModelRequest(
        messages=(UserMessage(text="x"),),
        output_schema=schema,
        settings=ModelSettings(extra={"output_config": {"effort": "low", "format": None}}),
    )
    with ProviderServer([Reply(output={"n": 1})]) as server:
        async with open_at(server) as model:
            await model.complete(request)
    sent = server.requests[0].body["output_config"]
    assert sent["effort"] == "low"
    assert sent["format"]["schema"] == {**schema, "additionalProperties": False}
