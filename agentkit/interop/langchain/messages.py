"""What LangChain's messages say, in our words, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentkit.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.response import decode_call


def answer_of(message: Any, names: WireNames) -> AssistantMessage:
    """An answer of the model, with the calls whose arguments LangChain could not read."""
    calls = [decode_call(one["id"], one["name"], one["args"], names) for one in message.tool_calls]
    calls += [
        decode_call(one["id"], one["name"] or "", one["args"] or "", names)
        for one in message.invalid_tool_calls
    ]
    return AssistantMessage(text=text_of(message.content), tool_calls=tuple(calls))


def said(messages: Sequence[Any], names: WireNames) -> Iterator[Message]:
    """A conversation; the application's own instructions are no part of it."""
    for message in messages:
        text = text_of(message.content)
        match message.type:
            case "human":
                yield UserMessage(text=text)
            case "ai":
                yield answer_of(message, names)
            case "tool":
                name = names.decode(message.name or "")
                yield ToolMessage(call_id=message.tool_call_id, name=name, text=text)


def text_of(content: Any) -> str:
    """The words of a message's content; pictures and files have none."""
    if isinstance(content, str):
        return content
    blocks = [block if isinstance(block, str) else block.get("text", "") for block in content]
    return "".join(blocks)


def usage_of(metadata: Mapping[str, Any] | None) -> Usage:
    """What an answer cost."""
    counted = metadata or {}
    return Usage(
        requests=1,
        prompt_tokens=counted.get("input_tokens", 0),
        cached_tokens=counted.get("input_token_details", {}).get("cache_read", 0),
        completion_tokens=counted.get("output_tokens", 0),
    )


def message_of(result: ToolResult, made: Mapping[str, Any]) -> Any:
    """Our result of a call that LangChain made."""
    from langchain_core.messages import ToolMessage as Answer

    status = "error" if result.status in {"failed", "denied"} else "success"
    return Answer(content=result.text, name=made["name"], tool_call_id=made["id"], status=status)
