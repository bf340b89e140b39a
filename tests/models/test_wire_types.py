"""What we send, and what the scripted server answers, has the types of the official SDKs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter
from support.media import PDF, RED
from support.model_server import ProviderServer
from support.server_steps import Reply

from agentkit import Image
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models import ModelRequest, ModelSettings, OpenAICompatibleModel
from agentkit.models.anthropic import anthropic_model
from agentkit.models.responses import openai_responses_model
from agentkit.tools import ToolDefinition

openai = pytest.importorskip("openai", reason="the extra 'openai' is not installed")
anthropic = pytest.importorskip("anthropic", reason="the extra 'anthropic' is not installed")
chat = pytest.importorskip("openai.types.chat")
responses = pytest.importorskip("openai.types.responses")

SENT = {
    "/chat/completions": chat.completion_create_params.CompletionCreateParamsNonStreaming,
    "/messages": anthropic.types.message_create_params.MessageCreateParamsNonStreaming,
    "/responses": responses.response_create_params.ResponseCreateParamsNonStreaming,
}
WHOLE = {
    "/chat/completions": chat.ChatCompletion,
    "/messages": anthropic.types.Message,
    "/responses": responses.Response,
}
EVENT = {
    "/chat/completions": chat.ChatCompletionChunk,
    "/messages": anthropic.types.RawMessageStreamEvent,
    "/responses": responses.ResponseStreamEvent,
}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = tuple(ToolDefinition.from_schema(name, "Does it.", SCHEMA) for name in ("a.b", "c"))
CALLS = (
    ToolCall(call_id="c1", name="a.b", arguments={"n": 4}),
    ToolCall(call_id="c2", name="c", malformed="n = 5"),
)
REQUEST = ModelRequest(
    messages=(
        SystemMessage(text="Be brief."),
        UserMessage(text="4 and 5 squared?", media=(RED, PDF, Image(url="https://x.example/a"))),
        AssistantMessage(text="Well.", tool_calls=CALLS),
        ToolMessage(call_id="c1", name="a.b", text="16", media=(RED,)),
        ToolMessage(call_id="c2", name="c", text="not JSON"),
    ),
    tools=TOOLS,
    tool_choice="required",
    output_schema={**SCHEMA, "additionalProperties": False},
    settings=ModelSettings(temperature=0.5, top_p=0.9, max_tokens=9, seed=1),
)
REPLIES = {
    "calls": Reply(text="one two", tool_calls=CALLS[:1] * 2, reasoning="hm"),
    "search": Reply(
        tool_calls=[ToolCall(call_id="s", name="tool_search", arguments={"query": "x"})]
    ),
    "refusal": Reply(refusal="I would rather not."),
    "cut": Reply(text="one", finish_reason="length"),
    "structured": Reply(output={"n": 1}),
}
OFFERED: Mapping[str, list[dict[str, Any]]] = {
    "/chat/completions": [],
    "/messages": [{"name": "a_b", "input_schema": SCHEMA}],
    "/responses": [],
}


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Building one takes a good part of a second."""
    return TypeAdapter(kind)


def check(kind: Any, value: object) -> None:
    """Raise where a value has not the type; parts that pydantic checks only when read are read."""
    read(adapter_of(kind).validate_python(value))


def read(value: object) -> None:
    """Go through all of it."""
    if isinstance(value, Mapping):
        read(value.values())
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for part in value:
            read(part)


ADAPTERS = {
    "chat": lambda: OpenAICompatibleModel("m"),
    "anthropic": lambda: anthropic_model("claude"),
    "responses": lambda: openai_responses_model("gpt"),
}


@pytest.mark.parametrize("name", ADAPTERS)
async def test_requests_have_the_types_of_the_sdk(monkeypatch, name) -> None:
    """A request with everything in it is one that the provider's own types describe."""
    with ProviderServer([Reply(output={"n": 1})]) as server:
        for provider, url in (("OPENAI", server.base_url), ("ANTHROPIC", server.root_url)):
            monkeypatch.setenv(f"{provider}_BASE_URL", url)
            monkeypatch.setenv(f"{provider}_API_KEY", "k")
        async with ADAPTERS[name]() as model:
            await model.complete(REQUEST)
        (request,) = server.requests
    check(SENT[request.path.removeprefix("/v1")], request.body)


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("path", WHOLE)
def test_answers_have_the_types_of_the_sdk(path, reply) -> None:
    """Whole answers and each event of a stream are checked, which the SDKs themselves do not."""
    asked = {"model": "m", "messages": [], "tools": OFFERED[path]}
    with ProviderServer([REPLIES[reply]] * 2) as server:
        whole, stream = (
            httpx.post(f"{server.base_url}{path}", json=body, trust_env=False)
            for body in (asked, {**asked, "stream": True})
        )
    check(WHOLE[path], whole.json())
    lines = [line.removeprefix("data: ") for line in stream.text.splitlines() if "data: " in line]
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    assert len(events) > 2
    for event in events:
        if event.get("type") != "ping":  # Anthropic sends it and its types leave it out
            check(EVENT[path], event)
