"""A chat completion request, read and checked: the conversation and labels.

What a client chooses is the conversation. The model, its settings and the tools are the agent's:
what would change them is refused where the client would be misled, and named in the answer where
it would not.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from agentkit.errors import UsageError
from agentkit.media import Audio, File, Image, Media, placed
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.base import is_accepted
from agentkit.models.wire import parse_json
from agentkit.server.middleware import RequestError

Model = TypeVar("Model", bound=BaseModel)

_OWN_TOOLS = "the agent behind this server has its own tools"
_REFUSED: Mapping[str, tuple[tuple[object, ...], str]] = {
    "tools": (([],), _OWN_TOOLS),
    "functions": (([],), _OWN_TOOLS),
    "tool_choice": (("auto",), "which tools are used is the agent's choice"),
    "n": ((1,), "each request gets one answer"),
    "stop": (("", []), "stop sequences are not supported"),
    "logprobs": ((False,), "probabilities of tokens are not reported"),
    "top_logprobs": ((0,), "probabilities of tokens are not reported"),
    "modalities": ((["text"],), "answers are text"),
    "audio": ((), "answers are text"),
}
"""Fields that would change what the answer is: values that change nothing, and why not."""

_CODES = {"model": "missing_model", "session_id": "invalid_session"}
_LONGEST_NAME = 200
_OWN_CODES = frozenset({"unsupported_content", "invalid_value"})


def is_whole(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON can write and nothing can keep."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _whole(text: str) -> str:
    if not is_whole(text):
        raise PydanticCustomError("invalid_value", "it holds half of a surrogate pair")
    return text


def _said(content: Any, info: ValidationInfo) -> UserMessage:
    """The text and the media of a message, which may come in parts."""
    if isinstance(content, str) or not content:
        return UserMessage(text=_whole(content or ""))
    reader = cast("Reader", info.context)
    parts = [_part(one, reader) for one in content] if isinstance(content, list) else [None]
    texts = [one for one in parts if isinstance(one, str)]
    if None in parts:
        words = "it must be text, or a list of parts of type text, image_url, input_audio or file"
        raise PydanticCustomError("unsupported_content", words)
    if len(texts) == len(parts):
        return UserMessage(text="".join(texts))
    text, media = placed(one for one in parts if one is not None)
    return UserMessage(text=text, media=media)


def _part(part: Any, reader: Reader) -> str | Media | None:
    """A text or a medium; None for any other part."""
    kind = part.get("type") if isinstance(part, dict) else None
    held = part[kind] if isinstance(kind, str) and kind in part else None
    if kind == "text":
        return _whole(held) if isinstance(held, str) else None
    try:
        medium = _medium(str(kind), held, reader)
    except UsageError as error:
        raise PydanticCustomError("invalid_value", "{why}", {"why": str(error)}) from error
    if medium is not None and not is_accepted(medium, reader.accepts):
        why = f"the model of this server does not accept {medium.label}"
        raise PydanticCustomError("unsupported_content", "{why}", {"why": why})
    return medium


def _medium(kind: str, held: Any, reader: Reader) -> Media | None:
    match kind, held:
        case "image_url", {"url": str(url)}:
            if url.startswith("data:"):
                return Image(**_decoded(url))
            if not reader.media_urls:
                raise UsageError("this server accepts images as data: URLs only")
            return Image(url=_whole(url))
        case "input_audio", {"data": str(data), "format": str(form)}:
            return Audio(**_decoded(f"data:audio/{form};base64,{data}"))
        case "file", {"file_data": str(data)}:
            given = _decoded(data if data.startswith("data:") else f"data:;base64,{data}")
            name = held.get("filename")
            name = _whole(name)[-_LONGEST_NAME:] if isinstance(name, str) else ""
            return File(**given, name=name)
    return None


def _decoded(url: str) -> dict[str, Any]:
    """The bytes and the type in a ``data:`` URL."""
    head, _, data = url.removeprefix("data:").partition(",")
    media_type, _, form = head.rpartition(";")
    if form != "base64":
        raise UsageError("a data: URL must hold its bytes in base64")
    try:
        return {"data": binascii.a2b_base64(data, strict_mode=True), "media_type": media_type}
    except ValueError as error:
        raise UsageError(f"the bytes cannot be read: {error}") from error


_Text = Annotated[str, AfterValidator(_whole)]
_Label = Annotated[_Text, Field(max_length=512)]


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Function(_Record):
    name: _Text
    arguments: _Text


class _Call(_Record):
    id: _Text
    function: _Function


class _Message(_Record):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[Any, BeforeValidator(_said)] = UserMessage(text="")
    tool_calls: list[_Call] | None = None
    tool_call_id: _Text | None = None


class _Body(_Record):
    model: str
    messages: list[_Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    session_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{1,128}$")] | None = None
    user: _Label | None = None
    metadata: dict[Annotated[_Text, Field(max_length=64)], _Label] | None = Field(
        None, max_length=16
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A client's request.

    Attributes:
        messages: What was said, oldest first.
        answers: What the client says to the calls that the last answer left to it, by call id;
            empty when a user message is to be answered.
        stream: Whether the answer is to come piece by piece.
        include_usage: Whether a stream is to end with the number of tokens.
        session: The client's name for a conversation that the server keeps; None when the client
            keeps it.
        labels: The client's labels for the episode.
        not_honoured: Fields that were set and make no difference, such as ``temperature``: how to
            generate is the agent's business.
        follows: Id of the episode whose kept conversation goes on.
        is_followable: Whether the server keeps the conversation that begins, without a name for it.
    """

    messages: tuple[Message, ...]
    answers: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = False
    session: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    not_honoured: tuple[str, ...] = ()
    follows: str | None = None
    is_followable: bool = False

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages before the last user message."""
        last = [at for at, one in enumerate(self.messages) if isinstance(one, UserMessage)]
        return self.messages[: last[-1]] if last else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Reads requests.

    Attributes:
        model: The only model there is.
        alias: Another name that it is asked by: that of the model behind the agent.
        max_messages: Most messages in one request, and most tool calls in these.
        output_schema: What the agent's answers match; None for text.
        accepts: What the model accepts beside text, see ``agentkit.models.accepted_media``.
        media_urls: Whether URLs of images are passed on to the model's provider.
    """

    model: str
    max_messages: int
    output_schema: JsonObject | None
    alias: str = ""
    accepts: AbstractSet[str] = frozenset()
    media_urls: bool = False

    def read(self, body: bytes, session: str | None) -> Asked:
        """The request in ``body``.

        Args:
            body: JSON.
            session: The value of the session header, if there is one.

        Raises:
            RequestError: It cannot be answered as it is.
        """
        return self.read_record(parsed_object(body), session)

    def read_record(self, record: dict[str, Any], session: str | None) -> Asked:
        """The request that a JSON object is; arguments and errors are those of ``read``."""
        if session is not None:
            record["session_id"] = session
        messages = record.get("messages")
        for count, what in _counts(messages):
            if count > self.max_messages:
                message = f"{count} {what}; at most {self.max_messages} are taken"
                raise RequestError(message=message, param="messages", code="too_many_messages")
        try:
            read = _Body.model_validate(record, context=self)
        except ValidationError as error:
            raise refused(error) from error
        self._check_fitting(read.model, record)
        sent = _conversation(read.messages)
        answers = _last_answers(sent)
        if read.session_id is not None and not answers and [type(m) for m in sent] != [UserMessage]:
            message = (
                "the server keeps this session's conversation: send the new user message alone, "
                "or leave the session out and send the whole conversation"
            )
            raise RequestError(message=message, param="messages", code="history_with_session")
        # With a prefix the client's labels cannot be mistaken for agentkit's own.
        labels = {f"client.{name}": text for name, text in (read.metadata or {}).items()}
        return Asked(
            messages=sent,
            answers=answers,
            stream=bool(read.stream),
            include_usage=(read.stream_options or {}).get("include_usage") is True,
            session=read.session_id,
            labels=labels if read.user is None else {"user": read.user, **labels},
            not_honoured=not_honoured(record, _HONOURED),
        )

    def _check_fitting(self, model: str, record: JsonObject) -> None:
        """Refuse another model, and what would change the answer."""
        if model not in {self.model, self.alias}:
            message = f"there is no model {model[:100]!r} here; this server has {self.model!r}"
            raise RequestError(status=404, message=message, code="model_not_found", param="model")
        for name, (harmless, why) in _REFUSED.items():
            if record.get(name) is not None and record[name] not in harmless:
                message = f"{why}; leave {name} out"
                raise RequestError(message=message, param=name, code="unsupported_parameter")
        response_format, own = record.get("response_format"), self.output_schema
        accepted: list[object] = [None, {"type": "text"}]
        if own is not None:
            accepted = [None, {"type": "json_object"}]
            described = (
                response_format.get("json_schema") if isinstance(response_format, dict) else None
            )
            if isinstance(described, dict) and described.get("schema") == own:
                accepted.append(response_format)
        if response_format not in accepted:
            has = "text" if own is None else "JSON of the agent's own schema"
            message = f"this agent answers with {has}; response_format cannot change that"
            raise RequestError(message=message, param="response_format", code="unsupported_value")


