"""A chat completion request, read and checked: the conversation and labels.

What a client chooses is the conversation. The model, its settings and the tools are the agent's:
what would change them is refused where the client would be misled, and named in the answer where
it would not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.wire import parse_json
from agentkit.server.middleware import Problem, invalid


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


_NOT_HONOURED = (
    "frequency_penalty",
    "logit_bias",
    "max_completion_tokens",
    "max_tokens",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "seed",
    "service_tier",
    "store",
    "temperature",
    "top_p",
    "verbosity",
)
"""Fields of a request that say how to generate; that is the agent's business."""

_SESSION = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
_MOST_LABELS = 16
_LONGEST_LABEL = 64
_LONGEST_TEXT = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a client wants.

    Attributes:
        conversation: The messages.
        stream: Whether the answer is to come piece by piece.
        include_usage: Whether a stream is to end with the number of tokens.
        session: The client's name for a conversation that the server keeps; None when the client
            keeps it.
        labels: The client's labels for the episode.
        not_honoured: Fields that were set and make no difference.
    """

    conversation: Conversation
    stream: bool = False
    include_usage: bool = False
    session: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    not_honoured: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Reads requests.

    Attributes:
        model: The only model there is.
        alias: Another name that it is asked by: that of the model behind the agent.
        max_messages: Most messages in one request.
        output_schema: What the agent's answers match; None for text.
    """

    model: str
    max_messages: int
    output_schema: JsonObject | None
    alias: str = ""

    def read(self, body: bytes, session: str | None) -> Asked | Problem:
        """The request in ``body``.

        Args:
            body: JSON.
            session: The value of the session header, if there is one.
        """
        record = _parsed(body)
        if isinstance(record, Problem):
            return record
        problem = self._unusable(record) or _refused(record) or self._refused_format(record)
        if problem is not None:
            return problem
        conversation = read_messages(record.get("messages"), most=self.max_messages)
        if isinstance(conversation, Problem):
            return conversation
        session = record.get("session_id") if session is None else session
        labels = _bad_session(session, conversation) or _labels(record)
        if isinstance(labels, Problem):
            return labels
        options = record.get("stream_options") or {}
        return Asked(
            conversation=conversation,
            stream=bool(record.get("stream")),
            include_usage=options.get("include_usage") is True,
            session=session,
            labels=labels,
            not_honoured=tuple(name for name in _NOT_HONOURED if record.get(name) is not None),
        )

    def _unusable(self, record: JsonObject) -> Problem | None:
        model = record.get("model")
        if not isinstance(model, str):
            return invalid("model must be a string", param="model", code="missing_model")
        if model not in {self.model, self.alias}:
            message = f"there is no model {model[:100]!r} here; this server has {self.model!r}"
            return Problem(status=404, message=message, code="model_not_found", param="model")
        if not isinstance(record.get("stream"), bool | None):
            return invalid("stream must be true or false", param="stream")
        if not isinstance(record.get("stream_options"), dict | None):
            return invalid("stream_options must be an object", param="stream_options")
        return None

    def _refused_format(self, record: JsonObject) -> Problem | None:
        """Answers have the agent's format; another one can not be asked for."""
        wanted = record.get("response_format")
        if wanted is None:
            return None
        kind = wanted.get("type") if isinstance(wanted, dict) else None
        own = self.output_schema
        described = wanted.get("json_schema") if isinstance(wanted, dict) else None
        schema = described.get("schema") if isinstance(described, dict) else None
        fits = {
            "text": own is None,
            "json_object": own is not None,
            "json_schema": own is not None and schema == own,
        }
        if isinstance(kind, str) and fits.get(kind):
            return None
        has = "text" if own is None else "JSON of the agent's own schema"
        message = f"this agent answers with {has}; response_format can not change that"
        return invalid(message, param="response_format", code="unsupported_value")


def _parsed(body: bytes) -> JsonObject | Problem:
    try:
        record = parse_json(body.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError is one
        return invalid(f"the body is not JSON: {error}", code="invalid_json")
    if not isinstance(record, dict):
        return invalid("the body is not a JSON object", code="invalid_json")
    return record


def _refused(record: JsonObject) -> Problem | None:
    """The first field that would change what the answer is."""
    wanted: Mapping[str, tuple[bool, str]] = {
        "tools": (
            bool(record.get("tools")),
            "the agent behind this server has its own tools; leave tools out",
        ),
        "functions": (
            bool(record.get("functions")),
            "the agent behind this server has its own tools; leave functions out",
        ),
        "tool_choice": (
            record.get("tool_choice") not in {None, "auto"}
            if isinstance(record.get("tool_choice"), str | None)
            else True,
            "which tools are used is the agent's choice; leave tool_choice out",
        ),
        "n": (record.get("n") not in (None, 1), "one answer to a request; n must be 1"),
        "stop": (bool(record.get("stop")), "stop sequences are not supported; leave stop out"),
        "logprobs": (
            bool(record.get("logprobs") or record.get("top_logprobs")),
            "probabilities of tokens are not reported; leave logprobs out",
        ),
        "modalities": (
            record.get("modalities") not in (None, ["text"]) or bool(record.get("audio")),
            "answers are text; leave modalities and audio out",
        ),
    }
    for name, (is_refused, why) in wanted.items():
        if is_refused:
            return invalid(why, param=name, code="unsupported_parameter")
    return None


def _bad_session(session: Any, conversation: Conversation) -> Problem | None:
    if session is None:
        return None
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        message = "a session id is up to 128 letters, digits and . _ : @ -"
        return invalid(message, param="session_id", code="invalid_session")
    if not conversation.answers and [type(m) for m in conversation.messages] != [UserMessage]:
        message = (
            "the server keeps this session's conversation: send the new user message alone, "
            "or leave the session out and send the whole conversation"
        )
        return invalid(message, param="messages", code="history_with_session")
    return None


def _labels(record: JsonObject) -> dict[str, str] | Problem:
    """``metadata`` and ``user`` as labels; their names can not be mistaken for agentkit's own."""
    labels = {}
    user, metadata = record.get("user"), record.get("metadata")
    if user is not None:
        if not _is_text(user, _LONGEST_TEXT):
            return invalid(f"user must be text of up to {_LONGEST_TEXT} characters", param="user")
        labels["user"] = user
    if metadata is None:
        return labels
    if not isinstance(metadata, dict) or len(metadata) > _MOST_LABELS:
        return invalid(f"metadata must hold up to {_MOST_LABELS} pairs", param="metadata")
    for name, text in metadata.items():
        if not _is_text(name, _LONGEST_LABEL) or not _is_text(text, _LONGEST_TEXT):
            message = (
                f"names in metadata have up to {_LONGEST_LABEL} characters, values are text of "
                f"up to {_LONGEST_TEXT}"
            )
            return invalid(message, param="metadata")
        labels[f"client.{name}"] = text
    return labels


def _is_text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and is_whole(value)
