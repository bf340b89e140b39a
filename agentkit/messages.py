"""Leaf records of a conversation: messages, tool calls, their results, token usage.

Everything here is immutable and knows its JSON form; nothing here knows a provider's wire format
(that is ``agentkit.models``) or how a call is executed (that is ``agentkit.agent``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

from agentkit.errors import ReadingLimitError
from agentkit.media import Media
from agentkit.records import Record, from_record

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
JsonObject: TypeAlias = Mapping[str, Any]
"""A decoded JSON object. ``Any`` because schemas and arguments are walked key by key."""

FailureKind = Literal[
    "malformed_arguments",  # the argument text is not a JSON object
    "unknown_tool",  # no tool of that name is offered
    "invalid_arguments",  # the arguments break the schema
    "contract_violated",  # a pre- or postcondition does not hold
    "retry_requested",  # the tool's author raised ModelRetry
    "tool_failed",  # the tool's author raised ToolFailed
    "tool_error",  # the tool raised something else
    "timeout",  # the tool did not finish in time
    "unserialisable_result",  # it ran; JSON cannot hold its value, or a guardrail withholds it
    "denied",  # approval was asked for and refused
    "limit_exceeded",  # the run's budget of calls or retries is spent
]


MAX_SENT_DEPTH = 150
MAX_SENT_VALUES = 400_000
"""Bounds on JSON data that a client gives and a record is to hold: a reader's, less the rest of
the record."""


def check_sent(data: object) -> None:
    """Refuse JSON data that a record could not hold.

    Raises:
        ReadingLimitError: It is nested too deeply, or holds too many values; a ``ValueError``.
    """
    levels, count = measured(data, most_levels=MAX_SENT_DEPTH, most_values=MAX_SENT_VALUES)
    if levels > MAX_SENT_DEPTH:
        raise ReadingLimitError(f"it is nested deeper than {MAX_SENT_DEPTH} levels")
    if count > MAX_SENT_VALUES:
        raise ReadingLimitError(f"it holds more than {MAX_SENT_VALUES:,} values")
    if not is_finite(data):
        raise ReadingLimitError("it holds a number beyond all bounds, or NaN, which are not JSON")


def is_finite(data: object) -> bool:
    """Whether JSON data holds no infinity and no NaN; readers make infinity of ``1e400``."""
    waiting = [data]
    for value in waiting:
        if isinstance(value, float):
            if not isfinite(value):
                return False
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
    return True


def clean(text: str) -> str:
    """The text without halves of surrogate pairs, which no file or database takes."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def measured(
    data: object, *, most_levels: int = 10_000, most_values: int = 10_000_000
) -> tuple[int, int]:
    """Levels and values of JSON data, lists and objects twice as readers count them.

    Counting ends soon after one of the bounds; it takes no recursion.
    """
    level, levels, count = [data], 0, 1
    while levels <= most_levels and count <= most_values:
        below: list[Any] = []
        holders = 0
        for value in level:
            if isinstance(value, Mapping):
                below.extend(value.values())
            elif isinstance(value, list | tuple):
                below.extend(value)
            else:
                continue
            holders += 1
        if not holders:
            break
        levels, count, level = levels + 1, count + holders + len(below), below
    return levels, count


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall(Record):
    """A model's request to run one tool.

    Attributes:
        call_id: Ties the call to its result within one conversation.
        name: The tool's name as the library knows it.
        arguments: Decoded arguments; empty when ``malformed`` is set.
        malformed: The argument text as received when it is not a JSON object, else None.
    """

    _OPTIONAL: ClassVar = ("malformed",)

    call_id: str
    name: str
    arguments: JsonObject = field(default_factory=dict)
    malformed: str | None = None

    @classmethod
    def from_json(cls, record: JsonObject) -> ToolCall:
        """The inverse of ``to_json``; arguments that are not JSON, of older records, are text."""
        arguments, malformed = record.get("arguments", {}), record.get("malformed")
        if not is_finite(arguments):
            arguments, malformed = {}, malformed or str(arguments)
        names = {"call_id": record["call_id"], "name": record["name"]}
        return from_record(cls, {**names, "arguments": arguments, "malformed": malformed})


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFailure(Record):
    """Why a call failed, in terms a model can act on.

    Attributes:
        kind: The typed cause.
        rule: The rule that was broken, in one sentence.
        path: Where in the arguments, as a dotted path; empty for the whole call.
        schema_excerpt: The part of the tool's schema that states the rule.
        nearest: Names or values that are allowed and look like what was given, best first.
        retryable: Whether another call could succeed.
        cause: Type name of the exception behind it, if there was one.
    """

    _OPTIONAL: ClassVar = ("path", "schema_excerpt", "nearest", "cause")

    kind: FailureKind
    rule: str
    path: str = ""
    schema_excerpt: JsonObject | None = None
    nearest: tuple[str, ...] = ()
    retryable: bool = True
    cause: str | None = None


