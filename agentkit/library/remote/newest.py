"""What is known of a remote library: the newest snapshot, and what is asked for beside it."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile

from agentkit.errors import StoreError, StoreFormatError
from agentkit.library.event_chain import ChainHead
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.cache import LibraryCache
from agentkit.library.remote.client import Bounds, Connection, LibraryClient
from agentkit.library.remote.trust import (
    Known,
    ToldTools,
    Trust,
    check_change,
    check_history,
    check_not_back,
    told_by,
    went_back,
)
from agentkit.library.remote.wire import Head
from agentkit.library.store import AppliedChange, ToolRevision

_LOG = logging.getLogger(__name__)

_OLD_SNAPSHOTS = 4
_MOST_TOOLS = 1_000_000
_FEW_VERSIONS = 16

_PAUSE_SECONDS = 1.0
"""A server that was away is not asked again for so long, so that nobody waits for it twice."""


class Newest:
    """What is known of one library. Several threads may ask; one of them asks the server.

    Args:
        connection: To the server.
        cache: What is known from earlier, on disk.
        trust: What has to be shown before something is taken up.
        bounds: How much is taken from the server.
        name: Of the library, for the log.

    Attributes:
        fault: Why the last try to hear from the server failed; None when it did not.
        heard_at: When the server last confirmed what is known, by ``time.monotonic``; None when
            it never did.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        cache: LibraryCache,
        trust: Trust,
        bounds: Bounds,
        name: str,
    ) -> None:
        self.fault: StoreError | None = None
        self.heard_at: float | None = None
        self._connection = connection
        self._cache = cache
        self._trust = trust
        self._bounds = bounds
        self._name = name
        self._turn = threading.Lock()
        self._known = Known()
        self._has_begun = False
        self._asked_at = self._failed_at = float("-inf")

    def known(self, *, with_events: bool = False, is_patient: bool = False) -> Known:
        """What is known once the server was asked, or did not answer.

        Args:
            with_events: Whether the chain of events is wanted to its end.
            is_patient: Whether a server that just failed is asked again.

        Raises:
            StoreError: The server can not be asked, and nothing was known before.
        """
        came = time.monotonic()
        with self._turn:
            self._begin()
            known = self._known
            if self._asked_at >= came and (known.has_all_events or not with_events):
                return known  # another thread asked meanwhile
            if known.is_heard and not is_patient and self._failed_lately():
                return known
            try:
                self._ask(with_events=with_events)
            except StoreError as error:
                self._fail(error)
            return self._known

    def close(self) -> None:
        """Break off what is under way, and close the cache. A second call does nothing."""
        self._connection.close()
        with self._turn:
            self._cache.close()

    def _failed_lately(self) -> bool:
        return time.monotonic() - self._failed_at < _PAUSE_SECONDS

    def _begin(self) -> None:
        """Take up what was kept on disk, looked at as if it had just come."""
        if self._has_begun:
            return
        self._has_begun = True
        kept = self._cache.read()
        if kept is None:
            return
        try:
            self._trust.check_events(kept.events, None, kept.head)
            client = LibraryClient(self._connection, bounds=self._bounds)
            self._known = self._as_told(kept, ToldTools(), kept.events, client)
        except StoreError as error:
            _LOG.warning("what was kept of %s is of no use now: %s", self._name, error)

    def _ask(self, *, with_events: bool) -> None:
        began, before = time.monotonic(), self._known
        try:
            known = self._after(before, with_events=with_events)
        except StoreFormatError as error:
            # A cache on the way may hold what the server says no longer.
            _LOG.info("asking %s again, past caches on the way: %s", self._name, error)
            known = self._after(before, with_events=with_events, is_fresh=True)
        if self.fault is not None:
            _LOG.warning("%s is back, at library version %d", self._name, known.head.version)
        self._known, self.fault = known, None
        self._asked_at, self.heard_at = began, time.monotonic()
        if (known.head, len(known.events)) != (before.head, len(before.events)):
            self._cache.keep(known)

    def _after(self, known: Known, *, with_events: bool, is_fresh: bool = False) -> Known:
        """What is known once the server was asked; what was known stays as it is."""
        client = LibraryClient(self._connection, bounds=self._bounds, is_fresh=is_fresh)
        answer = client.head(etag=known.etag)
        head, etag = (known.head, known.etag) if answer is None else answer
        wants_events = with_events or self._trust.is_verified
        if head == known.head and (known.has_all_events or not wants_events):
            return replace(known, etag=etag)
        if known.is_heard:
            check_not_back(known.head, head)
        events = self._events(client, known, head) if wants_events else known.events
        library = _library(client, known, head)
        found = replace(known, head=head, etag=etag, events=events, library=library)
        return self._as_told(found, known.told, events[len(known.events) :], client)

    def _as_told(
        self,
        found: Known,
        told: ToldTools,
        events: Sequence[LibraryEvent],
        client: LibraryClient,
    ) -> Known:
        """What was found, once the library is what its signed events say; with a key alone."""
        if not self._trust.is_verified:
            return found
        outlines = Outlines(client, found)
        told = told.after(events, outlines)
        told.check(found.library)
        return replace(found, told=told, outlines=outlines.found)

    def _events(self, client: LibraryClient, known: Known, head: Head) -> tuple[LibraryEvent, ...]:
        held = known.events
        new = tuple(client.events(after=len(held), upto=head.events.sequence))
        self._trust.check_events(new, held[-1] if held else None, head)
        seen = known.head.events.sequence
        if seen and ChainHead.of((*held, *new)[seen - 1]) != known.head.events:
            raise went_back(known.head, head)
        return (*held, *new)

    def _fail(self, error: StoreError) -> None:
        """Keep what is known and say so; without anything known there is nothing to keep."""
        is_news = type(self.fault) is not type(error)
        self.fault, self._failed_at = error, time.monotonic()
        if not self._known.is_heard or self._connection.is_closed:
            raise error
        if is_news:
            version = self._known.head.version
            _LOG.warning("the library stays at version %d, as last heard: %s", version, error)


