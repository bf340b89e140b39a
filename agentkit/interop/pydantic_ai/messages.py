"""What pydantic-ai's messages say, in our words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agentkit.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.response import decode_call


def usage_of(usage: Any) -> Usage:
    """What an answer cost."""
    return Usage(
        requests=1,
        prompt_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        completion_tokens=usage.output_tokens,
    )


def text_of(content: Any) -> str:
    """The words of a prompt; pictures and files have none."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part for part in content if isinstance(part, str))


def said(messages: Sequence[Any], names: WireNames) -> Iterator[Message]:
    """A conversation; the application's own instructions are no part of it."""
    for message in messages:
        if message.kind == "response":
            calls = [part for part in message.parts if part.part_kind == "tool-call"]
            texts = [part.content for part in message.parts if part.part_kind == "text"]
            yield AssistantMessage(
                text="".join(texts),
                tool_calls=tuple(
                    decode_call(part.tool_call_id, part.tool_name, part.args or {}, names)
                    for part in calls
                ),
            )
            continue
        for part in message.parts:
            if part.part_kind == "user-prompt":
                yield UserMessage(text=text_of(part.content))
            elif part.part_kind == "tool-return":
                name = names.decode(part.tool_name)
                text = part.model_response_str()
                yield ToolMessage(call_id=part.tool_call_id, name=name, text=text)
