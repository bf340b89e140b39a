"""Shared parts of providers' protocols: tool names, calls, event streams, foreign JSON.

What an adapter reads, it reads inside ``follows_protocol``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from agentkit.errors import ModelResponseError, ReadingLimitError, UsageError
from agentkit.messages import JsonObject, ToolCall, clean
from agentkit.models.base import ModelSettings
from agentkit.reading import named_once, read_json

LONGEST_NAME = 64
"""Longest tool name, in characters, that OpenAI and Anthropic both accept."""

MALFORMED_KEY = "malformed_arguments"
"""Under this key a malformed call's text goes back: servers refuse a history that is not JSON."""

MAX_BYTES = 1 << 27
"""Bound of a stream. Half a million tokens take some 100 bytes each in one."""

MAX_CALLS_READ = 1 << 14
"""Calls of one answer that are looked at in any way; ``agent`` goes on with far fewer."""

MAX_ARGUMENT_CHARACTERS = 1_000_000
"""Arguments of one answer that are decoded. The longest answers of models have half as much."""

MAX_WHOLE_BYTES = 1 << 24
"""Bound of an answer in one piece, and of an event, which is decoded without a turn for others."""

MAX_VALUES = 150_000
"""Values of the same: 16,000 tokens with their probabilities, or 1,900 with ten others each."""

P = ParamSpec("P")
T = TypeVar("T")

_ACCEPTED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_LENGTH = 8
_SHOWN = 200
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RESERVED = frozenset({"model", "messages", "input", "system", "tools", "stream"})
"""Fields that adapters write themselves, in any of the protocols."""
_STRICT_KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"title", "description"}
)


class WireNames:
    """A one-to-one mapping between the names of offered tools and names that providers accept.

    An accepted name stays as it is. Any other has its refused characters replaced by ``_`` and is
    cut to 64; when that is not unique, a part of the name's SHA-256 is appended. The outcome
    depends on the set of names alone, never on their order.

    Example:
        >>> names = WireNames(["math.factorial", "get_time"])
        >>> names.encode("math.factorial"), names.encode("get_time")
        ('math_factorial', 'get_time')
        >>> names.decode("math_factorial")
        'math.factorial'
    """

    __slots__ = ("_decoded", "_encoded")

    def __init__(self, names: Iterable[str]) -> None:
        self._encoded = _assign(set(names))
        self._decoded = {wire: name for name, wire in self._encoded.items()}

    def encode(self, name: str) -> str:
        """The wire name of a tool; one that is not offered (any more) is only made acceptable."""
        return self._encoded.get(name) or _acceptable(name)

    def decode(self, wire_name: str) -> str:
        """The tool that a model means; an unknown name comes back as it is."""
        return self._decoded.get(wire_name, wire_name)


def _assign(names: set[str]) -> dict[str, str]:
    encoded = {name: name for name in names if _ACCEPTED.fullmatch(name)}
    others = sorted(names - encoded.keys())
    counts = Counter(map(_acceptable, others))
    taken = {*encoded, *counts}
    for name in others:
        wire = _acceptable(name)
        if wire in encoded or counts[wire] > 1:
            wire = _with_digest(name, taken)
        taken.add(wire)
        encoded[name] = wire
    return encoded


def _acceptable(name: str) -> str:
    return _REFUSED.sub("_", name)[:LONGEST_NAME] or "_"


def _with_digest(name: str, taken: set[str]) -> str:
    stem = _acceptable(name)[: LONGEST_NAME - _DIGEST_LENGTH - 1]
    seed = name.encode("utf-8", "surrogatepass")
    while True:
        seed = hashlib.sha256(seed).hexdigest().encode()
        wire = f"{stem}_{seed[:_DIGEST_LENGTH].decode()}"
        if wire not in taken:  # somebody may own that very name; then the digest's digest
            return wire


# Writing


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} {value!r:.80} is not JSON data")


ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_plain)
"""Writes JSON without spaces; what is not JSON data is refused."""


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """The body of a request.

    Raises:
        UsageError: Something in it is not JSON data.
    """
    try:
        return ENCODER.encode(fields).encode()
    except (TypeError, ValueError) as error:
        raise not_json(error) from error


def sent_arguments(call: ToolCall) -> JsonObject:
    """A call's arguments as an object, which they are even when they were not."""
    return call.arguments if call.malformed is None else {MALFORMED_KEY: call.malformed}


