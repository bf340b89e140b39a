"""Anthropic's protocol: requests, answers, streams, and marks for its prompt cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from support.model_server import ProviderServer
from support.server_steps import RawStream, Reply

from agentkit.errors import ModelResponseError, ModelStatusError, UsageError
from agentkit.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentkit.models import RetryPolicy
from agentkit.models.anthropic import AnthropicCodec, MessageAssembler, anthropic_model
from agentkit.models.base import ModelRequest, ModelSettings
from agentkit.models.http_model import HttpModel
from agentkit.tools.definition import ToolDefinition

FACTORIAL = ToolDefinition.from_schema("math.factorial", "1 to n.", {"type": "object"})
QUESTION = ModelRequest(messages=(UserMessage(text="4!?"),))
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}}


def message(*blocks: dict, **fields: object) -> dict:
    """A message object with these blocks."""
    return {"content": list(blocks), "stop_reason": "end_turn", "model": "claude", **fields}


def use(name: str, **arguments: object) -> dict:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": f"id_{name}", "name": name, "input": arguments}


def test_conversation() -> None:
    """System texts are joined; results follow their calls in one user message."""
    calls = tuple(ToolCall(call_id=i, name="math.factorial", arguments={"n": 1}) for i in "ab")
    broken = ToolCall(call_id="c", name="gone", malformed="{oops")
    request = ModelRequest(
        messages=(
            SystemMessage(text="Be brief."),
            UserMessage(text="two, please"),
            AssistantMessage(text="Sure.", tool_calls=(*calls, broken)),
            *(ToolMessage(call_id=i, name="math.factorial", text=i.upper()) for i in "abc"),
            UserMessage(text="and now?"),
            SystemMessage(text="Be kind."),
        ),
        tools=(FACTORIAL,),
    )
    fields = AnthropicCodec(request).encode("claude")
    assert fields["system"][0]["text"] == "Be brief.\n\nBe kind."
    assert fields["max_tokens"] == 4096
    (sent,) = fields["tools"]
    assert (sent["name"], sent["description"]) == ("math_factorial", "1 to n.")
    assert sent["input_schema"] == {"type": "object"}
    assert "tool_choice" not in fields
    user, assistant, results = fields["messages"]
    assert user == {"role": "user", "content": [{"type": "text", "text": "two, please"}]}
    assert [block["type"] for block in assistant["content"]] == ["text"] + ["tool_use"] * 3
    assert assistant["content"][1]["name"] == "math_factorial"
    assert assistant["content"][3]["input"] == {"malformed_arguments": "{oops"}
    assert [block["type"] for block in results["content"]] == ["tool_result"] * 3 + ["text"]
    assert results["content"][0] == {"type": "tool_result", "tool_use_id": "a", "content": "A"}


def test_empty_messages_are_left_out() -> None:
    """The protocol refuses empty text, and a request of nothing else is the caller's mistake."""
    request = replace(QUESTION, messages=(UserMessage(text="hi"), AssistantMessage()))
    assert len(AnthropicCodec(request).encode("claude")["messages"]) == 1
    with pytest.raises(UsageError, match="at least one message"):
        AnthropicCodec(replace(QUESTION, messages=(SystemMessage(text="hi"),))).encode("claude")


def test_settings() -> None:
    """Zero is a temperature; what is not set is not sent."""
    settings = ModelSettings(temperature=0.0, max_tokens=9, seed=1)
    fields = AnthropicCodec(replace(QUESTION, settings=settings)).encode("claude")
    assert (fields["temperature"], fields["max_tokens"]) == (0.0, 9)
    assert fields.keys() == {"model", "max_tokens", "messages", "temperature"}


@pytest.mark.parametrize(
    ("choice", "schema", "expected", "names"),
    [
        ("auto", None, None, ["math_factorial"]),
        ("none", None, {"type": "none"}, ["math_factorial"]),
        ("required", None, {"type": "any"}, ["math_factorial"]),
        ("auto", OBJECT, {"type": "any"}, ["math_factorial", "answer"]),
        ("none", OBJECT, {"type": "tool", "name": "answer"}, ["math_factorial", "answer"]),
        ("required", OBJECT, {"type": "any"}, ["math_factorial"]),
    ],
)
def test_tool_choice_and_the_answer_tool(choice, schema, expected, names) -> None:
    """A structured answer is one more tool, unless a real one has to be called."""
    request = replace(QUESTION, tools=(FACTORIAL,), tool_choice=choice, output_schema=schema)
    fields = AnthropicCodec(request).encode("claude")
    assert fields.get("tool_choice") == expected
    assert [tool["name"] for tool in fields["tools"]] == names


def test_structured_answer_that_is_no_object() -> None:
    """A schema of another type travels inside an object."""
    codec = AnthropicCodec(replace(QUESTION, output_schema={"type": "array"}))
    schema = codec.encode("claude")["tools"][0]["input_schema"]
    assert schema["properties"] == {"value": {"type": "array"}}
    assert codec.decode(message(use("answer", value=[1, 2]))).message.text == "[1, 2]"


def test_answer_beside_calls_waits() -> None:
    """Where the model answers and calls at once, the calls come first."""
    request = replace(QUESTION, tools=(FACTORIAL,), output_schema=OBJECT)
    blocks = use("answer", n=0), use("math_factorial", n=4)
    response = AnthropicCodec(request).decode(message(*blocks, stop_reason="tool_use"))
    assert [call.name for call in response.message.tool_calls] == ["math.factorial"]
    assert response.message.text == ""
    assert response.finish_reason == "tool_calls"