_HONOURED = frozenset({*_Body.model_fields, *_REFUSED, "response_format"})
_MOST_NAMED = 50
_MOST_VALUES = 100_000  # decoded, checked and read on the event loop


def not_honoured(record: JsonObject, honoured: AbstractSet[str]) -> tuple[str, ...]:
    """The fields of a request that were set and make no difference."""
    found = (name[:60] for name, value in record.items() if value is not None)
    return tuple(sorted(name for name in found if name not in honoured)[:_MOST_NAMED])


def validated(model: type[Model], body: bytes) -> Model:
    """A body that is JSON of a model.

    Raises:
        RequestError: It is something else.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise refused(error) from error


def refused(error: ValidationError) -> RequestError:
    """The first thing that is wrong with a body, with its place."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return RequestError(message="the body is not JSON", code="invalid_json")
    place = "".join(f"[{one}]" if isinstance(one, int) else f".{one[:60]}" for one in first["loc"])
    where, words = place.removeprefix("."), first["msg"].removeprefix("Value error, ")
    code = _CODES.get(str(first["loc"][0]) if first["loc"] else "", "invalid_value")
    return RequestError(
        message=f"{where}: {words}" if where else words,
        param=where or None,
        code=first["type"] if first["type"] in _OWN_CODES else code,
    )