def encode_arguments(call: ToolCall) -> str:
    """The same as JSON text."""
    return ENCODER.encode(sent_arguments(call))


def not_json(error: Exception) -> UsageError:
    """The error for a request that cannot be written."""
    return UsageError(
        f"the request cannot be written as JSON: {error}. Arguments, schemas and "
        "settings may hold only what JSON can: no sets, dates, NaN or infinity"
    )


def checked_extra(settings: ModelSettings) -> JsonObject:
    """The provider's own fields.

    Raises:
        UsageError: One of them is a field that the adapter owns.
    """
    taken = sorted(_RESERVED & settings.extra.keys())
    if taken:
        raise UsageError(
            f"ModelSettings.extra may not set {', '.join(map(repr, taken))}: the adapter writes "
            "these fields from the request; choose the model where the adapter is made"
        )
    return settings.extra


def is_strict(schema: Any) -> bool:
    """Whether OpenAI's strict mode takes the schema: closed objects with nothing optional."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _STRICT_KEYWORDS:
        return False
    parts = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        is_closed = schema.get("additionalProperties") is False
        if not is_closed or set(schema.get("required", ())) != set(properties):
            return False
        parts.extend(properties.values())
    return all(map(is_strict, parts))


def described_output(schema: JsonObject) -> dict[str, Any]:
    """An output schema as OpenAI's protocols name it, in strict mode where that takes it."""
    described: dict[str, Any] = {"name": "answer", "schema": schema}
    return {**described, "strict": True} if is_strict(schema) else described


# Reading


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ARGUMENTS = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=named_once)


def parse_json(text: str, *, most: int = 0) -> Any:
    """Decode JSON text; NaN and Infinity, which JSON has not, are refused.

    Args:
        text: The document.
        most: How many values it may hold; 0 for what any text of its size may.

    Raises:
        ValueError: It is not JSON, is nested too deeply, holds far too many values, or a number
            too long to read.
    """
    return read_json(text, decode=_DECODER.decode, most=most)


async def read_body(pieces: AsyncIterable[bytes]) -> bytes:
    """The whole of an answer.

    Raises:
        ModelResponseError: It is far longer than answers are.
    """
    parts, size = [], 0
    async for piece in pieces:
        size += len(piece)
        check_size(size, MAX_WHOLE_BYTES)
        parts.append(piece)
    return b"".join(parts)


def check_size(size: int, most: int = MAX_BYTES) -> None:
    """Refuse to read on where no honest answer would.

    Raises:
        ModelResponseError: There were more bytes than an answer may have.
    """
    if size > most:
        raise ModelResponseError(
            f"the answer has more than {most:,} bytes, which is not an answer of a model; "
            "nothing of it is used. Look at the server behind the base URL"
        )


def parse_object(text: bytes | str, what: str) -> JsonObject:
    """Decode a JSON object.

    Args:
        text: The document.
        what: What it is, for the message: ``the answer``, ``a stream event``.

    Raises:
        ModelResponseError: It is not JSON, or not an object, or holds more values than are read.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        value = parse_json(text, most=MAX_VALUES)
    except ReadingLimitError as error:
        raise ModelResponseError(
            f"{what} is not read: {error}. Look at the server behind the base URL"
        ) from error
    except ValueError as error:
        raise ModelResponseError(
            f"{what} is not JSON ({error}): {shown(text)}. "
            "Is the base URL that of an OpenAI-compatible server, with /v1 at its end?"
        ) from error
    if not isinstance(value, dict):
        raise ModelResponseError(f"{what} is no JSON object: {shown(text)}")
    return value


def follows_protocol(read: Callable[P, T]) -> Callable[P, T]:
    """Make of a function that reads an answer one that says so where the answer cannot be read.

    Such a function takes what the protocol says is there, and asks for types only where another
    one would pass.

    Raises:
        ModelResponseError: By the function that it gives: the answer does not fit.
    """

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ModelResponseError(
                "the answer does not follow the provider's protocol "
                f"({type(error).__name__}: {error})"
            ) from error

    return reading


def text_of(value: Any) -> str:
    """A value that should be text.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is no text")
    return value


def object_of(value: Any) -> JsonObject:
    """A value that should be an object; an empty one where it is something else."""
    return value if isinstance(value, dict) else {}


