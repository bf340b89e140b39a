"""``Replica``: the newest library of a store at hand, however far away or unwell the store is."""

from __future__ import annotations

import logging
import math
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import ismethod
from typing import Literal, Self

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.episodes import Episode
from agentkit.errors import (
    StaleVersionError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library, RecentVersions
from agentkit.library.opening import open_store
from agentkit.library.store import ForwardingStore, LibraryChange, Store, append_all

ReplicaState = Literal["current", "behind", "away"]
"""``current``: the last look at the store found nothing newer, or took it up. ``behind``: the store
answers, and what it holds cannot be taken up. ``away``: the store does not answer."""

TakeUp = Callable[[Library], None]

logger = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 10.0
"""Most time between two looks for a store that is away, unless ``refresh_seconds`` is longer."""

_END_SECONDS = 2.0
"""Seconds that closing waits for a poll in progress."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaStatus:
    """The state of a replica and its freshness.

    Attributes:
        state: How it stands to its store.
        version: Version of the snapshot served.
        staleness_seconds: Time since it last knew that this is the newest, by a clock of this
            machine that nobody sets. It grows to the time between two looks while all is well.
        last_error: What the last look failed of; empty when it did not.
    """

    state: ReplicaState
    version: int
    staleness_seconds: float
    last_error: str = ""

    @property
    def summary(self) -> str:
        """The state in words that anybody may read: no address, no name of a file.

        Example:
            >>> ReplicaStatus(state="away", version=7, staleness_seconds=12.3).summary
            'the store is away; library version 7 was the newest 12 s ago'
        """
        if self.state == "current":
            return f"library version {self.version} is the newest"
        text = f"the store is away; library version {self.version} was the newest"
        if self.state == "behind":
            text = f"the newest library cannot be taken up; version {self.version} was the newest"
        return f"{text} {self.staleness_seconds:.0f} s ago"


class Replica(ForwardingStore):
    """A store whose newest library is always at hand, however far or unwell the store is.

    A thread looks at the store every ``refresh_seconds``. ``load()`` gives the snapshot that is
    there and never waits. While the store is away the last one is served, the ``status`` and
    the log say so, and the thread reconnects to the store itself.

    What is written goes to the store: a commit is seen here before it returns, and an error is the
    caller's. Episodes, events and histories are read from the store.

    Args:
        store: A store, or its URL. A store that was given is used and closed like one's own.
        refresh_seconds: Time between two polls; a new version arrives within it.
        clock: Seconds of a clock that never goes backwards.

    Raises:
        StoreUnavailableError: The store is away, so that there is nothing to begin with.
        StoreFormatError: What the store holds cannot be read.
        UsageError: ``refresh_seconds`` is out of range.

    Example:
        >>> from agentkit import ToolDefinition
        >>> with Replica("memory:") as store:
        ...     change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        ...     store.commit(change, expected_version=0), store.load(), store.status.state
        (1, Library(1 tools, version=1), 'current')
    """

    def __init__(
        self,
        store: Store | str,
        *,
        refresh_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < refresh_seconds < math.inf:
            words = f"refresh_seconds is a time between two looks; got {refresh_seconds!r}"
            raise UsageError(words)
        self.refresh_seconds = refresh_seconds
        self._clock = clock
        self._process = os.getpid()
        self._store = open_store(store) if isinstance(store, str) else store
        self._older = RecentVersions()
        self._followers: dict[Callable[[], TakeUp | None], int] = {}  # the version each has
        self._handing = threading.RLock()
        self._last_event: int | None = None
        self._looking = threading.Lock()
        self._closed = False
        self._library = Library()
        self._known_at = -math.inf
        self._status = ReplicaStatus(state="current", version=0, staleness_seconds=0)
        self._failed_in_a_row = 0
        self.refresh()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=_follow,
            args=(weakref.ref(self), self._stopping, refresh_seconds),
            name="agentkit-replica",
            daemon=True,
        )
        weakref.finalize(self, self._stopping.set).atexit = False
        self._thread.start()

    def __repr__(self) -> str:
        return f"Replica({self._library!r}, {self._status.state})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def store(self) -> Store:
        """The store itself, for what it can do beyond the seam."""
        self._check_open()
        return self._store

    _tools = store

    @property
    def status(self) -> ReplicaStatus:
        """The current state, without asking the store."""
        staleness = max(0.0, self._clock() - self._known_at)
        return replace(self._status, version=self._library.version, staleness_seconds=staleness)

    @property
    def last_event(self) -> int | None:
        """The last event that is known of; None while nobody has read events from here."""
        return self._last_event

    def follow(self, take_up: TakeUp) -> None:
        """Hand on the snapshot that is there and each later one, in ascending order.

        Args:
            take_up: Called in the thread that found the snapshot. A method is not kept alive. What
                it raises counts as a failed look, and it is asked again at the next one.
        """
        follower = weakref.WeakMethod(take_up) if ismethod(take_up) else lambda: take_up
        with self._handing:
            self._followers[follower] = -1  # first: one that comes meanwhile is not missed
            self._hand_on(follower, self._library)

    def refresh(self) -> Library:
        """Look at the store now, and return what is the newest library.

        Raises:
            StoreError: The look failed; the last snapshot is served on.
        """
        error = self._look()
        if error is not None:
            raise error
        return self._library

    def load(self, version: int | None = None) -> Library:
        """The newest snapshot that is known, without asking the store; or that of ``version``.

        Raises:
            StoreUnavailableError: That version is not held here, and the store is away.
            StoreError: There is no such version.
        """
        self._check_open()
        newest = self._library
        if version is None or version == newest.version:
            return newest
        held = self._older.get(version)
        if held is None:
            try:
                held = self._store.load(version)
            except StoreUnavailableError as error:
                known = ", ".join(map(str, (*self._older.versions, newest.version)))
                words = f"is not among those held here ({known}), and the store is away: {error}"
                raise StoreUnavailableError(f"library version {version} {words}") from error
            self._older.put(held)
        return held

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change`` to the store; it is seen here before this returns."""
        try:
            version = self.store.commit(change, expected_version=expected_version)
        except StaleVersionError:
            self._look()  # rebuilding the change needs what came before it
            raise
        self._look()
        return version

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``; from now on the thread looks for later ones too."""
        events = self.store.events(after=after)
        end = events[-1].sequence if events else after
        self._last_event = max(self._last_event or 0, end)
        return events

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several; one by one where the store cannot do better."""
        append_all(self.store, episodes)

    def stop(self) -> None:
        """End the thread; what is there stays, and the store stays open."""
        self._stopping.set()
        is_ours = self._process == os.getpid() and self._thread is not threading.current_thread()
        if is_ours and self._thread.is_alive():
            self._thread.join(_END_SECONDS)  # a store may hang

    def close(self) -> None:
        """End the thread and close the store. A second call does nothing."""
        self.stop()
        self._closed = True
        self._store.close()

    def _check_open(self) -> None:
        self._check_process()
        if self._closed:
            raise StoreError("this replica is closed; make a new one")

    def _check_process(self) -> None:
        if self._process != os.getpid():
            words = "where its thread does not run; make one in each process"
            raise StoreError(f"a replica of process {self._process} is used by its fork, {words}")

    # Looking.

    def _look(self) -> Exception | None:
        """Look at the store now, and take up what is new; what it failed of."""
        with self._looking:
            began, error = self._clock(), None
            # A pin comes by events, and reaches us whatever the library is.
            for look in (self._look_for_events, self._look_for_library):
                if error is None or _answered(error):
                    try:
                        look()
                    except Exception as failed:  # noqa: BLE001 - it is logged, counted and shown
                        error = failed
            self._note(error, began)
        return error

    def _look_for_events(self) -> None:
        if self._last_event is not None:
            self.events(after=self._last_event)

    def _look_for_library(self) -> None:
        self._check_open()
        known, newest = self._library, self._store.load()
        if newest.version < known.version:
            raise StoreFormatError(
                f"the store is at library version {newest.version} and was at {known.version} "
                f"before. Version {known.version} is served on; a new start takes up the older one"
            )
        if newest.version > known.version:
            ready = newest.continuing(known).caught_up()
            self._older.put(known)
            self._library = ready
        failed: Exception | None = None
        with self._handing:
            for follower in tuple(self._followers):
                try:
                    self._hand_on(follower, self._library)
                except Exception as error:  # noqa: BLE001 - it is asked again the next time
                    failed = failed or error
        if failed is not None:
            raise failed

    def _hand_on(self, follower: Callable[[], TakeUp | None], library: Library) -> None:
        """Hand on a snapshot if it is newer to one who is still there."""
        take_up = follower()
        if take_up is None:
            del self._followers[follower]
        elif library.version > self._followers[follower]:
            take_up(library)
            self._followers[follower] = library.version

    def _note(self, error: Exception | None, began: float) -> None:
        """Note what came of a look, and say in the log what changed; the rest was said before."""
        before, version = self._status, self._library.version
        if error is None:
            if before.state != "current":
                words = "the store is back; library version %d is the newest (%.1f s away)"
                logger.warning(words, version, began - self._known_at)
            self._known_at, self._failed_in_a_row = began, 0
            self._status = replace(before, state="current", last_error="")
            return
        kind = type(error).__name__
        state: ReplicaState = "behind" if _answered(error) else "away"
        text = f"{kind}: {error}"  # in words: an exception would keep alive who met it
        self._failed_in_a_row += 1
        self._status = replace(before, state=state, last_error=text)
        if (state, kind) != (before.state, before.last_error.partition(":")[0]):
            words = "the newest library cannot be taken up; version %d is served on (%s)"
            if state == "away":
                words = "the store is away; library version %d is served on (%s)"
            logger.warning(words, version, episodes.log_text(text))


def _follow(
    replica_if_any: Callable[[], Replica | None], stopping: threading.Event, refresh_seconds: float
) -> None:
    """The thread of a replica, which it keeps alive only while it looks."""
    pause = 0.0
    while not stopping.wait(pause):
        replica = replica_if_any()
        if replica is None:
            return
        replica._look()  # noqa: SLF001 - this is its thread
        pause = pause_after(replica._failed_in_a_row, refresh_seconds=refresh_seconds)  # noqa: SLF001
        del replica


def _answered(error: Exception) -> bool:
    """Whether the store is there, and what it holds is the trouble."""
    return isinstance(error, StoreFormatError) or not isinstance(error, StoreError | OSError)


def pause_after(failed: int, *, refresh_seconds: float) -> float:
    """Time to the next look: longer after each that failed, and not the same for all replicas.

    Example:
        >>> pause_after(0, refresh_seconds=1.0)
        1.0
        >>> 2.0 <= pause_after(3, refresh_seconds=1.0) <= 4.0
        True
    """
    if not failed:
        return refresh_seconds
    doubled = refresh_seconds * 2.0 ** min(failed - 1, 16)
    longest = max(refresh_seconds, LONGEST_PAUSE_SECONDS)
    return min(doubled, longest) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def replica_of(store: object) -> Replica | None:
    """The store, if it is a replica.

    Example:
        >>> print(replica_of("memory:"))
        None
    """
    return store if isinstance(store, Replica) else None
