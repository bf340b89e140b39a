"""``RemoteStore``: a library on a server, read over HTTP."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentkit.episodes import Episode
from agentkit.errors import (
    AgentKitError,
    ReadOnlyStoreError,
    StoreError,
    StoreFormatError,
    UsageError,
)
from agentkit.fetch import cache_directory
from agentkit.library.changes import (
    check_filter,
    definition_from_json,
    definition_to_json,
    no_such_version,
    revisions_of,
)
from agentkit.library.events import ChainHead, LibraryEvent, Verifier
from agentkit.library.library import Library, RecentVersions
from agentkit.library.remote.client import KEY_VARIABLE, Answer, LibraryClient, read_address
from agentkit.library.remote.trust import SignedHistory, check_events, check_not_back, went_back
from agentkit.library.remote.wire import MOST_CHANGES, Head
from agentkit.library.sealing import read_sealed, write_sealed
from agentkit.library.signing import key_texts, read_verifier
from agentkit.library.store import AppliedChange, EpisodeFilter, LibraryChange, ToolRevision
from agentkit.reading import read_json

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
"""A server that was away is not asked again for so long, so that nobody waits for it twice."""

_OLD_SNAPSHOTS = 4

FILE_NAME = "library.json"
_FORMAT = 3

_NOTHING = Head(
    version=0,
    digest=Library().digest,
    tools=0,
    first=1,
    last=0,
    events=ChainHead(sequence=0, hash=""),
)
"""The head of a library of which nothing was heard yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """What is known of a library, all of it checked.

    Attributes:
        head: What the server said last.
        etag: The ETag of that; empty where nothing was heard.
        library: The snapshot at the head's version.
        events: The chain, perhaps not to its end: without a key it is read when asked for.
        is_verified: Whether the library is what its signed events say.
    """

    head: Head = _NOTHING
    etag: str = ""
    library: Library = field(default_factory=Library)
    events: tuple[LibraryEvent, ...] = ()
    is_verified: bool = False

    @property
    def is_heard(self) -> bool:
        """Whether anything is known."""
        return self.head is not _NOTHING

    @property
    def has_all_events(self) -> bool:
        """Whether the chain is known to its end."""
        return len(self.events) == self.head.events.sequence

    def to_json(self) -> dict[str, Any]:
        """All of it as a JSON object."""
        return {
            "head": self.head.to_json(),
            "etag": self.etag,
            "tools": [definition_to_json(tool.definition) for tool in self.library],
            "events": [event.to_json() for event in self.events],
            "is_verified": self.is_verified,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> _Known:
        """The inverse of ``to_json``."""
        head = Head.from_json(record["head"])
        tools = map(definition_from_json, record["tools"])
        return cls(
            head=head,
            etag=record["etag"],
            library=Library(tools, version=head.version),
            events=tuple(map(LibraryEvent.from_json, record["events"])),
            is_verified=record["is_verified"],
        )


class RemoteStore:
    """A library on a server of ``create_library_app``. It can not be written to.

    ``load`` asks the server whether there is news, and takes up what changed. When the server can
    not be reached, or says what can not be right, the last snapshot stays: see ``is_away``. That
    snapshot is kept on disk too, so that a program starts without the server. The first request
    is made when something is asked for.

    Every definition is checked against its digest, and the library against its own. With a key
    the chain of events is checked as well, and the library must be what its signed events say, so
    that neither the server nor anything on the way has to be trusted.

    Args:
        url: ``http://HOST:PORT`` or ``https://HOST``, perhaps with a path. Options are
            ``?cache=FOLDER``, ``?cache=none``, ``?timeout=SECONDS`` for the longest answer, and
            ``?signed-from=NUMBER`` for the first event that has to be signed.
        key: What is shown to the server; None takes that of ``AGENTKIT_LIBRARY_KEY``.
        verifier: Checks the signatures of events; None takes the key of ``AGENTKIT_AUDIT_KEY`` or
            ``AGENTKIT_AUDIT_KEY_FILE``. Where there is none, the server is believed.

    Attributes:
        fault: Why the last try to hear from the server failed; None when it did not.

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
        self._key = _usable(os.environ.get(KEY_VARIABLE, "").strip() if key is None else key)
        texts = key_texts() if verifier is None else ()
        self._verifier = read_verifier(texts) if texts else verifier
        self._cache = address.cache_folder(cache_directory())
        self.fault: StoreError | None = None
        # What is newest; several threads may ask, and one of them asks the server.
        self._client = LibraryClient(address, key=self._key)
        self._asking = threading.Lock()
        self._newest = _Known()
        self._has_begun = False
        self._asked_at = self._failed_at = float("-inf")
        self._heard_at: float | None = None
        # The past, on a connection of its own, so that no long list holds up what is newest.
        self._past = LibraryClient(address, key=self._key)
        self._reading = threading.Lock()
        self._old = RecentVersions(most=_OLD_SNAPSHOTS)
        self._closed = False

    def __repr__(self) -> str:
        return f"RemoteStore({str(self._address)!r})"

    @property
    def is_verified(self) -> bool:
        """Whether signatures show that what is loaded is what was written."""
        return self._verifier is not None

    @property
    def is_away(self) -> bool:
        """Whether the last try to hear from the server failed, so that the snapshot may be old."""
        return self.fault is not None

    @property
    def staleness(self) -> float | None:
        """Seconds since the server last confirmed the snapshot; None when it never did."""
        return None if self._heard_at is None else time.monotonic() - self._heard_at

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        The newest one is that of the last answer when the server is away; see ``is_away``.
        Earlier ones are asked of the server.

        Raises:
            StoreUnavailableError: The server is away, and what was asked for is not known.
            StoreFormatError: The server's answer is not what it should be.
        """
        known = self._known(with_events=version is not None and self.is_verified)
        if version is None or version == known.head.version:
            return known.library
        if not known.head.has(version):
            raise no_such_version(version, known.head.versions)
        return self._at(known, version) if version else Library()

    def refresh(self) -> Library:
        """The newest snapshot as ``load`` gives it, but only when the server confirms it now.

        Raises:
            StoreUnavailableError: The server can not be reached.
            StoreError: The server refuses, or says what can not be right.
        """
        known = self._known(is_patient=True)
        if self.fault is not None:
            raise self.fault
        return known.library

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
        """All revisions of one tool in ascending order; asks the server.

        Raises:
            StoreUnavailableError: The server can not be reached.
        """
        return revisions_of(self.changes(), tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind ``after``, lazily; see ``ToolStore.changes``."""
        known = self._known(with_events=self.is_verified)
        return self._changes(known, max(after, 0))

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending. They are kept like the snapshot.

        Raises:
            StoreUnavailableError: The server is away, and no event was read before.
        """
        known = self._known(with_events=True)
        if self.fault is not None and not known.events and not known.has_all_events:
            raise self.fault
        return known.events[max(after, 0) :]

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

    # What is newest.

    def _known(self, *, with_events: bool = False, is_patient: bool = False) -> _Known:
        """What is known once the server was asked, or did not answer.

        Args:
            with_events: Whether the chain of events is wanted to its end.
            is_patient: Whether a server that just failed is asked again.

        Raises:
            StoreError: The server can not be asked, and nothing was known before.
        """
        self._check_open()
        came = time.monotonic()
        with self._asking:
            self._begin()
            known = self._newest
            if self._asked_at >= came and (known.has_all_events or not with_events):
                return known  # another thread asked meanwhile
            failed_lately = time.monotonic() - self._failed_at < _PAUSE_SECONDS
            if known.is_heard and not is_patient and failed_lately:
                return known
            try:
                self._ask(with_events=with_events)
            except StoreError as error:
                self._fail(error)
            return self._newest

    def _begin(self) -> None:
        """Take up what was kept on disk; with a key, only what was verified before."""
        if self._has_begun:
            return
        self._has_begun = True
        kept = self._read_cache()
        if kept is None or (self.is_verified and not kept.is_verified):
            return
        try:
            self._check_events(kept.events, None, kept.head)
        except StoreError as error:
            logger.warning("what was kept of %s is of no use now: %s", self._address, error)
        else:
            self._newest = kept

    def _ask(self, *, with_events: bool) -> None:
        began, before = time.monotonic(), self._newest
        known = self._after(before, with_events=with_events or self.is_verified)
        if self.fault is not None:
            version = known.head.version
            logger.warning("%s is back, at library version %d", self._address, version)
        self._newest, self.fault = known, None
        self._asked_at, self._heard_at = began, time.monotonic()
        if (known.head, len(known.events)) != (before.head, len(before.events)):
            self._keep(known)

    def _after(self, known: _Known, *, with_events: bool) -> _Known:
        """What is known once the server was asked; what was known stays as it is."""
        answer = self._client.library(since=known.head.version, etag=known.etag)
        if answer is None and (known.has_all_events or not with_events):
            return known
        head, etag = (known.head, known.etag) if answer is None else (answer.head, answer.etag)
        if known.is_heard:
            check_not_back(known.head, head)
        library = known.library if answer is None else _caught_up(known.library, answer)
        events = self._events(known, head) if with_events else known.events
        if self.is_verified:
            SignedHistory(events, partial(_brought, self._client)).check_library(library)
        return _Known(
            head=head, etag=etag, library=library, events=events, is_verified=self.is_verified
        )

    def _events(self, known: _Known, head: Head) -> tuple[LibraryEvent, ...]:
        held = known.events
        wanted = head.events.sequence - len(held)
        new = tuple(self._client.events(after=len(held)))[: max(wanted, 0)] if wanted else ()
        if len(new) < wanted:
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

    def _fail(self, error: StoreError) -> None:
        """Keep what is known and say so; without anything known there is nothing to keep."""
        is_news = type(self.fault) is not type(error)
        self.fault, self._failed_at = error, time.monotonic()
        if not self._newest.is_heard or self._client.is_closed:
            raise error
        if is_news:
            version = self._newest.head.version
            logger.warning("the library stays at version %d, as last heard: %s", version, error)

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
        wanted = [version for version in known.head.versions if version > after]
        if [one.version for one in found] != wanted:
            raise StoreFormatError(f"of the changes behind version {after} some are missing")
        for applied in found:
            if signed is not None:
                signed.check_change(applied)
            yield applied

    # The cache: what is known, in one sealed file. It is a help and no need.

    def _read_cache(self) -> _Known | None:
        """What was known last; None where there is nothing that can be used."""
        if self._cache is None:
            return None
        try:
            content = read_sealed(self._cache / FILE_NAME, self._sealed_as)
            record = None if content is None else read_json(content)
            if record is not None and record["format"] == _FORMAT:
                return _Known.from_json(record)
        except (OSError, AgentKitError, KeyError, TypeError, ValueError) as error:
            logger.warning("the cache is not used, a new one is begun: %s", error)
        return None

    def _keep(self, known: _Known) -> None:
        """Keep what is known for the next start."""
        if self._cache is None:
            return
        record = {"format": _FORMAT, **known.to_json()}
        content = json.dumps(record, separators=(",", ":"), check_circular=False).encode()
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_sealed(self._cache / FILE_NAME, content, self._sealed_as)
        except OSError as error:
            logger.warning("the cache can not be written, so nothing is kept there: %s", error)
            self._cache = None

    @property
    def _sealed_as(self) -> str:
        return f"library cache of {self._address}"


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