def shown(value: Any) -> str:
    """The value in a message: as JSON where possible, and not too long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def decode_call(call_id: Any, name: str, arguments: Any, names: WireNames) -> ToolCall:
    """One tool call; argument text that is not a JSON object is kept as ``malformed``.

    Args:
        call_id: The provider's id; one is made up when it gave none.
        name: The name on the wire.
        arguments: JSON text, or, as some servers send, the object itself.
        names: The names that the request used.
    """
    decoded: Any = {} if arguments is None else arguments
    if isinstance(arguments, str):
        decoded = _decode_arguments(arguments)
    malformed = None
    if not isinstance(decoded, dict):
        malformed = clean(arguments if isinstance(arguments, str) else json.dumps(arguments))
    return ToolCall(
        call_id=call_id if isinstance(call_id, str) and call_id else _invented_id(),
        name=names.decode(name),
        arguments={} if malformed is not None else decoded,
        malformed=malformed,
    )


class CallDecoder:
    """``decode_call`` for the calls of one answer, of which no more is decoded than models write.

    Args:
        names: The names that the request used.

    Example:
        >>> decode = CallDecoder(WireNames(["echo"]))
        >>> decode("1", "echo", '{"text": "a"}').arguments
        {'text': 'a'}
        >>> decode("2", "echo", "[" * 2_000_000).malformed
        'arguments of 2,000,000 characters, where an answer may have 1,000,000 in all'
    """

    def __init__(self, names: WireNames) -> None:
        self._names = names
        self._left = MAX_ARGUMENT_CHARACTERS

    def __call__(self, call_id: Any, name: str, arguments: Any) -> ToolCall:
        """One tool call; see ``decode_call``."""
        size = len(arguments) if isinstance(arguments, str) else 0
        self._left -= size
        if self._left >= 0:
            return decode_call(call_id, name, arguments, self._names)
        most = f"where an answer may have {MAX_ARGUMENT_CHARACTERS:,} in all"
        left_out = decode_call(call_id, name, None, self._names)
        return replace(left_out, malformed=f"arguments of {size:,} characters, {most}")


def _decode_arguments(text: str) -> Any:
    """The decoded text; the text itself when it is not JSON, or holds half a character.

    A name that stands twice is no JSON here: whoever approves the text may have read either value.
    """
    if not text.strip():
        return {}
    try:
        value = read_json(text, decode=_ARGUMENTS.decode)
        if "\\u" in text or not text.isascii():
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError:  # UnicodeEncodeError is one
        return text
    return value


def with_distinct_ids(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own: a repeated id would tie two results to one call."""
    seen: set[str] = set()
    distinct = []
    for call in calls:
        kept = replace(call, call_id=_invented_id()) if call.call_id in seen else call
        seen.add(kept.call_id)
        distinct.append(kept)
    return tuple(distinct)


def _invented_id() -> str:
    return f"call_{os.urandom(8).hex()}"


class EventParser:
    r"""Yields the data of server-sent events, wherever the byte stream was cut.

    Follows the WHATWG HTML standard, section 9.2.6: lines end with CR, LF or CRLF; several ``data``
    lines make one text; an event ends at an empty line, and one that was cut off is dropped.

    Example:
        >>> parser = EventParser()
        >>> parser.feed(b": hello\ndata: on")
        []
        >>> parser.feed(b"e\n\n")
        ['one']
    """

    __slots__ = ("_after_return", "_at_start", "_data", "_event", "_size", "_unfinished")

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        self._after_return = False
        self._at_start = True
        self._size = 0
        self._event = 0
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """The data of the events that ``chunk`` completes.

        Raises:
            ModelResponseError: The stream is far longer than answers are.
        """
        events = []
        self._size += len(chunk)
        check_size(self._size)
        lines = self._lines(chunk)
        if self._at_start and lines:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        for line in lines:
            if line:
                self._event += len(line)
                check_size(self._event, MAX_WHOLE_BYTES)
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
            else:
                if self._data:
                    events.append("\n".join(self._data))
                    self._data.clear()
                self._event = 0
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Complete lines; a line is split only at CR and LF, so a cut character is never seen."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")  # the other half of CRLF
            self._after_return = False
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._unfinished.append(chunk)
            return []
        self._after_return = chunk.endswith(b"\r")
        lines = b"".join((*self._unfinished, chunk)).splitlines(keepends=True)
        is_complete = lines[-1].endswith((b"\n", b"\r"))
        self._unfinished = [] if is_complete else [lines.pop()]
        return [line.rstrip(b"\r\n") for line in lines]
