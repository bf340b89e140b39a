"""Pages of what never changes again: lines of JSON, compressed, with a strong ETag.

All of it works on whole bodies of bounded size, in a thread: encoding and compressing megabytes
would hold up the event loop.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentkit.library.remote.wire import (
    ChangeOutline,
    definition_to_json,
    encode,
    revision_to_json,
)
from agentkit.server.library.reading import LibraryReader, without_definitions

PAGE_BYTES = 4_000_000
"""A page ends behind the entry that makes it so long, before compression."""

_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 3  # about as fast as 1; level 6 takes twice as long and saves a seventh

Entry = tuple[int, bytes]
"""The place behind an entry, and its lines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The body of an answer.

    Attributes:
        etag: Names the content.
        packed: The lines, compressed by gzip.
    """

    etag: str
    packed: bytes

    @property
    def plain(self) -> bytes:
        """The lines as they are."""
        return zlib.decompress(self.packed, _GZIP)


class Pages:
    """Makes pages and keeps the newest ones, so that a hundred replicas cost what one does.

    Args:
        reader: Where the content comes from.
        page_bytes: A page ends behind the entry that makes it so long.
        kept_bytes: How much is kept, after compression.
    """

    def __init__(
        self,
        reader: LibraryReader,
        *,
        page_bytes: int = PAGE_BYTES,
        kept_bytes: int = 64_000_000,
    ) -> None:
        self._reader = reader
        self._page_bytes = page_bytes
        self._room = kept_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], Body] = OrderedDict()

    def tools(self, version: int, after: int) -> Body:
        """Definitions of a snapshot, in its order, from place ``after`` on."""
        library = self._reader.library(version)
        key = ("tools", version, library.digest, after)
        rest = library.definitions[max(after, 0) :]
        entries = (
            (place, encode(definition_to_json(one)))
            for place, one in enumerate(rest, start=max(after, 0) + 1)
        )
        return self._page(key, entries, len(library))

    def changes(self, after: int, upto: int, *, outlines: bool) -> Body:
        """Changes with their definitions, or their outlines alone."""
        entries = self._changes(after, upto, outlines=outlines)
        if outlines:  # asked for once, by a client that checks a large import
            return self._made(entries, upto)
        return self._page(("changes", self._reader.library(upto).digest, after), entries, upto)

    def events(self, after: int, upto: int) -> Body:
        """Events of the chain."""
        found = self._reader.events(after=after, upto=upto)
        key = ("events", found[-1].hash if found else "", after, upto)
        entries = ((one.sequence, encode(one.to_json())) for one in found)
        return self._page(key, entries, upto)

    def history(self, tool_name: str, after: int, upto: int) -> Body:
        """Revisions of one tool."""
        found = self._reader.history(tool_name, after=after, upto=upto)
        entries = [(one.version, encode(revision_to_json(one))) for one in found]
        return self._made(entries, entries[-1][0] if entries else upto)

    def _changes(self, after: int, upto: int, *, outlines: bool) -> Iterator[Entry]:
        for applied in self._reader.changes(after=after, upto=upto):
            definitions = applied.change.upserts
            outline = ChangeOutline(
                version=applied.version,
                change=without_definitions(applied.change),
                upserts=tuple((one.name, one.digest) for one in definitions),
            )
            shown = () if outlines else definitions
            lines = [encode(outline.to_json()), *(encode(definition_to_json(d)) for d in shown)]
            yield applied.version, b"\n".join(lines)

    def _page(self, key: tuple[object, ...], entries: Iterable[Entry], end: int) -> Body:
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        body = self._made(entries, end)
        with self._lock:
            if key not in self._kept:
                self._room -= len(body.packed)
            self._kept[key] = body
            while self._room < 0:
                _, dropped = self._kept.popitem(last=False)
                self._room += len(dropped.packed)
        return body

    def _made(self, entries: Iterable[Entry], end: int) -> Body:
        packer, name = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP), hashlib.sha256()
        packed: list[bytes] = []
        size = 0

        def put(lines: bytes) -> int:
            name.update(lines + b"\n")
            packed.append(packer.compress(lines + b"\n"))
            return len(lines) + 1

        following = None
        for place, lines in entries:
            size += put(lines)
            if size >= self._page_bytes:
                following = place if place < end else None
                break
        put(encode({"end": {"next": following}}))
        packed.append(packer.flush())
        return Body(etag=name.hexdigest()[:32], packed=b"".join(packed))
