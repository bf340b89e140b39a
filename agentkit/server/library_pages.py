"""What a library server reads from its store, and the pages it makes of it.

Pages never change again: lines of JSON, compressed, with a strong ETag. All of it works on whole
bodies of bounded size, in a thread: encoding megabytes would hold up the event loop.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agentkit.errors import StoreError
from agentkit.library.changes import no_such_version
from agentkit.library.events import ChainHead, LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.wire import (
    ChangeOutline,
    Head,
    definition_to_json,
    encode,
    ranges,
    revision_to_json,
)
from agentkit.library.store import AppliedChange, Store, ToolRevision

_TRIES = 10
_OLD_SNAPSHOTS = 2
"""So many old versions are kept, for clients that read them page by page."""


class LibraryReader:
    """Reads one store for many clients. Its methods may be called from several threads.

    The chain of events is kept in memory, because each page of it would otherwise read the rest
    of the chain from the store.

    Args:
        store: Where definitions and events are kept.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock, self._old_lock = threading.Lock(), threading.Lock()
        self._events: list[LibraryEvent] = []
        self._old = lru_cache(maxsize=_OLD_SNAPSHOTS)(store.load)

    def head(self) -> Head:
        """What is newest, of definitions and events together.

        Raises:
            StoreError: The store can not be read, or changed each time that it was looked at.
        """
        with self._lock:
            for _ in range(_TRIES):
                library = self.store.load()
                self._read_events()
                if self.store.load().version == library.version:  # else the events are newer
                    return self._head(library)
        raise StoreError("the library changed each time that it was read; try again")

    def library(self, version: int) -> Library:
        """The snapshot at a version; old ones are kept for a while.

        Raises:
            StoreError: There is no such version, or the store can not be read.
        """
        newest = self.store.load()
        if version == newest.version:
            return newest
        if version < 0 or version > newest.version:
            raise no_such_version(version, self.store.versions())
        with self._old_lock:  # of its own: loading one may take long, and heads should not wait
            return self._old(version)

    def events(self, *, after: int, upto: int) -> Sequence[LibraryEvent]:
        """The events behind ``after``, up to ``upto``."""
        with self._lock:
            if upto > len(self._events):
                self._read_events()
            return self._events[max(after, 0) : max(upto, 0)]

    def changes(self, *, after: int, upto: int) -> Iterator[AppliedChange]:
        """The changes behind version ``after``, up to that of ``upto``, lazily."""
        for applied in self.store.changes(after=max(after, 0)):
            if applied.version > upto:
                return
            yield applied

    def history(self, tool_name: str, *, after: int, upto: int) -> Sequence[ToolRevision]:
        """The revisions of a tool that versions behind ``after`` made, up to ``upto``."""
        found = self.store.history(tool_name)
        return [one for one in found if after < one.version <= upto]

    def _head(self, library: Library) -> Head:
        return Head(
            version=library.version,
            digest=library.digest,
            tools=len(library),
            versions=ranges(self.store.versions()),
            events=ChainHead.of(self._events[-1] if self._events else None),
        )

    def _read_events(self) -> None:
        """Take up what is new; anew from the first, where another chain is in its place."""
        known = self._events
        if not known:
            self._events = list(self.store.events())
            return
        found = self.store.events(after=len(known) - 1)  # the last one again, to see it is the same
        if found and found[0].hash == known[-1].hash:
            known.extend(found[1:])
        else:
            self._events = list(self.store.events())


PAGE_BYTES = 4_000_000
"""A page ends behind the entry that makes it so long, before compression."""

_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 3  # about as fast as 1; level 6 takes twice as long and saves a seventh

_KEPT_PAGES = 16
"""So many pages of each kind are kept; one has a megabyte or less."""

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
    """

    def __init__(self, reader: LibraryReader, *, page_bytes: int = PAGE_BYTES) -> None:
        self._reader = reader
        self._page_bytes = page_bytes
        # What a digest or a hash names stays the same, also where another store is in its place.
        self._kept_tools = lru_cache(maxsize=_KEPT_PAGES)(self._tools)
        self._kept_changes = lru_cache(maxsize=_KEPT_PAGES)(self._changes)
        self._kept_events = lru_cache(maxsize=_KEPT_PAGES)(self._events)

    def tools(self, version: int, after: int) -> Body:
        """Definitions of a snapshot, in its order, from place ``after`` on."""
        library = self._reader.library(version)
        return self._kept_tools(library.digest, version, max(after, 0))

    def changes(self, after: int, upto: int) -> Body:
        """Changes with their definitions."""
        return self._kept_changes(self._reader.library(upto).digest, after, upto)

    def events(self, after: int, upto: int) -> Body:
        """Events of the chain."""
        found = self._reader.events(after=after, upto=upto)
        return self._kept_events(found[-1].hash if found else "", after, upto)

    def history(self, tool_name: str, after: int, upto: int) -> Body:
        """Revisions of one tool."""
        found = self._reader.history(tool_name, after=after, upto=upto)
        entries = [(one.version, encode(revision_to_json(one))) for one in found]
        return self._made(entries, entries[-1][0] if entries else upto)

    def _tools(self, digest: str, version: int, after: int) -> Body:
        library = self._reader.library(version)
        rest = enumerate(library.definitions[after:], start=after + 1)
        entries = ((place, encode(definition_to_json(one))) for place, one in rest)
        return self._made(entries, len(library))

    def _changes(self, digest: str, after: int, upto: int) -> Body:
        entries = map(_change_lines, self._reader.changes(after=after, upto=upto))
        return self._made(entries, upto)

    def _events(self, last: str, after: int, upto: int) -> Body:
        found = self._reader.events(after=after, upto=upto)
        return self._made(((one.sequence, encode(one.to_json())) for one in found), upto)

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


def _change_lines(applied: AppliedChange) -> Entry:
    """A change without its definitions and events, and then the definitions."""
    definitions = applied.change.upserts
    outline = ChangeOutline(
        version=applied.version,
        change=replace(applied.change, upserts=(), events=()),
        upserts=tuple((one.name, one.digest) for one in definitions),
    )
    lines = [encode(outline.to_json()), *(encode(definition_to_json(one)) for one in definitions)]
    return applied.version, b"\n".join(lines)