ResultStatus = Literal["ok", "failed", "denied", "deferred"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult(Record):
    """What came of one call.

    Attributes:
        call_id: The call this answers.
        name: The tool's name.
        status: ``ok``; ``failed`` and ``denied`` (see ``failure``); ``deferred`` when somebody
            outside the run has to produce the value.
        value: The returned value, JSON-serialisable; None unless ``ok``. Of a ``deferred`` call
            that a person decides on, the arguments that would run, where they are not its own.
        text: What the model reads.
        media: What it is shown beside the text, in which each has its label.
        failure: Why it failed, for ``failed`` and ``denied``.
        attempts: How many times the tool was started; 0 where somebody outside gave the value.
        seconds: Wall time of all attempts.
    """

    _OPTIONAL: ClassVar = ("media", "failure")

    call_id: str
    name: str
    status: ResultStatus
    value: Any = None
    text: str = ""
    media: tuple[Media, ...] = ()
    failure: ToolFailure | None = None
    attempts: int = 1
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemMessage:
    """Standing instructions."""

    role: ClassVar[Literal["system"]] = "system"
    media: ClassVar[tuple[Media, ...]] = ()
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class UserMessage:
    """What a person said.

    Attributes:
        text: The words, with ``agentkit.media.PLACE`` where a medium stands between them.
        media: What was sent with them.
    """

    role: ClassVar[Literal["user"]] = "user"
    text: str
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderItem(Record):
    """A part of an answer that only its provider understands, and wants back as it was.

    Reasoning, thinking and what a provider's own tool search found are such parts: leaving them
    out of the next request is refused by some models and makes others think again.

    Attributes:
        protocol: Whose it is; an adapter of another protocol leaves it out.
        data: The part as it came.
    """

    protocol: str
    data: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class AssistantMessage(Record):
    """What the model answered: text, tool calls, or both.

    Attributes:
        text: What it said.
        tool_calls: What it wants to be run.
        provider_items: What came before both and has to go back to the provider unread.
    """

    role: ClassVar[Literal["assistant"]] = "assistant"
    media: ClassVar[tuple[Media, ...]] = ()
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    provider_items: tuple[ProviderItem, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The message as ``message_to_json`` gives it."""
        return message_to_json(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> AssistantMessage:
        """The inverse of ``to_json``.

        Raises:
            TypeError: It is a message of another role.
        """
        message = message_from_json(record)
        if not isinstance(message, AssistantMessage):
            raise TypeError(f"a turn's message has the role {message.role!r}, not 'assistant'")
        return message


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolMessage:
    """The result of one call, as the model reads it."""

    role: ClassVar[Literal["tool"]] = "tool"
    call_id: str
    name: str
    text: str
    media: tuple[Media, ...] = ()


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def message_to_json(message: Message) -> dict[str, Any]:
    """One message as a JSON object, tagged with its role."""
    record: dict[str, Any] = {"role": message.role, "text": message.text}
    if isinstance(message, AssistantMessage) and message.tool_calls:
        record["tool_calls"] = [call.to_json() for call in message.tool_calls]
    if isinstance(message, AssistantMessage) and message.provider_items:
        record["provider_items"] = [item.to_json() for item in message.provider_items]
    if isinstance(message, ToolMessage):
        record |= {"call_id": message.call_id, "name": message.name}
    if message.media:
        record["media"] = [one.to_json() for one in message.media]
    return record


def message_from_json(record: JsonObject) -> Message:
    """The inverse of ``message_to_json``.

    Raises:
        ValueError: The role is not one of system, user, assistant, tool.
    """
    role = record["role"]
    if not isinstance(role, str) or role not in _ROLES:
        message = f"unknown message role {role!r}; expected system, user, assistant or tool"
        raise ValueError(message)
    kind, names = _ROLES[role]
    values = {"text": "", **{name: value for name, value in record.items() if name in names}}
    return from_record(kind, values)


_ROLES: Mapping[str, tuple[type[Message], frozenset[str]]] = {
    kind.role: (kind, frozenset(one.name for one in fields(kind))) for kind in get_args(Message)
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenIds(Record):
    """The tokens of one answer as the server that wrote it numbers them, unchanged.

    Training on them avoids tokenising the text again, which need not give the same tokens.

    Attributes:
        prompt: What the model read, chat template included.
        completion: What it wrote, the end token included where the server reports it.
        logprobs: Natural logarithm of each written token's probability; empty when not reported.
    """

    _OPTIONAL: ClassVar = ("prompt", "completion", "logprobs")

    prompt: tuple[int, ...] = ()
    completion: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


MOST_TOKENS = 10**12
"""The largest count of tokens or requests that is believed."""


def count_of(stated: object) -> int:
    """A count as a server states it; 0, for unknown, where it is none from 0 to ``MOST_TOKENS``."""
    return stated if type(stated) is int and 0 <= stated <= MOST_TOKENS else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage(Record):
    """What a stretch of model use cost. Adds up with ``+``.

    Servers and stored records state what they like, so a count that is none is 0, more cached
    tokens than were read are 0, and a cost that is no amount of money is None.

    Attributes:
        requests: Requests sent to a model.
        prompt_tokens: Tokens read, cached ones included.
        cached_tokens: The part of ``prompt_tokens`` that a prompt cache served.
        completion_tokens: Tokens written.
        cost_usd: Price in US dollars; None when no adapter knew it.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    @classmethod
    def from_json(cls, record: JsonObject) -> Self:
        """The counts of a record, of whatever JSON type."""
        return cls(**{one.name: record[one.name] for one in fields(cls) if one.name in record})

    def __post_init__(self) -> None:
        asked, read, written = self.requests, self.prompt_tokens, self.completion_tokens
        cached, cost = self.cached_tokens, self.cost_usd
        are_counts = type(asked) is type(read) is type(written) is type(cached) is int
        if not (
            are_counts
            and 0 <= asked <= MOST_TOKENS
            and 0 <= cached <= read <= MOST_TOKENS
            and 0 <= written <= MOST_TOKENS
        ):
            self._believe()
        if cost is not None and not (type(cost) in {int, float} and 0 <= cost <= MOST_TOKENS):
            object.__setattr__(self, "cost_usd", None)

    def _believe(self) -> None:
        """Keep what can be counts."""
        for name in ("requests", "prompt_tokens", "cached_tokens", "completion_tokens"):
            object.__setattr__(self, name, count_of(getattr(self, name)))
        if self.cached_tokens > self.prompt_tokens:
            object.__setattr__(self, "cached_tokens", 0)

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            requests=min(self.requests + other.requests, MOST_TOKENS),
            prompt_tokens=min(self.prompt_tokens + other.prompt_tokens, MOST_TOKENS),
            cached_tokens=min(self.cached_tokens + other.cached_tokens, MOST_TOKENS),
            completion_tokens=min(self.completion_tokens + other.completion_tokens, MOST_TOKENS),
            cost_usd=min(sum(costs), MOST_TOKENS) if costs else None,
        )