def _library(client: LibraryClient, known: Known, head: Head) -> Library:
    """The newest snapshot: by what changed, or whole where that is less."""
    gap = head.version - known.head.version
    if not gap and (known.is_heard or not head.tools):
        return known.library
    if known.head.version and gap <= max(_FEW_VERSIONS, len(known.library)):
        library = known.library
        for applied in client.changes(after=known.head.version, upto=head.version):
            library = library.without(applied.change.removals)
            library = library.with_tools(applied.change.upserts)
    else:
        found = client.tools(head.version, most=head.tools)
        library = Library(found).continuing(known.library)
    if (library.digest, len(library)) != (head.digest, head.tools):
        raise StoreFormatError(
            f"library version {head.version} should have {head.tools:,} tools and digest "
            f"{head.digest[:12]}; what came has {len(library):,} and {library.digest[:12]}"
        )
    return library.at_version(head.version)


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
        self._is_verified = trust.is_verified
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
                check_history(tool_name, found, known.events, Outlines(self._client, known))
        return tuple(found)

    def changes(self, known: Known, after: int) -> Iterator[AppliedChange]:
        """The changes behind a version, a page at a time.

        Raises:
            StoreError: The server can not be asked, or what it says is not what it should be.
        """
        found = self._client.changes(after=after, upto=known.head.version)
        outlines = Outlines(self._client, known)
        events = list(dropwhile(lambda one: one.library_version <= after, known.events))
        told = ToldTools()
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
            ToldTools().after(earlier, Outlines(self._client, known)).check(library)
        return library.continuing(known.library)


class Outlines:
    """Gives what very large changes brought: what is known, else what the server says."""

    def __init__(self, client: LibraryClient, known: Known) -> None:
        self._client = client
        self.found = dict(known.outlines)

    def __call__(self, version: int) -> Mapping[str, str]:
        """Name and digest of what one version brought."""
        if version not in self.found:
            self.found[version] = self._client.outline(version)
        return self.found[version]
