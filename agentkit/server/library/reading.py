"""``LibraryReader``: what a library server reads from its store, in threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agentkit.errors import StoreError
from agentkit.library.capabilities import AppliedChange, changes_of
from agentkit.library.changes import no_such_version
from agentkit.library.event_chain import ChainHead
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.wire import Head, Ranges, ranges
from agentkit.library.store import LibraryChange, Store, ToolRevision

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
        self._versions: Ranges = ()
        self._old: OrderedDict[int, Library] = OrderedDict()

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
            known = self._old.get(version)
            if known is None:
                known = self._old[version] = self.store.load(version)
            self._old.move_to_end(version)
            while len(self._old) > _OLD_SNAPSHOTS:
                self._old.popitem(last=False)
        return known

    def events(self, *, after: int, upto: int) -> Sequence[LibraryEvent]:
        """The events behind ``after``, up to ``upto``."""
        with self._lock:
            if upto > len(self._events):
                self._read_events()
            return self._events[max(after, 0) : max(upto, 0)]

    def changes(self, *, after: int, upto: int) -> Iterator[AppliedChange]:
        """The changes behind version ``after``, up to that of ``upto``, lazily."""
        for applied in changes_of(self.store, after=max(after, 0)):
            if applied.version > upto:
                return
            yield applied

    def history(self, tool_name: str, *, after: int, upto: int) -> Sequence[ToolRevision]:
        """The revisions of a tool that versions behind ``after`` made, up to ``upto``."""
        found = self.store.history(tool_name)
        return [one for one in found if after < one.version <= upto]

    def _head(self, library: Library) -> Head:
        if not self._versions or self._versions[-1][1] > library.version:
            self._versions = ranges(self.store.versions())
        elif self._versions[-1][1] < library.version:  # one commit, one version
            *rows, (first, _) = self._versions
            self._versions = (*rows, (first, library.version))
        return Head(
            version=library.version,
            digest=library.digest,
            tools=len(library),
            versions=self._versions,
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


def without_definitions(change: LibraryChange) -> LibraryChange:
    """The change without what it brings, and without its events."""
    return replace(change, upserts=(), events=())