def parsed_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        RequestError: It is none.
    """
    try:
        record = parse_json(body.decode("utf-8"), most=_MOST_VALUES)
    except ValueError as error:  # UnicodeDecodeError is one
        message = f"the body is not JSON: {error}"
        raise RequestError(message=message, code="invalid_json") from error
    if not isinstance(record, dict):
        raise RequestError(message="the body is not a JSON object", code="invalid_json")
    return record


def _counts(messages: object) -> Iterator[tuple[int, str]]:
    """How many messages there are, and calls in them, each of which a message answers."""
    if isinstance(messages, list):
        yield len(messages), "messages"
        calls = (one.get("tool_calls") for one in messages if isinstance(one, dict))
        yield sum(len(made) for made in calls if isinstance(made, list)), "tool calls"


def _conversation(records: Sequence[_Message]) -> tuple[Message, ...]:
    """The messages; one of a tool belongs to a call before it, where the calls are there."""
    messages: list[Message] = []
    names: dict[str, str] = {}
    for at, one in enumerate(records):
        said: UserMessage = one.content
        if said.media and one.role != "user":
            where = f"messages[{at}].content"
            message = f"{where}: only user messages may hold images, audio and files"
            raise RequestError(message=message, param=where, code="unsupported_content")
        match one.role:
            case "system" | "developer":
                messages.append(SystemMessage(text=said.text))
            case "user":
                messages.append(said)
            case "assistant":
                calls = tuple(map(_call, one.tool_calls or ()))
                names |= {call.call_id: call.name for call in calls}
                messages.append(AssistantMessage(text=said.text, tool_calls=calls))
            case "tool":
                call_id = one.tool_call_id
                if call_id is None or (names and call_id not in names):
                    where = f"messages[{at}].tool_call_id"
                    message = f"{where} names no call of the messages before it"
                    raise RequestError(message=message, param=where)
                name = names.get(call_id, "")
                messages.append(ToolMessage(call_id=call_id, name=name, text=said.text))
    return tuple(messages)


def _last_answers(messages: Sequence[Message]) -> dict[str, str]:
    """The tool messages at the end; without any a user message has to be there."""
    answers = {}
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        if message.call_id in answers:
            text = f"two tool messages answer the call {message.call_id[:100]!r}; send one"
            raise RequestError(message=text, param="messages", code="answered_twice")
        answers[message.call_id] = message.text
    last, place = messages[-1], f"messages[{len(messages) - 1}]"
    if not answers and not isinstance(last, UserMessage):
        words = (
            f"the last message is the {last.role}'s; a user message, or results of the calls that "
            "the last answer made, are to come last"
        )
        raise RequestError(message=words, param=f"{place}.role")
    if not answers and not last.text.strip():
        raise RequestError(message="the user message is empty", param=f"{place}.content")
    return answers


def _call(record: _Call) -> ToolCall:
    call_id, name, text = record.id, record.function.name, record.function.arguments
    try:
        arguments = parse_json(text or "{}")
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolCall(call_id=call_id, name=name, malformed=text)
    return ToolCall(call_id=call_id, name=name, arguments=arguments)
