"""The adapters over real SDKs, against a server on loopback; skipped where an SDK is absent."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from agentkit.errors import (
    MissingExtraError,
    ModelConnectionError,
    ModelResponseError,
    ModelStatusError,
    ModelTimeoutError,
)
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models.base import ModelRequest, ModelResponse, ModelSettings, TextDelta
from agentkit.models.hosted.model import HostedModel
from agentkit.models.resolve import resolve_model
from agentkit.models.retries import RetryPolicy
from agentkit.testing.faulty_server import (
    ErrorStatus,
    FaultyServer,
    HalfStream,
    RawReply,
    RawStream,
    Reply,
    Reset,
    Stall,
)
from agentkit.tools.definition import ToolDefinition

FACTORIAL = ToolDefinition.from_schema(
    "math.factorial",
    "The product of 1 to n.",
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
CALL = ToolCall(call_id="c1", name="math_factorial", arguments={"n": 4})
LITELLM = pytest.param(
    "litellm",
    marks=pytest.mark.filterwarnings("ignore"),  # its own; here they would be errors
)
SDKS = ["openai", LITELLM, "anthropic"]


def sdk_or_skip(name: str) -> None:
    """Skip where an SDK, or what it needs for tools, is not installed."""
    pytest.importorskip(name, reason=f"the extra {name!r} is not installed")
    if name == "litellm":
        pytest.importorskip("mcp", reason="the extra 'litellm' is not installed")


@pytest.fixture
def open_hosted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., HostedModel]:
    """Opens a model of an SDK at a server, with retries that do not wait."""

    async def no_wait(seconds: float) -> None:
        """Return at once."""

    def open_at(sdk: str, server: FaultyServer, attempts: int = 1) -> HostedModel:
        sdk_or_skip(sdk)
        root = server.base_url.removesuffix("/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-secret")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-secret")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", root)
        name = "openai/gpt-4o-mini" if sdk == "litellm" else "gpt-4o-mini"
        module = importlib.import_module(f"agentkit.models.hosted.{sdk}")
        model: HostedModel = getattr(module, f"{sdk}_model")(
            name, retry=RetryPolicy(attempts=attempts, sleep=no_wait), timeout_seconds=5
        )
        return model

    return open_at


def conversation(**extra: object) -> ModelRequest:
    """A second turn: a call was made and answered."""
    return ModelRequest(
        messages=(
            UserMessage(text="4!?"),
            AssistantMessage(tool_calls=(replace(CALL, name="math.factorial"),)),
            ToolMessage(call_id="c1", name="math.factorial", text="24"),
        ),
        tools=(FACTORIAL,),
        settings=ModelSettings(temperature=0.0, max_tokens=50, extra=extra),
    )


def anthropic_message(*blocks: dict, stop_reason: str = "end_turn") -> dict:
    """A message object as Anthropic's server sends it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 5},
    }


def anthropic_stream(*blocks: tuple[dict, list[dict]], stop_reason: str) -> RawStream:
    """A stream of blocks, each with its deltas, as Anthropic's server sends it."""
    start = anthropic_message() | {"stop_reason": None}
    events = [{"type": "message_start", "message": start}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})
    events.append({"type": "message_stop"})
    return RawStream(
        pieces=[
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
        ]
    )


async def collect(model: HostedModel, request: ModelRequest, texts: list[str]) -> None:
    """Add the pieces of a streamed answer to ``texts``, as far as it goes."""
    async for event in model.stream(request):
        assert isinstance(event, TextDelta)
        texts.append(event.text)


def good_answer(sdk: str) -> Reply | RawReply:
    """A text, in the protocol of the SDK."""
    if sdk == "anthropic":
        return RawReply(body=anthropic_message({"type": "text", "text": "hello there"}))
    return Reply(text="hello there")


@pytest.mark.parametrize("sdk", SDKS)
async def test_text_and_usage(open_hosted, question, sdk) -> None:
    """A text answer comes back with its token counts."""
    with FaultyServer([good_answer(sdk)]) as server:
        async with open_hosted(sdk, server) as model:
            response = await model.complete(question)
    assert response.message.text == "hello there"
    assert response.usage.prompt_tokens == 12
    assert response.usage.completion_tokens == 5
    assert response.finish_reason == "stop"


