"""What the items of openai-agents say, in our words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.response import decode_call


def usage_of(usage: Any) -> Usage:
    """What an answer cost."""
    return Usage(
        requests=usage.requests or 1,
        prompt_tokens=usage.input_tokens,
        cached_tokens=usage.input_tokens_details.cached_tokens,
        completion_tokens=usage.output_tokens,
    )


def as_dict(item: Any) -> Mapping[str, Any]:
    """An item as data, whichever of its two forms it has."""
    if isinstance(item, Mapping):
        return item
    dumped: Mapping[str, Any] = item.model_dump()
    return dumped


def text_of(item: Mapping[str, Any]) -> str:
    """The words of a message item; other items have none."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    if item.get("type", "message") != "message" or content is None:
        return ""
    return "".join(part.get("text") or "" for part in content)


def request_of(given: Any, names: WireNames) -> tuple[str, tuple[Message, ...]]:
    """The request and what was said before it, from any input that the framework takes."""
    if isinstance(given, str):
        return given, ()
    if not isinstance(given, list):  # the state of an interrupted run; its calls are the beginning
        return "", ()
    said = list(_said(given, names))
    if said and isinstance(said[-1], UserMessage):
        return said[-1].text, tuple(said[:-1])
    return "", tuple(said)


def _said(items: list[Any], names: WireNames) -> Iterator[Message]:
    called: dict[str, str] = {}
    for item in map(as_dict, items):
        kind = item.get("type", "message")
        if kind == "function_call":
            call: ToolCall = decode_call(item["call_id"], item["name"], item["arguments"], names)
            called[call.call_id] = call.name
            yield AssistantMessage(tool_calls=(call,))
        elif kind == "function_call_output":
            call_id, output = item["call_id"], item["output"]
            text = output if isinstance(output, str) else ""
            yield ToolMessage(call_id=call_id, name=called.get(call_id, ""), text=text)
        elif item.get("role") == "user":
            yield UserMessage(text=text_of(item))
        elif item.get("role") == "assistant":
            yield AssistantMessage(text=text_of(item))
