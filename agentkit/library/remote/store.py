"""``RemoteStore``: a library on a server, read over HTTP."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from agentkit.episodes import Episode
from agentkit.errors import (
    ReadOnlyStoreError,
    StoreError,
    StoreFormatError,
    UsageError,
)
from agentkit.library.chain import key_texts, read_verifier
from agentkit.library.changes import (
    check_filter,
    no_such_version,
    revisions_of,
)
from agentkit.library.events import ChainHead, LibraryEvent, Verifier
from agentkit.library.library import Library, RecentVersions
from agentkit.library.remote.client import KEY_VARIABLE, Answer, LibraryClient, read_address
from agentkit.library.remote.trust import SignedHistory, check_events, check_not_back, went_back
from agentkit.library.remote.wire import MOST_CHANGES, Head
from agentkit.library.store import AppliedChange, EpisodeFilter, LibraryChange, ToolRevision

logger = logging.getLogger(__name__)

_OLD_SNAPSHOTS = 4

_NOTHING = Head(
    version=0,
    digest=Library().digest,
    tools=0,
    first=1,
    last=0,
    events=ChainHead(sequence=0, hash=""),
)
"""The head of a library that was not read yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """The known state of a library, all of it checked.

    Attributes:
        head: What the server said last.
        etag: The ETag of that; empty where nothing was heard.
        library: The snapshot at the head's version.
        events: The chain, perhaps not to its end: without a key it is read when asked for.
    """

    head: Head = _NOTHING
    etag: str = ""
    library: Library = field(default_factory=Library)
    events: tuple[LibraryEvent, ...] = ()

    @property
    def has_all_events(self) -> bool:
        """Whether the chain is known to its end."""
        return len(self.events) == self.head.events.sequence


