"""``Dialect``: what a scripted server needs to know of a protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.messages import JsonObject, ToolCall
from agentkit.testing.server_steps import ErrorStatus, Reply

MODEL = "faulty"
"""The model's name in answers to requests that name none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """One protocol.

    Attributes:
        path: What requests to it end in.
        whole: The answer as one object, from the reply and the request's body.
        events: The answer as server-sent events, from the same.
        error: The body of an error.
    """

    path: str
    whole: Callable[[Reply, JsonObject], JsonObject]
    events: Callable[[Reply, JsonObject], list[bytes]]
    error: Callable[[ErrorStatus], JsonObject]


def event(data: JsonObject, *, named: bool = False) -> bytes:
    """One server-sent event; ``named`` ones carry their type as the event's name."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def words(text: str) -> list[str]:
    """The text in pieces: word by word, spaces kept."""
    parts = text.split(" ")
    return [f"{word} " for word in parts[:-1]] + [word for word in parts[-1:] if word]


def halves(text: str) -> tuple[str, str]:
    """The text cut in the middle."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as a model writes them."""
    return json.dumps(dict(call.arguments)) if call.malformed is None else call.malformed


def answer_text(reply: Reply) -> str:
    """What the reply says, a structured answer included."""
    return reply.text if reply.output is None else json.dumps(dict(reply.output))


def finish_reason(reply: Reply) -> str:
    """Why the model stopped, in the words of chat completions."""
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def model_of(request: JsonObject) -> str:
    """The name that the answer gives the model: the one it was asked by."""
    name = request.get("model")
    return name if isinstance(name, str) and name else MODEL


def tool_names(request: JsonObject) -> Sequence[str]:
    """Names of the tools in a request that have one at their top, in order."""
    tools: Sequence[Any] = request.get("tools") or ()
    return [tool["name"] for tool in tools if isinstance(tool, dict) and tool.get("name")]
