"""``Further``: what is asked of a library server beyond the newest snapshot, and not kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile

from agentkit.library.abilities import AppliedChange
from agentkit.library.library import Library
from agentkit.library.remote.asking import LibraryClient
from agentkit.library.remote.bodies import Bounds
from agentkit.library.remote.catching_up import Known, Trust
from agentkit.library.remote.connection import Connection
from agentkit.library.remote.trust import Told, check_change, check_history, told_by
from agentkit.library.store import ToolRevision

_OLD_SNAPSHOTS = 4
_MOST_TOOLS = 1_000_000


class Further:
    """Earlier snapshots, histories and changes, each compared with the events where there is a key.

    Args:
        connection: To the server; of its own, so that no long list holds up the newest snapshot.
        trust: What has to be shown.
        bounds: How much is taken from the server.
    """

    def __init__(self, connection: Connection, *, trust: Trust, bounds: Bounds) -> None:
        self._connection = connection
        self._client = LibraryClient(connection, bounds=bounds)
        self._is_verified = trust.verifier is not None
        self._turn = threading.Lock()
        self._old: OrderedDict[int, Library] = OrderedDict()

    def at(self, known: Known, version: int) -> Library:
        """The snapshot at an earlier version; a few of them are kept.

        Raises:
            StoreError: The server can not be asked, or what it says is not what it should be.
        """
        with self._turn:
            library = self._old.get(version)
            if library is None:
                library = self._old[version] = self._read(known, version)
            self._old.move_to_end(version)
            while len(self._old) > _OLD_SNAPSHOTS:
                self._old.popitem(last=False)
            return library

    def history(self, known: Known, tool_name: str) -> Sequence[ToolRevision]:
        """The revisions of one tool.

        Raises:
            StoreError: The server can not be asked, or what it says is not what it should be.
        """
        with self._turn:
            found = self._client.history(tool_name, upto=known.head.version)
            if self._is_verified:
                check_history(tool_name, found, known.events, _Outlines(self._client, known))
        return tuple(found)

    def changes(self, known: Known, after: int) -> Iterator[AppliedChange]:
        """The changes behind a version, a page at a time.

        Raises:
            StoreError: The server can not be asked, or what it says is not what it should be.
        """
        found = self._client.changes(after=after, upto=known.head.version)
        outlines = _Outlines(self._client, known)
        events = list(dropwhile(lambda one: one.library_version <= after, known.events))
        told = Told()
        if self._is_verified:
            told = told.after(known.events[: len(known.events) - len(events)], outlines)
        while (applied := self._next(found)) is not None:
            if self._is_verified:
                own = list(takewhile(lambda one: one.library_version <= applied.version, events))
                del events[: len(own)]
                check_change(applied, told, [told_by(one, outlines) for one in own])
                told = told.after(own, outlines)
            yield applied

    def close(self) -> None:
        """Break off what is under way. A second call does nothing."""
        self._connection.close()

    def _next(self, found: Iterator[AppliedChange]) -> AppliedChange | None:
        with self._turn:  # a page is read in one go, and nobody else asks meanwhile
            return next(found, None)

    def _read(self, known: Known, version: int) -> Library:
        library = Library(self._client.tools(version, most=_MOST_TOOLS), version=version)
        if self._is_verified:
            earlier = takewhile(lambda one: one.library_version <= version, known.events)
            Told().after(earlier, _Outlines(self._client, known)).check(library)
        return library.continuing(known.library)


class _Outlines:
    """Gives what very large changes brought: what is known, else what the server says."""

    def __init__(self, client: LibraryClient, known: Known) -> None:
        self._client = client
        self._found = dict(known.outlines)

    def __call__(self, version: int) -> Mapping[str, str]:
        if version not in self._found:
            self._found[version] = self._client.outline(version)
        return self._found[version]