class RemoteStore:
    """A library on a server of ``create_library_app``. It cannot be written to.

    ``load`` asks the server for changes and applies them. A ``Replica`` of it
    serves the last snapshot while the server is away. The first request is made when
    something is asked for.

    Every definition is checked against its digest, and the library against its own; a server that
    goes back to an earlier state than this object saw is refused. With a key the chain of events is
    checked as well, and the library must be what its signed events say, so that neither the server
    nor anything on the way has to be trusted.

    Args:
        url: ``http://HOST:PORT`` or ``https://HOST``, perhaps with a path. Options are
            ``?timeout=SECONDS`` for the longest answer, and ``?signed-from=NUMBER`` for the first
            event that has to be signed.
        key: What is shown to the server; None takes that of ``AGENTKIT_LIBRARY_KEY``.
        verifier: Checks the signatures of events; None takes the key of ``AGENTKIT_AUDIT_KEY`` or
            ``AGENTKIT_AUDIT_KEY_FILE``. Where there is none, the server is believed.

    Raises:
        UsageError: The URL or the key is not usable, or there is an audit key that is not.
        MissingExtraError: An ed25519 key needs the package ``cryptography``.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self._address = address = read_address(url)
        shown = _usable(os.environ.get(KEY_VARIABLE, "").strip() if key is None else key)
        texts = key_texts() if verifier is None else ()
        self._verifier = read_verifier(texts) if texts else verifier
        # What is newest; several threads may ask, and one of them asks the server.
        self._client = LibraryClient(address, key=shown)
        self._asking = threading.Lock()
        self._newest = _Known()
        self._asked_at = float("-inf")
        # The past, on a connection of its own, so that no long list holds up what is newest.
        self._past = LibraryClient(address, key=shown)
        self._reading = threading.Lock()
        self._old = RecentVersions(most=_OLD_SNAPSHOTS)
        self._closed = False

    def __repr__(self) -> str:
        return f"RemoteStore({str(self._address)!r})"

    @property
    def is_verified(self) -> bool:
        """Whether signatures show that what is loaded is what was written."""
        return self._verifier is not None

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        Raises:
            StoreUnavailableError: The server is away.
            StoreFormatError: The server's answer is not what it should be.
        """
        known = self._known(with_events=self.is_verified)
        if version is None or version == known.head.version:
            return known.library
        if not known.head.has(version):
            raise no_such_version(version, known.head.versions)
        return self._at(known, version) if version else Library()

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Refused: the library is only read here.

        Raises:
            ReadOnlyStoreError: Always.
        """
        raise ReadOnlyStoreError(
            f"the library at {self._address} can only be read from here; write to the store that "
            "its server serves"
        )

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        return self._known().head.versions

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order; asks the server for all changes."""
        return revisions_of(self.changes(), tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind ``after``; see ``ToolStore.changes``."""
        known = self._known(with_events=self.is_verified)
        return self._changes(known, max(after, 0))

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending."""
        return self._known(with_events=True).events[max(after, 0) :]

    def append(self, episode: Episode) -> None:
        """Refused: the library is only read here.

        Raises:
            StoreError: Always.
        """
        raise StoreError(
            f"the library at {self._address} keeps no episodes, so {episode.episode_id!r} has no "
            "place in it; give the agent a store of its own for them"
        )

    def get(self, episode_id: str) -> Episode | None:
        """None: a library server gives no episodes."""
        self._check_open()
        return None

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """None: a library server gives no episodes."""
        check_filter(matching)
        self._check_open()
        return iter(())

    def close(self) -> None:
        """Break off what is under way, and refuse further use. A second call does nothing."""
        self._closed = True
        self._client.close()
        self._past.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the library at {self._address} is closed; open it again")

    def _known(self, *, with_events: bool = False) -> _Known:
        """The known state after asking the server.

        Args:
            with_events: Whether the chain of events is wanted to its end.
        """
        self._check_open()
        came = time.monotonic()
        with self._asking:
            known = self._newest
            if self._asked_at < came or not (known.has_all_events or not with_events):
                began = time.monotonic()
                known = self._newest = self._after(known, with_events=with_events)
                self._asked_at = began
            return known

    def _after(self, known: _Known, *, with_events: bool) -> _Known:
        """The known state after asking the server; the old state object is unchanged."""
        answer = self._client.library(since=known.head.version, etag=known.etag)
        if answer is None and (known.has_all_events or not with_events):
            return known
        head, etag = (known.head, known.etag) if answer is None else (answer.head, answer.etag)
        if known.head is not _NOTHING:
            check_not_back(known.head, head)
        library = known.library if answer is None else _caught_up(known.library, answer)
        events = self._events(known, head) if with_events else known.events
        if self.is_verified:
            SignedHistory(events, partial(_brought, self._client)).check_library(library)
        return _Known(head=head, etag=etag, library=library, events=events)

    def _events(self, known: _Known, head: Head) -> tuple[LibraryEvent, ...]:
        held = known.events
        missing = head.events.sequence - len(held)
        new = tuple(self._client.events(after=len(held)))[: max(missing, 0)] if missing else ()
        if len(new) < missing:
            raise StoreFormatError(f"events {len(held) + len(new) + 1} and later are missing")
        self._check_events(new, held[-1] if held else None, head)
        seen = known.head.events.sequence
        if seen and ChainHead.of((*held, *new)[seen - 1]) != known.head.events:
            raise went_back(known.head, head)
        return (*held, *new)

    def _check_events(
        self, events: Sequence[LibraryEvent], before: LibraryEvent | None, head: Head
    ) -> None:
        signed_from = self._address.signed_from
        check_events(events, before, head, verifier=self._verifier, signed_from=signed_from)

    # The past; with a key each part is compared with the events.

    def _at(self, known: _Known, version: int) -> Library:
        with self._reading:
            held = self._old.get(version)
            if held is not None:
                return held
            library = _caught_up(known.library, self._past.at(version))
            if self.is_verified:
                SignedHistory(known.events, partial(_brought, self._past)).check_library(library)
            self._old.put(library)
            return library

    def _changes(self, known: _Known, after: int) -> Iterator[AppliedChange]:
        with self._reading:
            signed = None
            if self.is_verified:
                signed = SignedHistory(known.events, partial(_brought, self._past))
            newest = known.head.last
            found = [one for one in self._past.changes(after=after) if one.version <= newest]
        versions = [version for version in known.head.versions if version > after]
        if [one.version for one in found] != versions:
            raise StoreFormatError(f"of the changes behind version {after} some are missing")
        for applied in found:
            if signed is not None:
                signed.check_change(applied)
            yield applied


def open_remote(url: str) -> RemoteStore:
    """The store of a library's URL; no request is made yet.

    Raises:
        UsageError: The URL is not usable, or there is an audit key that is not.
    """
    return RemoteStore(url)


def _caught_up(known: Library, answer: Answer) -> Library:
    """The snapshot of an answer, which brings up to date what the one that is known worked out."""
    head, library = answer.head, known
    if answer.tools is not None:
        library = Library(answer.tools).continuing(known)
    for applied in answer.changes:
        if applied.version > head.version or len(answer.changes) > MOST_CHANGES + len(known):
            raise StoreFormatError("the changes that came are others than those asked for")
        library = library.without(applied.change.removals).with_tools(applied.change.upserts)
    if (library.digest, len(library)) != (head.digest, head.tools):
        raise StoreFormatError(
            f"library version {head.version} should have {head.tools:,} tools and digest "
            f"{head.digest[:12]}; what came has {len(library):,} and {library.digest[:12]}"
        )
    return library.at_version(head.version)


def _brought(client: LibraryClient, version: int) -> Mapping[str, str]:
    """Name and digest of what one version brought, as the server says."""
    with closing(client.changes(after=version - 1)) as changes:
        applied = next(changes, None)
    if applied is None or applied.version != version:
        raise StoreFormatError(f"the server tells nothing of the change that made {version}")
    return {one.name: one.digest for one in applied.change.upserts}


def _usable(key: str) -> str:
    """The key, if a header can hold it; the message does not repeat it."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            f"the key of the library ({KEY_VARIABLE}) is not usable: it holds other characters "
            "than printable ASCII, or blanks"
        )
    return key
