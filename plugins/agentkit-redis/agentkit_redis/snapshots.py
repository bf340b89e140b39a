"""Snapshots of a library: the newest is kept, and brought up to date by what changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentkit.library.changes import no_such_version
from agentkit.library.library import Library
from agentkit_redis.connection import Command, Word
from agentkit_redis.reading import LibraryReader
from agentkit_redis.records import Head, Stored, VersionRecord, follows, read_tool, read_version

_FEW = 16
"""So many versions are asked for along with the head; whoever is further behind reads all tools."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """A snapshot, and what proves that the server's version of that number is the same one.

    A server that was restored from a backup may give a number a second time.
    """

    library: Library = field(default_factory=Library)
    stamp: bytes = b""


class Snapshots:
    """Loads versions, for as many threads as there are."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        self._kept = _Kept()

    def load(self, version: int | None = None) -> Library:
        """See ``RedisStore.load``."""
        kept = self._kept
        head, records = self._look(kept)
        wanted = head.version if version is None else version
        if not 0 <= wanted <= head.version:
            raise no_such_version(wanted, range(1, head.version + 1))
        if wanted == 0:
            return Library()
        holds = _leads_on(kept, head, records)
        if holds and wanted == kept.library.version:
            return kept.library
        if wanted < head.version:
            return self._old(kept.library if holds else Library(), wanted)
        behind = head.version - kept.library.version
        if holds and behind <= len(records):
            return self._caught_up(kept, head, records[:behind])
        return self._whole(kept.library)

    def _look(self, kept: _Kept) -> tuple[Head, Sequence[bytes | None]]:
        """The head, and what made the few versions behind the kept one: one round trip."""
        first = kept.library.version
        if first == 0:
            return self._reader.head(), ()
        keys = self._reader.keys
        numbers: tuple[Word, ...] = tuple(range(first + 1, first + _FEW + 1))
        commands: list[Command] = [
            self._reader.head_command(),
            ("HMGET", keys.versions, *numbers),
        ]
        head, records = self._reader.connection.ask_all(commands)
        return self._reader.read_head(head), records

    def _caught_up(self, kept: _Kept, head: Head, texts: Sequence[bytes | None]) -> Library:
        base = kept.library
        records = [read_version(base.version + i, text) for i, text in enumerate(texts, start=1)]
        library = self._after(base, records, version=head.version)
        self._kept = _Kept(library=library, stamp=records[-1].stamp)
        return library

    def _old(self, base: Library, version: int) -> Library:
        """An earlier version, from one before it or from the beginning."""
        start = base if base.version < version else Library()
        records = self._reader.versions(range(start.version + 1, version + 1))
        library = self._after(start, records, version=version)
        return library if start is base else library.continuing(base)

    def _whole(self, known: Library) -> Library:
        """The newest version from all its tools; definitions that are known are not read again."""
        head, (held,) = self._reader.at_once(("HGETALL", self._reader.keys.tools))
        placed = sorted((read_tool(*one) for one in held.items()), key=lambda one: (one[0], one[1]))
        tools = self._reader.definitions([stored for _, _, stored in placed], known)
        library = Library(tools, version=head.version).continuing(known)
        self._kept = _Kept(library=library, stamp=head.stamp)
        return library

    def _after(self, base: Library, records: Iterable[VersionRecord], *, version: int) -> Library:
        """The snapshot at ``version``, from an earlier one and what came after it."""
        changed: dict[str, Stored] = {}
        gone: set[str] = set()
        for record in records:
            for name in record.removals:
                gone.add(name)  # one that comes again stands behind the others
                changed.pop(name, None)
            changed |= {stored.name: stored for stored in record.upserts}
        tools = self._reader.definitions(list(changed.values()), self._kept.library)
        rest = base.without(gone) if gone and len(base) else base
        return rest.with_tools(tools).at_version(version)


def _leads_on(kept: _Kept, head: Head, records: Sequence[bytes | None]) -> bool:
    """Whether the kept version is one that the server's newest came from."""
    if kept.library.version == head.version:
        return kept.stamp == head.stamp
    return bool(records) and follows(kept.stamp, records[0])
