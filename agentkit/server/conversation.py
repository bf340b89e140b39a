"""``Conversation``: the messages of a request, checked and in our form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.wire import parse_json
from agentkit.server.problem import Problem, invalid


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """What was said, and what is to be answered.

    Attributes:
        messages: All of it, oldest first.
        answers: What the client says to the calls that the last answer left to it, by call id;
            empty when a user message is to be answered.
    """

    messages: tuple[Message, ...]
    answers: Mapping[str, str] = field(default_factory=dict)

    @property
    def request(self) -> str:
        """The user message to be answered."""
        return self.messages[-1].text

    @property
    def history(self) -> tuple[Message, ...]:
        """What was said before the last user message."""
        last = [at for at, one in enumerate(self.messages) if isinstance(one, UserMessage)]
        return self.messages[: last[-1]] if last else ()


def read_messages(records: Any, *, most: int) -> Conversation | Problem:
    """The conversation in a request's ``messages``.

    Args:
        records: The field as it came.
        most: How many messages there may be.
    """
    if not isinstance(records, list) or not records:
        return invalid("messages must be a list with a message in it", param="messages")
    if len(records) > most:
        message = f"{len(records)} messages; at most {most} are taken"
        return invalid(message, param="messages", code="too_many_messages")
    messages: list[Message] = []
    for at, record in enumerate(records):
        read = _read_one(record, f"messages[{at}]", messages)
        if isinstance(read, Problem):
            return read
        messages.append(read)
    return _ended(messages)


def _ended(messages: Sequence[Message]) -> Conversation | Problem:
    answers = {}
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        answers[message.call_id] = message.text
    if not answers and not isinstance(messages[-1], UserMessage):
        return invalid(
            f"the last message is the {messages[-1].role}'s; a user message, or results of the "
            "calls that the last answer made, are to come last",
            param=f"messages[{len(messages) - 1}].role",
        )
    if not answers and not messages[-1].text.strip():
        return invalid("the user message is empty", param=f"messages[{len(messages) - 1}].content")
    return Conversation(messages=tuple(messages), answers=answers)


def _read_one(record: Any, path: str, before: Sequence[Message]) -> Message | Problem:
    if not isinstance(record, dict):
        return invalid(f"{path} is not an object", param=path)
    text = _text(record.get("content"), f"{path}.content")
    if isinstance(text, Problem):
        return text
    read: Message | Problem
    match record.get("role"):
        case "system" | "developer":
            read = SystemMessage(text=text)
        case "user":
            read = UserMessage(text=text)
        case "assistant":
            read = _assistant_message(record, text, path)
        case "tool":
            read = _tool_message(record, text, path, before)
        case _:
            message = f"{path}.role must be system, developer, user, assistant or tool"
            read = invalid(message, param=f"{path}.role")
    return read


def _text(content: Any, path: str) -> str | Problem:
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and _is_plain(part)]
    if len(texts) < len(parts):
        message = f"{path} must be text, or a list of parts of type text"
        return invalid(message, param=path, code="unsupported_content")
    text = "".join(map(str, texts))
    if not is_whole(text):
        return invalid(f"{path} holds half of a surrogate pair", param=path)
    return text


def _is_plain(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


def _assistant_message(
    record: Mapping[str, Any], text: str, path: str
) -> AssistantMessage | Problem:
    calls = _calls(record.get("tool_calls"), f"{path}.tool_calls")
    if isinstance(calls, Problem):
        return calls
    return AssistantMessage(text=text, tool_calls=calls)


def _calls(records: Any, path: str) -> tuple[ToolCall, ...] | Problem:
    if records is None:
        return ()
    if not isinstance(records, list):
        return invalid(f"{path} must be a list", param=path)
    calls = []
    for at, record in enumerate(records):
        call = _call(record)
        if call is None:
            message = f"{path}[{at}] needs an id, and a function with a name and arguments"
            return invalid(message, param=f"{path}[{at}]")
        calls.append(call)
    return tuple(calls)


def _call(record: Any) -> ToolCall | None:
    function = record.get("function") if isinstance(record, dict) else None
    if not isinstance(function, dict):
        return None
    found = [record.get("id"), function.get("name"), function.get("arguments")]
    whole = [value for value in found if isinstance(value, str) and is_whole(value)]
    if len(whole) < len(found):
        return None
    call_id, name, text = whole
    try:
        arguments = parse_json(text or "{}")
        json.dumps(arguments, ensure_ascii=False).encode()
    except ValueError:
        return ToolCall(call_id=call_id, name=name, malformed=text)
    if not isinstance(arguments, dict):
        return ToolCall(call_id=call_id, name=name, malformed=text)
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


def _tool_message(
    record: Mapping[str, Any], text: str, path: str, before: Sequence[Message]
) -> Message | Problem:
    call_id = record.get("tool_call_id")
    names = {call.call_id: call.name for call in _called(before)}
    if not isinstance(call_id, str) or (names and call_id not in names):
        message = f"{path}.tool_call_id names no call of the messages before it"
        return invalid(message, param=f"{path}.tool_call_id")
    return ToolMessage(call_id=call_id, name=names.get(call_id, ""), text=text)


def _called(messages: Sequence[Message]) -> Iterator[ToolCall]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from message.tool_calls


def is_whole(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON can write and nothing can keep."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
