"""``RemoteStore``: a library on a server, read over HTTP."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from agentkit.episodes import Episode
from agentkit.errors import ReadOnlyStoreError, StoreError, UsageError
from agentkit.fetch import cache_directory
from agentkit.library.changes import check_filter, no_such_version
from agentkit.library.event_chain import Verifier
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.address import KEY_VARIABLE, read_address
from agentkit.library.remote.cache import LibraryCache
from agentkit.library.remote.client import Bounds, Connection, LibraryClient
from agentkit.library.remote.newest import Further, Newest
from agentkit.library.remote.trust import Known, Trust
from agentkit.library.remote.wire import LONGEST_WAIT_SECONDS, Head
from agentkit.library.signing import key_texts, read_verifier
from agentkit.library.store import AppliedChange, EpisodeFilter, LibraryChange, ToolRevision

_POLL_SECONDS = 1.0
"""How often a server is asked that answers at once, whatever it is asked to wait for."""


class RemoteWatch:
    """A ``Watch`` of a remote library, on a connection of its own. Any thread may close it.

    Args:
        connection: To the server.
        bounds: How much is taken from it.
        on_close: Called once, when it is closed.

    Raises:
        StoreUnavailableError: The server can not be reached.
    """

    def __init__(
        self, connection: Connection, *, bounds: Bounds, on_close: Callable[[RemoteWatch], None]
    ) -> None:
        self._connection = connection
        self._client = LibraryClient(connection, bounds=bounds)
        self._on_close = on_close
        self._closed = threading.Event()
        self._etag = ""
        self._head: Head | None = None
        try:
            self._is_other(0.0)
        except BaseException:
            connection.close()
            raise

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a commit; see ``Watch.wait``."""
        began = time.monotonic()
        until = began + timeout_seconds
        while not self._is_other(max(0.0, min(until - began, LONGEST_WAIT_SECONDS))):
            asked, began = began, time.monotonic()
            left = until - began
            if left <= 0:
                return False
            if began - asked < _POLL_SECONDS:
                self._closed.wait(min(left, _POLL_SECONDS))
                began = time.monotonic()
        return True

    def close(self) -> None:
        """End a wait, and hear nothing more. A second call does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self._connection.close()
            self._on_close(self)

    def _is_other(self, wait_seconds: float) -> bool:
        """Whether the head is another one than the last time."""
        if self._closed.is_set():
            raise StoreError(f"this watch on {self._connection} is closed; make a new one")
        answer = self._client.head(etag=self._etag, wait_seconds=wait_seconds)
        if answer is None:
            return False
        before, (self._head, self._etag) = self._head, answer
        return before != self._head


class RemoteStore:
    """A library on a server of ``agentkit serve --definitions``. It can not be written to.

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
        bounds: How much is taken from the server.

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
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
    ) -> None:
        self._address = address = read_address(url)
        self._key = _usable(os.environ.get(KEY_VARIABLE, "").strip() if key is None else key)
        self._bounds = bounds
        texts = key_texts() if verifier is None else ()
        trust = Trust(
            verifier=read_verifier(texts) if texts else verifier, signed_from=address.signed_from
        )
        self._is_verified = trust.is_verified
        self._newest = Newest(
            self._connection(),
            cache=LibraryCache(address.cache_folder(cache_directory()), address),
            trust=trust,
            bounds=bounds,
            name=str(address),
        )
        self._further = Further(self._connection(), trust=trust, bounds=bounds)
        self._watches: list[RemoteWatch] = []
        self._closed = False

    def __repr__(self) -> str:
        return f"RemoteStore({str(self._address)!r})"

    @property
    def is_verified(self) -> bool:
        """Whether signatures show that what is loaded is what was written."""
        return self._is_verified

    @property
    def is_away(self) -> bool:
        """Whether the last try to hear from the server failed, so that the snapshot may be old."""
        return self._newest.fault is not None

    @property
    def fault(self) -> StoreError | None:
        """Why the last try to hear from the server failed; None when it did not."""
        return self._newest.fault

    @property
    def staleness(self) -> float | None:
        """Seconds since the server last confirmed the snapshot; None when it never did."""
        heard = self._newest.heard_at
        return None if heard is None else time.monotonic() - heard

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        The newest one is that of the last answer when the server is away; see ``is_away``.
        Earlier ones are asked of the server.

        Raises:
            StoreUnavailableError: The server is away, and what was asked for is not known.
            StoreFormatError: The server's answer is not what it should be.
        """
        known = self._known(with_events=version is not None)
        if version is None or version == known.head.version:
            return known.library
        if not known.head.has(version):
            raise no_such_version(version, known.head.all_versions)
        return self._further.at(known, version) if version else Library()

    def refresh(self) -> Library:
        """The newest snapshot as ``load`` gives it, but only when the server confirms it now.

        Raises:
            StoreUnavailableError: The server can not be reached.
            StoreError: The server refuses, or says what can not be right.
        """
        self._check_open()
        known = self._newest.known(is_patient=True)
        if self._newest.fault is not None:
            raise self._newest.fault
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
        return self._known().head.all_versions

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order; asks the server.

        Raises:
            StoreUnavailableError: The server can not be reached.
        """
        known = self._known(with_events=True)
        if not known.head.version or not _can_be_asked(tool_name):
            return ()
        return self._further.history(known, tool_name)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending. They are kept like the snapshot.

        Raises:
            StoreUnavailableError: The server is away, and no event was read before.
        """
        self._check_open()
        known = self._newest.known(with_events=True)
        if self._newest.fault is not None and not known.events and not known.has_all_events:
            raise self._newest.fault
        return known.events[max(after, 0) :]

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes that made the versions behind ``after``; see ``ChangeLog.changes``."""
        known = self._known(with_events=True)
        return self._further.changes(known, max(after, 0))

    def watch(self) -> RemoteWatch:
        """Begin to listen; see ``Watchable.watch``.

        Raises:
            StoreUnavailableError: The server can not be reached.
        """
        self._check_open()
        watch = RemoteWatch(self._connection(), bounds=self._bounds, on_close=self._watches.remove)
        self._watches.append(watch)
        return watch

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
        for watch in tuple(self._watches):
            watch.close()
        self._newest.close()
        self._further.close()

    def _known(self, *, with_events: bool = False) -> Known:
        """What is known; with the events where they are needed to check something."""
        self._check_open()
        return self._newest.known(with_events=with_events and self._is_verified)

    def _connection(self) -> Connection:
        return Connection(self._address, key=self._key, bounds=self._bounds)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the library at {self._address} is closed; open it again")


def open_remote(url: str) -> RemoteStore:
    """The store of a library's URL; no request is made yet.

    Raises:
        UsageError: The URL is not usable, or there is an audit key that is not.
    """
    return RemoteStore(url)


def _usable(key: str) -> str:
    """The key, if a header can hold it; the message does not repeat it."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            f"the key of the library ({KEY_VARIABLE}) is not usable: it holds other characters "
            "than printable ASCII, or blanks"
        )
    return key


def _can_be_asked(tool_name: str) -> bool:
    """Whether a URL can hold the name; half a surrogate pair no tool is named by."""
    try:
        tool_name.encode()
    except UnicodeEncodeError:
        return False
    return True