def test_tool_named_answer() -> None:
    """A real tool of that name keeps it."""
    real = ToolDefinition.from_schema("answer", "Answers the door.", {"type": "object"})
    codec = AnthropicCodec(replace(QUESTION, tools=(real,), output_schema=OBJECT))
    assert [tool["name"] for tool in codec.encode("claude")["tools"]] == ["answer", "answer_"]
    assert codec.decode(message(use("answer"))).message.tool_calls[0].name == "answer"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "unknown"),
        (None, "unknown"),
    ],
)
def test_finish_reasons(reason, finish) -> None:
    """Anthropic's words in ours."""
    block = {"type": "text", "text": "a"}
    response = AnthropicCodec(QUESTION).decode(message(block, stop_reason=reason))
    assert response.finish_reason == finish


def test_usage_counts_what_was_read() -> None:
    """Tokens from and into the prompt cache are part of the prompt."""
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 10,
        "output_tokens": 3,
    }
    response = AnthropicCodec(QUESTION).decode(message(usage=usage))
    assert response.usage == Usage(
        requests=1, prompt_tokens=35, cached_tokens=20, completion_tokens=3
    )


@pytest.mark.parametrize("answer", [{}, {"content": [5]}, {"content": [{"type": "text"}]}])
def test_answer_off_the_protocol(answer) -> None:
    """An answer of another shape is an error that says so."""
    with pytest.raises(ModelResponseError, match="does not follow the provider's protocol"):
        AnthropicCodec(QUESTION).decode(answer)


def test_delta_for_a_block_that_never_began() -> None:
    """A stream out of order is an error, not a KeyError."""
    delta = {"type": "text_delta", "text": "a"}
    event = {"type": "content_block_delta", "index": 3, "delta": delta}
    with pytest.raises(ModelResponseError, match="KeyError: 3"):
        MessageAssembler().add(event)


@pytest.fixture
def open_model(monkeypatch: pytest.MonkeyPatch) -> Callable[..., HttpModel]:
    """Opens a model at a server, with one attempt."""

    def open_at(server: ProviderServer) -> HttpModel:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
        return anthropic_model("claude", retry=RetryPolicy(attempts=1))

    return open_at


@pytest.mark.parametrize("streamed", [False, True])
async def test_thinking_goes_back_and_forces_no_call(open_model, streamed) -> None:
    """Thinking returns before the call that followed it; beside it the answer tool is a choice."""
    call = ToolCall(call_id="c", name="math_factorial", arguments={})
    thinking = ModelSettings(extra={"thinking": {"type": "enabled", "budget_tokens": 1024}})
    asked = replace(QUESTION, tools=(FACTORIAL,), settings=thinking, output_schema=OBJECT)
    with ProviderServer([Reply(reasoning="hm hm", tool_calls=[call]), "24"]) as server:
        async with open_model(server) as model:
            if streamed:
                *_, response = [event async for event in model.stream(asked)]
            else:
                response = await model.complete(asked)
            result = ToolMessage(call_id="c", name="math.factorial", text="24")
            said = (*asked.messages, response.message, result)
            await model.complete(replace(asked, messages=said))
        first, second = (request.body for request in server.requests)
    thought, called = second["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "hm hm", "signature": "sealed"}
    assert called["type"] == "tool_use"
    assert first["thinking"]["type"] == "enabled"
    assert "tool_choice" not in first
    assert [tool["name"] for tool in first["tools"]] == ["math_factorial", "answer"]


def stream_of(*events: dict | str) -> RawStream:
    """Events as a server sends them; a text is sent as the data that it is."""
    data = (one if isinstance(one, str) else json.dumps(one) for one in events)
    return RawStream(pieces=[f"data: {one}\n\n".encode() for one in data])


async def test_error_inside_a_stream(open_model) -> None:
    """What is reported after status 200 counts as the status it stands for."""
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    with ProviderServer([stream_of(busy)]) as server:
        async with open_model(server) as model:
            with pytest.raises(ModelStatusError, match="busy") as caught:
                _ = [event async for event in model.stream(QUESTION)]
    assert caught.value.status == 529


MARK = {"type": "ephemeral"}
CACHED = replace(
    QUESTION, messages=(SystemMessage(text="Be brief."), *QUESTION.messages), tools=(FACTORIAL,)
)


def marks(fields: Mapping[str, object]) -> list[object]:
    """Name of each marked tool, and whether the instructions are marked."""
    named = [tool["name"] for tool in fields.get("tools", []) if "cache_control" in tool]
    system = fields["system"]
    return [*named, isinstance(system, list) and system[0].get("cache_control") == MARK]


def test_what_is_marked_for_the_prompt_cache() -> None:
    """The last tool and the instructions of a request with tools; nothing without tools."""
    assert marks(AnthropicCodec(CACHED).encode("m")) == ["math_factorial", True]
    shaped = replace(CACHED, output_schema=OBJECT)
    assert marks(AnthropicCodec(shaped).encode("m")) == ["answer", True]
    assert marks(AnthropicCodec(replace(CACHED, tools=())).encode("m")) == [False]
