"""Answers of providers that fail late or break their protocol, through the real SDKs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.model_server import ProviderServer
from support.server_steps import ErrorStatus, RawReply, RawStream, Reply

from agentkit.errors import ModelResponseError, ModelStatusError, UsageError
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models import ModelRequest, ModelSettings, RetryPolicy, StreamingChatModel, TextDelta
from agentkit.models.anthropic import anthropic_model
from agentkit.models.openai import openai_model, openai_responses_model

MAKERS = {
    "anthropic": anthropic_model,
    "openai": openai_model,
    "openai-responses": openai_responses_model,
}
Opener = Callable[..., StreamingChatModel]


@pytest.fixture
def open_sdk(monkeypatch: pytest.MonkeyPatch, openai_client: Callable[[], Any]) -> Opener:
    """Opens a model of an SDK at a server, with one attempt."""

    def open_at(name: str, server: ProviderServer):
        pytest.importorskip(name.partition("-")[0], reason=f"the extra of {name} is not installed")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
        further = {"client": openai_client()} if name == "openai" else {}
        return MAKERS[name]("m", retry=RetryPolicy(attempts=1), **further)

    return open_at


def stream_of(*events: dict | str) -> RawStream:
    """Events as a server sends them; a text is sent as the data that it is."""
    pieces = []
    for event in events:
        name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
        data = event if isinstance(event, str) else json.dumps(event)
        pieces.append(f"{name}data: {data}\n\n".encode())
    return RawStream(pieces=pieces)


async def last_of(model: StreamingChatModel, request: ModelRequest) -> object:
    """The last event of a streamed answer."""
    return [event async for event in model.stream(request)][-1]


FAILED = {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}}
BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
LATE = [
    ("openai-responses", {"type": "response.failed", "response": FAILED}, 429),
    ("openai-responses", {"type": "error", "code": "server_error", "message": "boom"}, 500),
    ("openai", {"error": {"code": "model_not_found", "message": "gone"}}, 404),
    ("anthropic", BUSY, 529),
]


@pytest.mark.parametrize(("name", "event", "status"), LATE)
async def test_error_inside_a_stream(open_sdk, question, name, event, status) -> None:
    """What a provider reports after it has sent status 200 counts as the status it stands for."""
    with ProviderServer([stream_of(event)]) as server:
        async with open_sdk(name, server) as model:
            with pytest.raises(ModelStatusError) as caught:
                await last_of(model, question)
    assert caught.value.status == status


async def test_response_that_failed(open_sdk, question) -> None:
    """A response object with status ``failed`` is an error, although its HTTP status is 200."""
    with ProviderServer([RawReply(body={**FAILED, "output": []})]) as server:
        async with open_sdk("openai-responses", server) as model:
            with pytest.raises(ModelStatusError, match="slow") as caught:
                await model.complete(question)
    assert caught.value.status == 429


SEARCH = {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": {}}
DELTA = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "input_json_delta", "partial_json": "{x"},
}
BROKEN = [
    ("anthropic", [{"type": "message_start", "message": {"content": []}}, DELTA]),
    (
        "anthropic",
        [
            {"type": "message_start", "message": {"content": []}},
            {"type": "content_block_start", "index": 0, "content_block": SEARCH},
            DELTA,
            {"type": "message_stop"},
        ],
    ),
    ("openai-responses", [{"type": "response.output_text.delta", "delta": 3}]),
    ("openai-responses", [{"type": "response.completed", "response": {"output": [3]}}]),
    *((name, ["{oops"]) for name in MAKERS),
    *((name, ["[1]"]) for name in MAKERS),
]


@pytest.mark.parametrize(("name", "events"), BROKEN)
async def test_stream_off_the_protocol(open_sdk, question, name, events) -> None:
    """Events of another shape are a response error that shows what came."""
    with ProviderServer([stream_of(*events)]) as server:
        async with open_sdk(name, server) as model:
            with pytest.raises(ModelResponseError):
                await last_of(model, question)


WHOLE = {
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "well"}]}],
    "status": "completed",
    "choices": [{"message": {"content": "well"}}],
    "content": [{"type": "text", "text": "well"}],
}


@pytest.mark.parametrize("name", MAKERS)
async def test_server_that_does_not_stream(open_sdk, question, name) -> None:
    """A whole answer where a stream was asked for is the answer, in one piece."""
    with ProviderServer([RawReply(body=WHOLE)]) as server:
        async with open_sdk(name, server) as model:
            piece, response = [event async for event in model.stream(question)]
    assert piece == TextDelta(text="well")
    assert response.message.text == "well"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", MAKERS)
async def test_arguments_that_are_no_object(open_sdk, question, name, streamed) -> None:
    """They arrive as text, for the agent to tell the model."""
    call = ToolCall(call_id="c", name="f", malformed="[1]")
    with ProviderServer([Reply(tool_calls=[call])]) as server:
        async with open_sdk(name, server) as model:
            response = (
                await last_of(model, question) if streamed else await model.complete(question)
            )
    assert not isinstance(response, TextDelta)
    (made,) = response.message.tool_calls
    assert (made.malformed, dict(made.arguments)) == ("[1]", {})


@pytest.mark.parametrize("name", MAKERS)
async def test_arguments_that_are_not_json(open_sdk, name) -> None:
    """A history that can not be written as JSON is the caller's error, named as such."""
    call = ToolCall(call_id="c", name="f", arguments={"x": float("nan")})
    request = ModelRequest(
        messages=(
            UserMessage(text="x"),
            AssistantMessage(tool_calls=(call,)),
            ToolMessage(call_id="c", name="f", text="1"),
        )
    )
    with ProviderServer(["well"]) as server:
        async with open_sdk(name, server) as model:
            with pytest.raises(UsageError, match="can not be written as JSON"):
                await model.complete(request)


