"""Requests: what is serialised, and how often."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest
from agentkit.models.chat_completions import RequestEncoder
from agentkit.tools.definition import ToolDefinition


class CountingSchema(Mapping):
    """A schema that knows how often it was read for serialising."""

    def __init__(self, content: dict) -> None:
        self._content = content
        self.reads = 0

    def __getitem__(self, key):
        return self._content[key]

    def __iter__(self):
        self.reads += 1
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


def definition(name: str, schema: Mapping | None = None) -> ToolDefinition:
    """A tool of that name."""
    return ToolDefinition.from_schema(name, f"About {name}.", schema or {"type": "object"})


def encoder() -> RequestEncoder:
    """An encoder that has serialised nothing yet."""
    return RequestEncoder("m", max_tokens_field="max_tokens")


def body(one: RequestEncoder, request: ModelRequest, *, stream: bool = False) -> dict:
    """The decoded body of a request."""
    return json.loads(one.encode(request, stream=stream)[0])


REQUEST = ModelRequest(messages=(UserMessage(text="hi"),))


def test_tool_is_serialised_once() -> None:
    """A definition that is offered again, in another tuple, is not walked again."""
    enum = CountingSchema({"type": "string"})
    schema = {"type": "object", "properties": {"x": {"anyOf": [enum]}}}
    counted, other = definition("counted", schema), definition("other")
    one = encoder()
    one.encode(replace(REQUEST, tools=(counted,)), stream=False)
    reads = enum.reads
    assert reads > 0
    for tools in ((counted,), (other, counted), (counted, other)):
        one.encode(replace(REQUEST, tools=tools), stream=False)
    assert enum.reads == reads


def test_same_tools_give_the_same_bytes_in_their_order() -> None:
    """A prompt cache sees one prefix: the order is that of the request, each time."""
    tools = tuple(definition(name) for name in "zma")
    one = encoder()
    first = one.encode(replace(REQUEST, tools=tools), stream=False)[0]
    again = one.encode(replace(REQUEST, tools=tuple(tools)), stream=False)[0]
    fresh = encoder().encode(replace(REQUEST, tools=tools), stream=False)[0]
    assert first == again == fresh
    assert [tool["function"]["name"] for tool in json.loads(first)["tools"]] == ["z", "m", "a"]


def test_name_on_the_wire_depends_on_the_company() -> None:
    """Cached bytes are right under every name that a tool gets."""
    one = encoder()
    dotted, plain = definition("a.b"), definition("a_b")
    alone = body(one, replace(REQUEST, tools=(dotted,)))["tools"]
    both = body(one, replace(REQUEST, tools=(dotted, plain)))["tools"]
    assert alone[0]["function"]["name"] == "a_b"
    assert both[0]["function"]["name"].startswith("a_b_")
    assert both[0]["function"]["description"] == "About a.b."
    assert both[1]["function"]["description"] == "About a_b."


def test_forgotten_definitions_are_not_kept() -> None:
    """The cache holds what is in use: many short-lived tools leave only the newest tuples."""
    one = encoder()
    for number in range(200):
        one.encode(replace(REQUEST, tools=(definition(f"t{number}"),)), stream=False)
    gc.collect()
    assert len(one._tools) <= 20
    assert len(one._blocks) <= 20


def test_body_without_options_has_none() -> None:
    """What nobody asked for is not sent."""
    assert body(encoder(), REQUEST).keys() == {"model", "messages"}
    assert body(encoder(), replace(REQUEST, tool_choice="required")).keys() == {"model", "messages"}
    assert body(encoder(), REQUEST, stream=True).keys() == {
        "model",
        "messages",
        "stream",
        "stream_options",
    }


@pytest.mark.parametrize("text", ['"quoted" \\ \n', "ü 漢字 😀", "\x00\x1f", "half \ud83d"])
def test_any_text_can_be_sent(text) -> None:
    """Text arrives as it is, be it control characters or half a surrogate pair."""
    sent = body(encoder(), ModelRequest(messages=(UserMessage(text=text),)))
    assert sent["messages"][0]["content"] == text