@pytest.mark.parametrize("sdk", ["openai", LITELLM])
async def test_conversation_with_tools_on_the_wire(open_hosted, sdk) -> None:
    """Tools, calls, results and settings reach the server; the call comes back by its own name."""
    with FaultyServer([Reply(tool_calls=[CALL])]) as server:
        async with open_hosted(sdk, server) as model:
            response = await model.complete(conversation(user="team-a"))
        sent = server.requests[0].body
    assert response.message.tool_calls == (replace(CALL, name="math.factorial"),)
    assert sent["tools"][0]["function"]["name"] == "math_factorial"
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"n":4}'
    assert sent["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "24"}
    assert (sent["temperature"], sent["max_tokens"]) == (0.0, 50)
    assert sent["user"] == "team-a"


async def test_anthropic_conversation_with_tools_on_the_wire(open_hosted) -> None:
    """The same conversation in Anthropic's protocol."""
    block = {"type": "tool_use", "id": "c1", "name": "math_factorial", "input": {"n": 4}}
    with FaultyServer([RawReply(body=anthropic_message(block, stop_reason="tool_use"))]) as server:
        async with open_hosted("anthropic", server) as model:
            response = await model.complete(conversation(metadata={"user_id": "a"}))
        sent = server.requests[0].body
    assert response.message.tool_calls == (replace(CALL, name="math.factorial"),)
    assert response.finish_reason == "tool_calls"
    assert server.requests[0].path == "/v1/messages"
    assert [tool["name"] for tool in sent["tools"]] == ["math_factorial"]
    assert (sent["temperature"], sent["max_tokens"]) == (0.0, 50)
    assert sent["metadata"] == {"user_id": "a"}


@pytest.mark.parametrize("sdk", ["openai", LITELLM])
async def test_stream_of_text_and_calls(open_hosted, sdk) -> None:
    """Text arrives in pieces, and calls are put together."""
    with FaultyServer([Reply(text="one two", tool_calls=[CALL])]) as server:
        async with open_hosted(sdk, server) as model:
            events = [event async for event in model.stream(conversation())]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["one ", "two"]
    response = events[-1]
    assert isinstance(response, ModelResponse)
    assert response.message.tool_calls == (replace(CALL, name="math.factorial"),)
    assert response.usage.completion_tokens == 5


async def test_anthropic_stream(open_hosted) -> None:
    """Blocks of text and of tool use are put together from their deltas."""
    stream = anthropic_stream(
        (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": t} for t in ("one ", "two")],
        ),
        (
            {"type": "tool_use", "id": "c1", "name": "math_factorial", "input": {}},
            [{"type": "input_json_delta", "partial_json": part} for part in ('{"n"', ": 4}")],
        ),
        stop_reason="tool_use",
    )
    with FaultyServer([stream]) as server:
        async with open_hosted("anthropic", server) as model:
            events = [event async for event in model.stream(conversation())]
    assert [event.text for event in events[:-1]] == ["one ", "two"]
    assert events[-1].message.tool_calls == (replace(CALL, name="math.factorial"),)
    assert (events[-1].usage.prompt_tokens, events[-1].usage.completion_tokens) == (12, 7)


@pytest.mark.parametrize("sdk", SDKS)
async def test_transient_failures_are_retried(open_hosted, question, sdk) -> None:
    """Our own policy holds for every SDK, and the SDK's own does not add to it."""
    script = [ErrorStatus(status=429), Reset(), good_answer(sdk)]
    with FaultyServer(script) as server:
        async with open_hosted(sdk, server, attempts=3) as model:
            assert (await model.complete(question)).message.text == "hello there"
        assert len(server.requests) == 3


@pytest.mark.parametrize("sdk", SDKS)
async def test_status_is_translated(open_hosted, question, sdk) -> None:
    """A refused key says which variable to look at, and does not show the key."""
    refusal = ErrorStatus(status=401, message="bad key sk-test-secret")
    with FaultyServer([refusal]) as server:
        async with open_hosted(sdk, server, attempts=3) as model:
            with pytest.raises(ModelStatusError, match="Check the key") as caught:
                await model.complete(question)
        assert len(server.requests) == 1
    assert caught.value.status == 401
    if sdk != "litellm":
        assert "sk-test-secret" not in str(caught.value)


@pytest.mark.parametrize("sdk", SDKS)
async def test_lost_connection_is_translated(open_hosted, question, sdk) -> None:
    """A reset is a connection error, also where an SDK makes a status of it."""
    with FaultyServer([Reset()]) as server:
        async with open_hosted(sdk, server) as model:
            with pytest.raises(ModelConnectionError):
                await model.complete(question)


@pytest.mark.parametrize("sdk", SDKS)
async def test_stall_is_a_timeout(open_hosted, question, sdk) -> None:
    """The deadline is ours."""
    request = replace(question, settings=ModelSettings(timeout_seconds=0.2))
    with FaultyServer([Stall()]) as server:
        async with open_hosted(sdk, server) as model:
            with pytest.raises(ModelTimeoutError):
                await model.complete(request)


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_answer_that_is_not_json(open_hosted, question, sdk) -> None:
    """A page of HTML with status 200 is a response error."""
    with FaultyServer([RawReply(body="<html>", content_type="text/html")]) as server:
        async with open_hosted(sdk, server) as model:
            with pytest.raises(ModelResponseError, match="is not JSON"):
                await model.complete(question)


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])  # litellm makes up the missing end
async def test_half_a_stream(open_hosted, question, sdk) -> None:
    """A stream that ends early is a connection error, after the text that did arrive."""
    whole = anthropic_stream(
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "one"}]),
        stop_reason="end_turn",
    )
    half = RawStream(pieces=whole.pieces[:3]) if sdk == "anthropic" else HalfStream()
    texts = []
    with FaultyServer([half]) as server:
        async with open_hosted(sdk, server) as model:
            with pytest.raises(ModelConnectionError):
                await collect(model, question, texts)
    assert texts


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_several_event_loops(open_hosted, question, sdk) -> None:
    """A model outlives the loops of several ``asyncio.run``."""
    with FaultyServer([good_answer(sdk)] * 2) as server:
        model = open_hosted(sdk, server)
        texts = [asyncio.run(model.complete(question)).message.text for _ in range(2)]
    assert texts == ["hello there"] * 2


@pytest.mark.filterwarnings("ignore")
async def test_litellm_states_the_price(open_hosted, question) -> None:
    """The price is the one in litellm's list, streamed or not."""
    with FaultyServer([good_answer("litellm")] * 2) as server:
        async with open_hosted("litellm", server) as model:
            whole = (await model.complete(question)).usage.cost_usd
            streamed = [event async for event in model.stream(question)][-1].usage.cost_usd
    assert whole is not None
    assert whole > 0
    assert streamed == pytest.approx(whole)


@pytest.mark.parametrize("sdk", SDKS)
def test_absent_sdk_names_the_pip_line(monkeypatch: pytest.MonkeyPatch, sdk) -> None:
    """A name whose extra is absent says what to install."""
    monkeypatch.setitem(importlib.sys.modules, sdk, None)
    with pytest.raises(MissingExtraError, match=rf'pip install "agentkit-evolve\[{sdk}\]"'):
        resolve_model(f"{sdk}:some/model")
