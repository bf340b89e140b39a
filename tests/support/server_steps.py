"""What a scripted server is told to do: one step for each request, whatever protocol it came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentkit.messages import JsonObject, TokenIds, ToolCall

_USAGE: Mapping[str, int] = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A good answer; streamed when the request asks for it.

    Attributes:
        text: The answer's text.
        tool_calls: Calls to answer with; a ``malformed`` one is sent as its text. Over OpenAI's
            responses, one of ``tool_search`` is the protocol's own.
        output: A structured answer: as text, or, for messages that name no format in
            ``output_config`` or ``output_format``, as a call of the tool that ``tool_choice``
            names, or else of the last one offered.
        reasoning: What the model thought before: a thinking block, or an item of reasoning.
        refusal: Words with which the model declines.
        finish_reason: Why the model stopped, in the words of chat completions; None says
            ``tool_calls`` or ``stop``. A word that the protocol does not know is sent as it is.
        usage: Token counts in the form of chat completions; None leaves them out.
        tokens: Token ids, in vLLM's fields; chat completions alone.
        seconds: Wait before answering.
        piece_bytes: Cut a streamed answer into pieces of so many bytes, each sent on its own; 0
            sends whole events.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    output: JsonObject | None = None
    reasoning: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    usage: JsonObject | None = field(default_factory=lambda: dict(_USAGE))
    tokens: TokenIds | None = None
    seconds: float = 0.0
    piece_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RawReply:
    """Any status, headers and body: invalid JSON, a wrong shape, an error page.

    Attributes:
        body: Text as it is, or data to send as JSON.
        status: The status code.
        headers: Further headers, such as ``{"Retry-After": "2"}``.
        content_type: The type the server claims.
    """

    body: str | JsonObject | Sequence[Any] = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorStatus:
    """An error in the form of the provider whose protocol is spoken.

    Attributes:
        status: The status code.
        message: The provider's words.
        retry_after: Value of the Retry-After header: seconds, or an HTTP date.
    """

    status: int
    message: str = "scripted failure"
    retry_after: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reset:
    """The connection is reset.

    Attributes:
        after_bytes: How much of a good answer is sent before.
    """

    after_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stall:
    """The server sends a part of a good answer and then nothing, until the client goes.

    Attributes:
        after_bytes: How much of the answer is sent.
    """

    after_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class HalfStream:
    """A stream that ends in good order before the answer does.

    Attributes:
        text: The text of the whole answer.
        events: How many of its events are sent.
    """

    text: str = "This answer never ends."
    events: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class RawStream:
    """A stream of exactly these pieces of bytes, each sent on its own.

    Attributes:
        pieces: The bytes, cut where you like.
    """

    pieces: Sequence[bytes]


Step: TypeAlias = Reply | RawReply | ErrorStatus | Reset | Stall | HalfStream | RawStream


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedRequest:
    """What a client sent.

    Attributes:
        path: Path and query.
        headers: The headers, names in lower case.
        body: The decoded JSON body.
    """

    path: str
    headers: Mapping[str, str]
    body: JsonObject
