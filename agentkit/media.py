"""``Image``, ``Audio`` and ``File``: what a message or a tool's result holds beside its text.

Bytes are checked on construction: they must be of the stated type and within the limit. A URL is
only checked for its form and never fetched; the model's provider does that.
"""

from __future__ import annotations

import binascii
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Literal

from agentkit.errors import UsageError

MediaKind = Literal["image", "audio", "file"]

MAX_MEDIA_BYTES = 20_000_000
"""Default limit of one medium, in bytes."""

PLACE = "\ufffc"
"""Placeholder of a medium in the text of a message (Unicode's object replacement character). The
first one stands for the first medium, and so on; media without a placeholder come last."""

_BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "audio/mpeg": (b"ID3\3", b"ID3\4", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "audio/ogg": (b"OggS",),
    "audio/flac": (b"fLaC",),
    "application/pdf": (b"%PDF-",),
    "application/zip": (b"PK\3\4",),
}
"""Leading bytes by type. For other types ``media_type`` is trusted."""

_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS = {
    b"heic": "image/heic",
    b"mif1": "image/heic",
    b"avif": "image/avif",
    b"M4A ": "audio/mp4",
}
_KNOWN = (*_BEGINNINGS, *_RIFF.values(), *dict.fromkeys(_BRANDS.values()))

_TYPE = re.compile(r"[a-z]+/[a-z0-9!#$&^_.+-]{1,99}")
_ALIASES = {
    "image/jpg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
}
_TEXTS = frozenset({"application/json", "application/xml", "application/yaml"})
_IMAGE_TOKENS = 1_600  # the most that Anthropic counts for one, and more than OpenAI mostly does
_BYTES_A_TOKEN = {"audio": 1_000, "file": 25}  # speech in MP3, and pages of PDF


