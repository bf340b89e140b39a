"""Texts and definitions as the tables hold them, without NUL and halves of surrogates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from agentkit.library.events import LibraryEvent
from agentkit.tools.definition import ToolDefinition

_SIGN = "\u2400"
"""The sign for NUL. It stands before what it means: ``0`` for NUL, itself for itself."""

_MOST_BYTES = 1000
"""Of a text that an index finds; a B-tree takes 2,704."""

_SHOWN = 200


def storable(text: str) -> str:
    r"""A text as the tables hold it; no two texts without surrogates become one.

    Half a surrogate pair, which a model may write, becomes ``\udXXX`` and stays so.

    Example:
        >>> storable("plain"), restored(storable("a\0b")) == "a\0b"
        ('plain', True)
    """
    if _SIGN in text or "\0" in text:
        text = text.replace(_SIGN, _SIGN * 2).replace("\0", f"{_SIGN}0")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def restored(text: str) -> str:
    """The inverse of ``storable``."""
    if _SIGN not in text:
        return text
    parts = text.split(_SIGN * 2)
    return _SIGN.join(part.replace(f"{_SIGN}0", "\0") for part in parts)


def key(text: str) -> str:
    """A text as an index holds it: a long one is cut and told apart by its digest.

    Example:
        >>> key("weather"), len(key("x" * 5000))
        ('weather', 266)
    """
    stored = storable(text)
    if len(stored) * 4 <= _MOST_BYTES or len(stored.encode()) <= _MOST_BYTES:
        return stored
    return f"{stored[:_SHOWN]}{_SIGN}#{sha256(stored.encode()).hexdigest()}"


def is_cut(key: str) -> bool:
    """Whether a key is not the whole text."""
    return f"{_SIGN}#" in key.replace(_SIGN * 2, "")


_MOST_CHARACTERS = 50_000
"""Of each of the three texts that are searched; a tsvector holds a megabyte at most."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
"""Names are cut into words: ``getWeather_v2`` is found by "weather"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedTool:
    """A definition as the tables hold it.

    Attributes:
        name: Its name, as an index holds it.
        digest: Its digest.
        body: JSON without the origin, to the letter.
        origin: JSON.
        document: JSON that jsonb takes; None when the body is it.
        summary: Words of summary and tags.
        words: The words of its name.
        texts: All its texts.
    """

    name: str
    digest: str
    body: str
    origin: str
    document: str | None
    words: str
    summary: str
    texts: str


def encode_tool(tool: ToolDefinition) -> EncodedTool:
    """A definition as the tables hold it."""
    record = tool.to_json()
    origin = record.pop("origin", {})
    body = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    has_nul = "\\u0000" in body  # or a backslash and "u0000", which costs a copy for nothing
    described = " ".join([tool.description.summary, *tool.description.tags])
    return EncodedTool(
        name=key(tool.name),
        digest=tool.digest,
        body=body,
        origin=json.dumps(origin, separators=(",", ":")),
        document=json.dumps(_without_nul(record), ensure_ascii=False) if has_nul else None,
        words=_words(tool.name),
        summary=searchable([described]),
        texts=searchable(_texts(record)),
    )


def encode_event(event: LibraryEvent) -> str:
    """An event as the table holds it."""
    return json.dumps(event.to_json(), ensure_ascii=False, separators=(",", ":"))


def searchable(texts: Iterable[str]) -> str:
    """Texts as full-text search takes them: in one, without NUL, and not too long."""
    kept: list[str] = []
    left = _MOST_CHARACTERS
    for text in texts:
        kept.append(text[:left])
        left -= len(text) + 1
        if left <= 0:
            break
    joined = " ".join(kept).replace("\0", " ")
    return joined.encode("utf-8", "replace").decode()


def _words(name: str) -> str:
    return searchable([name, *_WORD.findall(name)])


def _texts(value: Any) -> Iterator[str]:
    """All texts in JSON data, names of parameters included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\u2400")
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    return value