@pytest.mark.parametrize(
    ("name", "field"),
    [("openai-responses", "input"), ("anthropic", "system"), ("openai", "messages")],
)
async def test_extra_may_not_replace_the_conversation(open_sdk, question, name, field) -> None:
    """What says what is asked belongs to the adapter; instructions, too."""
    request = ModelRequest(messages=question.messages, settings=ModelSettings(extra={field: "x"}))
    with ProviderServer(["well"]) as server:
        async with open_sdk(name, server) as model:
            with pytest.raises(UsageError, match=f"may not set '{field}'"):
                await model.complete(request)
        assert server.requests == []


@pytest.mark.parametrize("name", ["openai", "openai-responses"])
async def test_a_key_that_is_fetched_stays_secret(name, question) -> None:
    """A client that asks for its key before each request, as teams with short-lived ones do."""
    openai = pytest.importorskip("openai", reason="the extra 'openai' is not installed")

    async def fetch() -> str:
        return "sk-fetched-secret"

    refusal = ErrorStatus(status=401, message="incorrect key sk-fetched-secret")
    with ProviderServer([refusal]) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=fetch) as client:
            with pytest.raises(ModelStatusError, match=r"incorrect key \*\*\*") as caught:
                await MAKERS[name]("m", client=client).complete(question)
        assert server.requests[0].headers["authorization"] == "Bearer sk-fetched-secret"
    assert "fetched-secret" not in f"{caught.value} {caught.value.body}"


async def test_reasoning_that_led_to_nothing_stays_here(open_sdk) -> None:
    """A provider refuses reasoning without what it led to, so such a turn is left out."""
    with ProviderServer([Reply(reasoning="hm"), "well"]) as server:
        async with open_sdk("openai-responses", server) as model:
            asked = ModelRequest(messages=(UserMessage(text="x"),))
            first = (await model.complete(asked)).message
            assert first.provider_items
            again = ModelRequest(messages=(*asked.messages, first, UserMessage(text="well?")))
            await model.complete(again)
        sent = server.requests[1].body["input"]
    assert [item["content"] for item in sent] == ["x", "well?"]