@dataclass(frozen=True, kw_only=True, slots=True)
class Media:
    """An image, a piece of audio, or a file; see ``Image``, ``Audio`` and ``File``.

    Attributes:
        data: The bytes; None for a URL, and where the bytes were not kept.
        path: A file to read, in place of ``data``.
        url: An https URL, in place of ``data``; the model's provider fetches it.
        media_type: Such as ``image/png``; detected from the bytes by default.
        name: The file's name, which models may read.
        max_bytes: Limit of ``size``.
        sha256: Digest of the bytes, or of the URL.
        size: Number of bytes.

    Raises:
        UsageError: Not exactly one of ``data``, ``path`` and ``url`` is given, or it cannot be
            read; the bytes are too many, or of another type; the URL is not https.
    """

    kind: ClassVar[MediaKind]

    data: bytes | None = field(default=None, repr=False)
    path: InitVar[str | os.PathLike[str] | None] = None
    url: str = ""
    media_type: str = ""
    name: str = ""
    max_bytes: InitVar[int] = MAX_MEDIA_BYTES
    sha256: str = ""
    size: int = 0

    def __post_init__(self, path: str | os.PathLike[str] | None, max_bytes: int) -> None:
        given = [one for one in (self.data, path, self.url or None) if one is not None]
        if len(given) != 1 and (given or not self.sha256):
            name = type(self).__name__
            raise UsageError(f"{name} takes exactly one of data=, path= and url=; got {len(given)}")
        if path is not None:
            self._set(data=_read(path, self._what, max_bytes), name=self.name or Path(path).name)
        if self.url:
            _check_url(self.url)
            self._set(sha256=hashlib.sha256(self.url.encode()).hexdigest())
        if self.data is None:
            return
        if not isinstance(self.data, bytes):
            raise UsageError(f"data must be bytes, not {type(self.data).__name__}")
        _check_size(len(self.data), self._what, max_bytes)
        self._set(
            media_type=self._checked_type(self.data),
            size=len(self.data),
            sha256=hashlib.sha256(self.data).hexdigest(),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: Any) -> dict[str, Any]:
        """The schema of a tool's result: any value.

        Raises:
            TypeError: A parameter of a tool has this type.
        """
        if handler.mode == "validation":
            raise TypeError(
                f"no model can send an {cls.__name__} as an argument; take a path or an id instead"
            )
        return {}

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def _what(self) -> str:
        return f"the {self.kind}{f' {self.name!r}' if self.name else ''}"

    def _checked_type(self, data: bytes) -> str:
        """The type of the bytes; it must be the stated one, if there is one."""
        stated = self.media_type.partition(";")[0].strip().lower()
        stated = _ALIASES.get(stated, stated)
        if stated and not _TYPE.fullmatch(stated):
            raise UsageError(f"{stated[:80]!r} is not a media type such as image/png")
        found = _type_of(data)
        is_container = found == "application/zip" and stated.startswith("application/")
        if stated and not is_container and found != stated and (found or stated in _KNOWN):
            raise UsageError(
                f"media_type of {self._what} is {stated}, but the bytes are "
                f"{found or 'of another type'}; correct media_type, or leave it out"
            )
        own = found.partition("/")[0] if found.startswith(("image/", "audio/")) else "file"
        if own != self.kind:
            known = ", ".join(name for name in _KNOWN if name.startswith(self.kind))
            raise UsageError(
                f"{self._what} is {found or 'of an unknown type'}; "
                + (f"supported are {known}" if self.kind != "file" else f"use {own.title()}")
            )
        if not stated and not found and not _is_utf8(data):
            raise UsageError(f"{self._what} is of an unknown type; pass media_type=")
        return stated or found or "text/plain"

    @property
    def is_text(self) -> bool:
        """Whether it is text, which every model accepts."""
        return self.data is not None and (
            self.media_type.startswith("text/") or self.media_type in _TEXTS
        )

    @property
    def is_kept(self) -> bool:
        """Whether there are bytes or a URL."""
        return self.data is not None or bool(self.url)

    @property
    def label(self) -> str:
        """Its stand-in in texts, such as ``[image: image/png, 1,024 bytes]``."""
        what = self.url or f"{self.media_type or 'a URL'}, {self.size:,} bytes"
        return " ".join(f"[{' '.join(filter(None, (self.kind, self.name)))}: {what}]".split())

    @property
    def tokens(self) -> int:
        """Estimated prompt tokens."""
        if self.kind == "image":
            return _IMAGE_TOKENS
        return self.size // (4 if self.is_text else _BYTES_A_TOKEN[self.kind]) or _IMAGE_TOKENS

    @property
    def words(self) -> str:
        """A text file as a model reads it."""
        return f"{self.label}\n{(self.data or b'').decode('utf-8', 'replace')}"

    @property
    def base64(self) -> str:
        """The bytes in base64."""
        return binascii.b2a_base64(self.data or b"", newline=False).decode()

    @property
    def data_url(self) -> str:
        """The URL, or a ``data:`` URL of the bytes."""
        return self.url or f"data:{self.media_type};base64,{self.base64}"

    def reference(self) -> dict[str, Any]:
        """A JSON object without the bytes."""
        record = {"kind": self.kind, "media_type": self.media_type, "name": self.name}
        record |= {"url": self.url, "sha256": self.sha256}
        return {key: text for key, text in record.items() if text} | {"size": self.size}

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the bytes."""
        return self.reference() | ({} if self.data is None else {"data": self.base64})

    def forgotten(self, name: str = "") -> Media:
        """The same medium without bytes, URL and name, for redacted records.

        Args:
            name: The name to keep.
        """
        return type(self)(media_type=self.media_type, name=name, sha256=self.sha256, size=self.size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Image(Media):
    """An image from bytes, a path or an https URL; see ``Media``.

    Example:
        >>> pixel = Image(data=bytes.fromhex("89504e470d0a1a0a"), name="dot.png")
        >>> pixel.media_type, pixel.size, pixel.label
        ('image/png', 8, '[image dot.png: image/png, 8 bytes]')
    """

    kind: ClassVar[MediaKind] = "image"


@dataclass(frozen=True, kw_only=True, slots=True)
class Audio(Media):
    """Audio; see ``Media``."""

    kind: ClassVar[MediaKind] = "audio"


@dataclass(frozen=True, kw_only=True, slots=True)
class File(Media):
    """A document, such as a PDF or a text file; see ``Media``."""

    kind: ClassVar[MediaKind] = "file"


_RECORD = {"size": int} | dict.fromkeys(
    ("kind", "media_type", "name", "url", "sha256", "data"), str
)
_KINDS: Mapping[MediaKind, type[Media]] = {"image": Image, "audio": Audio, "file": File}


def media_from_json(record: Mapping[str, Any], data: str | None = None) -> Media:
    """The inverse of ``Media.to_json`` and, without bytes, of ``Media.reference``.

    Args:
        record: The JSON object.
        data: The bytes in base64, where the record does not hold them.

    Raises:
        ValueError: The record is malformed, or the bytes do not match the digest.
    """
    values = dict(record)
    for name, value in values.items():
        if name not in _RECORD or type(value) is not _RECORD[name]:  # above all no path
            raise ValueError(f"not a field of a medium's record: {name!r}, {value!r:.80}")
    cls, encoded = _KINDS[values.pop("kind")], values.pop("data", data)
    if encoded is not None:
        values |= {"data": binascii.a2b_base64(encoded, strict_mode=True), "size": 0}
        values["max_bytes"] = len(values["data"])
    try:
        made = cls(**values)
    except UsageError as error:
        raise ValueError(str(error)) from error
    if made.sha256 != record.get("sha256", ""):
        raise ValueError(f"the bytes of a medium do not match the digest {record.get('sha256')!r}")
    return made


def placed(parts: Iterable[str | Media]) -> tuple[str, tuple[Media, ...]]:
    """The text and the media of a message that is given in parts.

    Example:
        >>> text, media = placed(["Is", Image(url="https://x.example/a.png"), "red?"])
        >>> text.replace(PLACE, "_"), len(media)
        ('Is_red?', 1)

    Raises:
        UsageError: A part is neither a text nor a medium.
    """
    text, media = "", []
    for part in parts:
        if isinstance(part, Media):
            text += PLACE
            media.append(part)
        elif isinstance(part, str):
            text += "\n" * bool(text and not text.endswith(PLACE)) + part.replace(PLACE, " ")
        else:
            raise UsageError(
                f"a message consists of texts, Image, Audio and File; got {part!r:.80}"
            )
    return text.rstrip(PLACE) or text, tuple(media)


def parts_of(text: str, media: Sequence[Media]) -> Iterator[str | Media]:
    """The inverse of ``placed``."""
    for words, one in zip_longest(text.split(PLACE, len(media)), media):
        if words:
            yield words
        if one is not None:
            yield one


def pieces(text: str, media: Sequence[Media]) -> Iterator[str | Media]:
    """The parts of a message as models get them.

    Text files become texts, and so do media whose bytes were not kept.
    """
    for part in parts_of(text, media):
        if isinstance(part, str) or (part.is_kept and not part.is_text):
            yield part
        elif part.data is None:
            yield f"{part.label[:-1]}, not kept]"
        else:
            yield part.words


def _type_of(data: bytes) -> str:
    """The type by the leading bytes; empty if unknown."""
    if data.startswith(b"RIFF"):
        return _RIFF.get(data[8:12], "")
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "")
    return next((name for name, begins in _BEGINNINGS.items() if data.startswith(begins)), "")


def _read(path: str | os.PathLike[str], what: str, max_bytes: int) -> bytes:
    place = Path(path)
    if not place.is_file():  # a pipe may never end
        raise UsageError(f"{what} cannot be read: {str(place)!r} is not a file")
    try:
        with place.open("rb") as file:
            _check_size(os.fstat(file.fileno()).st_size, f"{what} {str(place)!r}", max_bytes)
            return file.read(max_bytes + 1)  # it may grow meanwhile
    except OSError as error:
        raise UsageError(f"{what} cannot be read: {error}") from error


def _check_size(size: int, what: str, max_bytes: int) -> None:
    if size > max_bytes:
        raise UsageError(
            f"{what} has {size:,} bytes; the limit is {max_bytes:,}. Make it smaller, or raise "
            "max_bytes"
        )
    if not size:
        raise UsageError(f"{what} is empty")


def _check_url(url: str) -> None:
    host = url.removeprefix("https://").partition("/")[0]
    if not url.startswith("https://") or not host or "@" in host or not url.isprintable():
        raise UsageError(
            f"{url[:80]!r} is not an https URL without credentials; pass the bytes with data= or "
            "path="
        )


def _is_utf8(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False
