"""Reading foreign JSON: every complaint names the path and the value."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable
from typing import Any

from agentkit.errors import ModelResponseError
from agentkit.messages import JsonObject
from agentkit.reading import read_json

MAX_BYTES = 1 << 27
"""Of an answer, or of a stream. Half a million tokens take some 100 bytes each in a stream."""

_SHOWN = 200
MISSING = object()
"""Stands for a value that is not there; ``None`` is a value."""


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_json(text: str) -> Any:
    """Decode JSON text; NaN and Infinity, which JSON has not, are refused.

    Raises:
        ValueError: It is not JSON, is nested too deeply, holds far too many values, or a number
            too long to read.
    """
    return read_json(text, decode=_DECODER.decode)


async def read_body(pieces: AsyncIterable[bytes]) -> bytes:
    """The whole of an answer.

    Raises:
        ModelResponseError: It is far longer than answers are.
    """
    parts, size = [], 0
    async for piece in pieces:
        size += len(piece)
        check_size(size)
        parts.append(piece)
    return b"".join(parts)


def check_size(size: int) -> None:
    """Refuse to read on where no honest answer would.

    Raises:
        ModelResponseError: There were more bytes than an answer may have.
    """
    if size > MAX_BYTES:
        raise ModelResponseError(
            f"the answer has more than {MAX_BYTES:,} bytes, which is no answer of a model; nothing "
            "of it is used. Look at the server behind the base URL"
        )


def parse_object(text: bytes | str, what: str) -> JsonObject:
    """Decode a JSON object.

    Args:
        text: The document.
        what: What it is, for the message: ``the answer``, ``a stream event``.

    Raises:
        ModelResponseError: It is not JSON, or not an object.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        value = parse_json(text)
    except ValueError as error:
        raise ModelResponseError(
            f"{what} is not JSON ({error}): {shown(text)}. "
            "Is the base URL that of an OpenAI-compatible server, with /v1 at its end?"
        ) from error
    found: JsonObject = expect(value, dict, "$")
    return found


def expect(value: Any, kind: type | tuple[type, ...], path: str) -> Any:
    """``value``, if it is of that kind.

    Raises:
        ModelResponseError: It is not.
    """
    if isinstance(value, kind):
        return value
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(one.__name__.replace("dict", "object") for one in kinds)
    found = "nothing" if value is MISSING else shown(value)
    raise ModelResponseError(
        f"the answer does not follow the provider's protocol: {path} should be {wanted}, "
        f"got {found}"
    )


def member(record: JsonObject, key: str, kind: type | tuple[type, ...], path: str) -> Any:
    """``record[key]``, if it is there and of that kind.

    Raises:
        ModelResponseError: It is not; the message says ``path.key``.
    """
    value = record.get(key, MISSING)
    return value if isinstance(value, kind) else expect(value, kind, f"{path}.{key}")


def clean(text: str) -> str:
    """The text without halves of surrogate pairs, which no file or database takes."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shown(value: Any) -> str:
    """The value in a message: as JSON where possible, and not too long."""
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
