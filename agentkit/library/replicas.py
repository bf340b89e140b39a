"""``Replica``: the newest library of a store at hand, however far away or unwell the store is."""

from __future__ import annotations

import json
import logging
import math
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hmac import compare_digest
from inspect import ismethod
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, get_args

from agentkit.episodes import Episode
from agentkit.episodes.replacing import for_owner
from agentkit.errors import (
    AgentKitError,
    StaleVersionError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.library.capabilities import Confirming, Watch, Watchable, append_all
from agentkit.library.events import LibraryEvent
from agentkit.library.library import MOST_VERSIONS, Library, RecentVersions
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import open_store
from agentkit.library.sealing import seal
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    LibraryChange,
    Store,
    ToolRevision,
)
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

ReplicaState = Literal["current", "behind", "away"]
"""``current``: the last look at the store found nothing newer, or took it up. ``behind``: the store
answers, and what it holds can not be taken up. ``away``: the store does not answer."""

WhenStale = Literal["serve", "refuse"]
"""What becomes of runs that begin while the library is staler than it may be: they are served with
it, and the status says so; or they are refused with an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaStatus:
    """What a replica knows, and how well.

    Attributes:
        state: How it stands to its store.
        version: Of the snapshot that it serves.
        staleness_seconds: Time since it last knew that this is the newest, by a clock of this
            machine that nobody sets. It grows to the time between two looks while all is well;
            of a kept copy nobody knows it, and it is infinite.
        is_too_stale: Whether that is more than the replica's ``max_staleness_seconds``.
        refuses: Whether runs that begin now are refused for it.
        last_error: What the last look failed of; empty when it did not.
        looks: How often it looked at the store.
        failed_looks: How many of these failed.
        refreshes: How often it took up another version.
        hints: How often the store called for a look.
        is_listening: Whether it hears such hints; without them it finds what is new at its next
            look.
    """

    state: ReplicaState
    version: int
    staleness_seconds: float
    is_too_stale: bool = False
    refuses: bool = False
    last_error: str = ""
    looks: int = 0
    failed_looks: int = 0
    refreshes: int = 0
    hints: int = 0
    is_listening: bool = False

    @property
    def summary(self) -> str:
        """The state in words that anybody may read: no address, no name of a file.

        Example:
            >>> ReplicaStatus(state="away", version=7, staleness_seconds=12.3).summary
            'the store is away; library version 7 was the newest 12 s ago'
        """
        words = {
            "current": "library version {} is the newest",
            "behind": "the newest library can not be taken up; version {} was the newest",
            "away": "the store is away; library version {} was the newest",
        }
        told = words[self.state].format(self.version)
        if self.state == "current":
            return told
        if math.isinf(self.staleness_seconds):
            return f"{told} when it was kept in a file"
        return f"{told} {self.staleness_seconds:.0f} s ago"


TakeUp: TypeAlias = Callable[[Library], None]
Clock: TypeAlias = Callable[[], float]

logger = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 10.0
"""Most time between two looks for a store that is away, unless ``refresh_seconds`` is longer."""

_LONGEST_WAIT_SECONDS = 0.25
"""How long a wait for a hint may keep the thread from ending."""


FORMAT_VERSION = 1
"""Version of the file's shape."""

_SEAL = ',"seal":"'
"""Begins the last member of the file, which covers all that stands before it."""


def write_copy(path: Path, library: Library) -> None:
    """Put a library into a file, whole or not at all.

    Raises:
        OSError: The file can not be written; the one that was there is as it was.
    """
    record = {
        "format": FORMAT_VERSION,
        "version": library.version,
        "digest": library.digest,
        "tools": [definition.to_json() for definition in library.definitions],
    }
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "w", encoding="utf-8", opener=for_owner) as file:
            content = json.dumps(record, separators=(",", ":"))
            file.write(f'{content[:-1]}{_SEAL}{_seal_of(content[:-1], path)}"}}')
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def read_copy(path: Path) -> Library | None:
    """The library of a file; None when there is no file.

    Raises:
        StoreFormatError: The file is damaged, no copy, or written by a newer agentkit.
    """
    try:
        content = path.read_text(encoding="utf-8")
        record = read_json(content)
        _check_format(record, path)
        library = Library(map(ToolDefinition.from_json, record["tools"]), version=record["version"])
        whole = type(library.version) is int and library.digest == record["digest"]
    except FileNotFoundError:
        return None
    except StoreFormatError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, AgentKitError) as error:
        raise StoreFormatError(
            f"{path} is no copy of a library ({type(error).__name__}: {error}); delete it, and a "
            "replica that reaches its store writes it anew"
        ) from error
    if not whole:
        raise StoreFormatError(
            f"{path} is not as it was written: its tools have another digest; delete it, and a "
            "replica that reaches its store writes it anew"
        )
    begun, _, found = content.rpartition(_SEAL)
    if not compare_digest(found.encode(), f'{_seal_of(begun, path)}"}}'.encode()):
        raise StoreFormatError(
            f"{path} was not written here by programs of this user, or was changed (its seal is "
            "another); delete it, and a replica that reaches its store writes it anew. Where homes "
            "do not last, set AGENTKIT_CACHE to a folder that does"
        )
    return library


def _seal_of(content: str, path: Path) -> str:
    return seal(content.encode(), f"kept copy {path.absolute()}").hex()


def _check_format(record: Any, path: Path) -> None:
    form = record["format"]
    if type(form) is not int or form < 1:
        raise TypeError(f"its format is {form!r}")
    if form > FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} has format {form}, this agentkit reads up to {FORMAT_VERSION}; upgrade "
            "agentkit-evolve, or delete the file"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known. Another one takes its place in one step, so that nobody sees half of it.

    Attributes:
        library: The snapshot that is served.
        at: When it was known to be the newest, by a clock that nobody sets.
        state: How things stand.
        error: What the last look failed of, in words: an exception would keep alive who met it.
            Empty when it did not fail.
        error_kind: The name of that exception.
        looks: How often the store was looked at.
        failed: How many looks failed.
        failed_last: How many of these came one after the other, up to now.
        refreshes: How often another version was taken up.
    """

    library: Library
    at: float
    state: ReplicaState = "current"
    error: str = ""
    error_kind: str = ""
    looks: int = 0
    failed: int = 0
    failed_last: int = 0
    refreshes: int = 0


class _Subscriber:
    """One who is handed each newer snapshot, in ascending order.

    Args:
        take_up: Gives what is called with a snapshot; None when nobody is there any more.
        version: Of the last snapshot that was handed on.
    """

    def __init__(self, take_up: Callable[[], TakeUp | None], version: int = -1) -> None:
        self.get = take_up
        self.version = version
        self._lock = threading.Lock()

    def hand(self, library: Library) -> bool:
        """Hand on a snapshot if it is newer; False when nobody is there any more."""
        take_up = self.get()
        if take_up is None:
            return False
        with self._lock:
            if library.version > self.version:
                take_up(library)
                self.version = library.version
        return True


class StoreFollower:
    """Follows a store from one process, in a thread; any thread may look too.

    Looks take turns, reading what is known does not wait. The thread looks every
    ``refresh_seconds``, and at once when the store gives a hint.

    Args:
        store: The store, or its URL, which is opened when it can be reached.
        older: Holds the snapshots of older versions.
        kept_copy: Where the newest library is kept beyond this process; None for nowhere.
        clock: Seconds of a clock that never goes backwards.
        refresh_seconds: Time between two looks.
        hints: Whether to listen to the store.
    """

    def __init__(
        self,
        store: Store | str,
        *,
        older: RecentVersions,
        kept_copy: Path | None,
        clock: Clock,
        refresh_seconds: float,
        hints: bool,
    ) -> None:
        self.process = os.getpid()
        self.known = Known(library=Library(), at=-math.inf)
        self.older = older
        self.last_event: int | None = None
        """The last event that is known of; None while nobody has asked for events."""
        self.hints_heard = 0
        self._given = store
        self._opening = threading.Lock()
        self._store = None if isinstance(store, str) else store
        self._closed = False
        self._subscribers: list[_Subscriber] = []
        self._kept_copy = kept_copy
        self._clock = clock
        self._looking = threading.Lock()
        self._loaded: Library | None = None
        self._asks_versions = False
        self._copied: Library | None = None
        self._refresh_seconds = refresh_seconds
        self._hints = hints
        self._watch: Watch | None = None
        self._is_deaf = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agentkit-replica", daemon=True)

    def in_fork(self) -> StoreFollower:
        """The same for this process, which was forked: with a thread and locks of its own.

        A connection is not carried across. A store that was given open stays the one that it is,
        and says itself if it can not go on; so does one in memory, of which the fork has a copy.
        """
        follower = StoreFollower(
            self._store if isinstance(self._store, MemoryStore) else self._given,
            older=self.older,
            kept_copy=self._kept_copy,
            clock=self._clock,
            refresh_seconds=self._refresh_seconds,
            hints=self._hints,
        )
        follower.known = self.known
        follower.last_event = self.last_event
        follower._subscribers = [_Subscriber(one.get, one.version) for one in self._subscribers]
        return follower

    # The store.

    def store(self) -> Store:
        """The store, open.

        Raises:
            StoreUnavailableError: It can not be reached now.
            StoreError: The replica is closed.
            AgentKitError: As ``open_store`` says.
        """
        store = self._store
        if store is not None:
            return store
        with self._opening:
            self.check_open()
            if self._store is None:
                self._store = open_store(str(self._given))
            return self._store

    def check_open(self) -> None:
        """Say so where the replica is closed.

        Raises:
            StoreError: It is.
        """
        if self._closed:
            raise StoreError("this replica is closed; make a new one")

    def close(self) -> None:
        """Close the store, if it is open."""
        with self._opening:
            self._closed = True
            if self._store is not None:
                self._store.close()

    # Looking.

    def begin(self) -> None:
        """Look for the first time, or begin with the kept copy where the store is away.

        Raises:
            Exception: What the look failed of, where there is no copy.
        """
        began = self._clock()
        error = _failure_of(self._look_for_library)
        kept = self._read_copy() if isinstance(error, StoreUnavailableError) else None
        if error is not None and kept is None:
            raise error
        before = self.known if kept is None else replace(self.known, library=kept)
        self.known = replace(_after(before, error, began), refreshes=0)
        _tell(before, self.known, seconds=0.0)
        self._keep_copy()

    def look(self) -> Exception | None:
        """Look at the store now, and take up what is new.

        Returns:
            What it failed of; None when this is the newest library.
        """
        with self._looking:
            before, began = self.known, self._clock()
            # A pin comes by events, and reaches us whatever the library is.
            error = _failure_of(self._look_for_events)
            if error is None or _answered(error):
                error = _failure_of(self._look_for_library) or error
            after = _after(self.known, error, began)
            _tell(before, after, seconds=began - before.at)
            self.known = after
            self._keep_copy()
        return error

    def saw_events(self, events: Sequence[LibraryEvent], *, after: int) -> None:
        """Remember how far the chain goes; from the first time on, looks ask for later events."""
        end = events[-1].sequence if events else after
        self.last_event = max(self.last_event or 0, end)

    def subscribe(self, take_up: TakeUp) -> None:
        """Hand on the snapshot that is there and each later one. A method is not kept alive."""
        held = weakref.WeakMethod(take_up) if ismethod(take_up) else lambda: take_up
        subscriber = _Subscriber(held)
        self._subscribers.append(subscriber)  # first: one that comes meanwhile is not missed
        subscriber.hand(self.known.library)

    def _look_for_events(self) -> None:
        if self.last_event is not None:
            events = self.store().events(after=self.last_event)
            self.saw_events(events, after=self.last_event)

    def _look_for_library(self) -> None:
        newest, known = self._newest(), self.known.library
        if newest.version < known.version:
            raise StoreFormatError(
                f"the store is at library version {newest.version} and was at {known.version} "
                "before: an older copy is in its place, or answers for it. Version "
                f"{known.version} is served on; a new start takes up the older one"
            )
        if newest.version > known.version:
            ready = newest.continuing(known).caught_up()
            self.older.put(known)
            self.known = replace(self.known, library=ready, refreshes=self.known.refreshes + 1)
        self._hand_on(self.known.library)

    def _hand_on(self, library: Library) -> None:
        """Hand a snapshot to all; those that failed are asked again the next time."""
        failed: list[Exception] = []
        for subscriber in tuple(self._subscribers):
            try:
                if not subscriber.hand(library):
                    self._subscribers.remove(subscriber)
            except Exception as error:  # noqa: BLE001 - raised below
                failed.append(error)
        if failed:
            raise failed[0]

    def _newest(self) -> Library:
        """The newest snapshot, by the question that costs the store less."""
        store, known = self.store(), self.known.library
        if isinstance(store, Confirming):
            return store.refresh()
        if self._asks_versions and max(store.versions(), default=0) == known.version:
            return known
        newest, before = store.load(), self._loaded
        # Most stores keep their newest snapshot; one that makes it anew is asked for less.
        if before is not None and before.version == newest.version and before is not newest:
            self._asks_versions = True
        self._loaded = newest
        return newest

    def _read_copy(self) -> Library | None:
        copy = None if self._kept_copy is None else read_copy(self._kept_copy)
        if copy is None and isinstance(store := self.store(), Confirming):
            return store.load()  # it keeps copies of its own
        return copy

    def _keep_copy(self) -> None:
        library = self.known.library
        if self._kept_copy is None or self._copied is library:
            return
        self._copied = library  # one try for each version, so that a full disk is said once
        try:
            write_copy(self._kept_copy, library)
        except OSError:
            logger.exception(
                "library version %d is not kept in %s; a start while the store is away would "
                "begin with an older one",
                library.version,
                self._kept_copy,
            )

    # The thread.

    @property
    def is_listening(self) -> bool:
        """Whether hints of the store are heard now."""
        return self._watch is not None and not self._is_deaf

    def start(self) -> None:
        """Begin, in a thread that does not keep the program from ending."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """End after what is being done; nobody waits for it."""
        self._stopping.set()

    def stop(self) -> None:
        """End, and wait for it. A store that hangs is not waited for longer than it may take."""
        self._stopping.set()
        watch = self._watch
        if watch is not None:
            watch.close()  # which ends a wait
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(8 * _LONGEST_WAIT_SECONDS)

    def _run(self) -> None:
        try:
            self._listen()
            while not self._stopping.is_set():
                self.look()
                failed = self.known.failed_last
                pause = pause_after(failed, refresh_seconds=self._refresh_seconds)
                self.hints_heard += self._heard_within(pause)
        finally:
            if self._watch is not None:
                self._watch.close()

    def _heard_within(self, seconds: float) -> bool:
        """Wait for the next look; True when a hint ended the wait."""
        until = time.monotonic() + seconds
        if self._watch is None or self._is_deaf or self.known.failed_last:
            self._stopping.wait(seconds)
            self._listen()
            return False
        while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
            try:
                if self._watch.wait(min(left, _LONGEST_WAIT_SECONDS)):
                    return True
            except Exception as error:  # noqa: BLE001 - whatever a driver raises, looks go on
                if not self._stopping.is_set():  # else the wait was ended
                    self._hear_nothing(error)
                return False  # what was to be heard may be lost, so look at once
        return False

    def _listen(self) -> None:
        """Begin to listen, or try to hear again; where that fails, looks find what is new."""
        if not self._hints or self._stopping.is_set():
            return
        try:
            if self._watch is None:
                store = self.store()
                self._watch = store.watch() if isinstance(store, Watchable) else None
            self._is_deaf = False
        except Exception as error:  # noqa: BLE001 - it is logged, and looks find what is new
            self._hear_nothing(error)

    def _hear_nothing(self, error: Exception) -> None:
        if not self._is_deaf:
            logger.info(
                "no hint of the store is heard (%s: %s); it is looked at every %g s",
                type(error).__name__,
                error,
                self._refresh_seconds,
            )
        self._is_deaf = True


def _failure_of(step: Callable[[], None]) -> Exception | None:
    """What a step raised: whatever that is, the snapshot that is there is served on."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - it is logged, counted and shown in the status
        return error
    return None


def _answered(error: Exception) -> bool:
    """Whether the store is there, and what it holds is the trouble."""
    return isinstance(error, StoreFormatError) or not isinstance(error, StoreError | OSError)


def _after(known: Known, error: Exception | None, began: float) -> Known:
    """What is known after a look that began then."""
    looks = known.looks + 1
    if error is None:
        return replace(
            known,
            at=began,
            state="current",
            error="",
            error_kind="",
            looks=looks,
            failed_last=0,
        )
    kind = type(error).__name__
    return replace(
        known,
        state="behind" if _answered(error) else "away",
        error=f"{kind}: {error}",
        error_kind=kind,
        looks=looks,
        failed=known.failed + 1,
        failed_last=known.failed_last + 1,
    )


def _tell(before: Known, now: Known, *, seconds: float) -> None:
    """Say in the log what changed; what stays as it is was said before."""
    version = now.library.version
    if now.state == "current":
        if before.state != "current":
            logger.warning(
                "the store is back; library version %d is the newest (%.1f s without knowing)",
                version,
                seconds,
            )
        return
    if (now.state, now.error_kind) == (before.state, before.error_kind):
        return
    if now.state == "away":
        words = "the store is away; library version %d is served on (%s)"
    else:
        words = "the newest library can not be taken up; version %d is served on (%s)"
    logger.warning(words, version, now.error)


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


class Replica:
    """A store whose newest library is always at hand, however far or unwell the store is.

    A thread looks at the store every ``refresh_seconds``, and at once when the store gives a hint
    (``Watchable``). ``load()`` gives the snapshot that is there and waits for nobody. While the
    store is away the last one is served, the ``status`` and the log say so, and the thread finds
    the store again by itself.

    What is written goes to the store: a commit is seen here before it returns, and an error is the
    caller's. Episodes, events and histories are read from the store.

    Args:
        store: A store, or its URL. A store that was given is used and closed like one's own.
        refresh_seconds: Time between two looks; a new version is here after it at the latest.
        max_staleness_seconds: How long the library may be served without knowing whether it is the
            newest; None for any time.
        when_stale: What becomes of runs that begin beyond that: ``serve`` them and say so, or
            ``refuse`` them.
        hints: Whether to listen to the store.
        most_versions: How many older versions are held for conversations that began on them.
        kept_copy: A file in which the newest library is kept, so that a program can begin while
            its store is away.
        clock: Seconds of a clock that never goes backwards.

    Raises:
        StoreUnavailableError: The store is away, and there is no kept copy to begin from.
        StoreFormatError: What the store or the copy holds can not be read.
        UsageError: A number is out of range.

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
        max_staleness_seconds: float | None = None,
        when_stale: WhenStale = "serve",
        hints: bool = True,
        most_versions: int = MOST_VERSIONS,
        kept_copy: str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check(refresh_seconds, max_staleness_seconds, most_versions)
        if when_stale not in get_args(WhenStale):
            raise UsageError(f"when_stale is 'serve' or 'refuse'; got {when_stale!r}")
        self.refresh_seconds = refresh_seconds
        self.max_staleness_seconds = max_staleness_seconds
        self.when_stale = when_stale
        self._clock = clock
        follower = StoreFollower(
            store,
            older=RecentVersions(most=most_versions),
            kept_copy=None if kept_copy is None else Path(kept_copy),
            clock=clock,
            refresh_seconds=refresh_seconds,
            hints=hints,
        )
        follower.begin()
        self._followers = {follower.process: follower}
        self._start(follower)

    def __repr__(self) -> str:
        known = self._here.known
        return f"Replica({known.library!r}, {known.state})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def store(self) -> Store:
        """The store itself, for what it can do beyond the seam.

        Raises:
            StoreUnavailableError: It was not reached yet.
        """
        return self._here.store()

    @property
    def status(self) -> ReplicaStatus:
        """How it stands now. It costs no look at the store."""
        here = self._here
        known = here.known
        staleness = self._since(known)
        bound = self.max_staleness_seconds
        is_too_stale = bound is not None and staleness > bound
        return ReplicaStatus(
            state=known.state,
            version=known.library.version,
            staleness_seconds=staleness,
            is_too_stale=is_too_stale,
            refuses=is_too_stale and self.when_stale == "refuse",
            last_error=known.error,
            looks=known.looks,
            failed_looks=known.failed,
            refreshes=known.refreshes,
            hints=here.hints_heard,
            is_listening=here.is_listening,
        )

    @property
    def staleness_seconds(self) -> float:
        """Time since the library, and the events if they are followed, were known to be all."""
        return self._since(self._here.known)

    @property
    def last_event(self) -> int | None:
        """The last event that is known of; None while nobody has read events from here."""
        return self._here.last_event

    def check_staleness(self) -> None:
        """Refuse a run that is to begin, where that was asked for.

        Raises:
            StoreUnavailableError: The library is staler than it may be.
        """
        if self.max_staleness_seconds is None or self.when_stale == "serve":
            self._here  # noqa: B018 - a fork begins to follow by itself
            return
        status = self.status
        if status.refuses:
            failed = f"the last look failed: {status.last_error}"
            raise StoreUnavailableError(
                f"library version {status.version} was known to be the newest "
                f"{status.staleness_seconds:.0f} s ago, more than the "
                f"{self.max_staleness_seconds:g} s that are allowed, so no run begins; "
                f"{failed if status.last_error else 'nobody has looked since'}"
            )

    def follow(self, take_up: Callable[[Library], None]) -> None:
        """Hand on the snapshot that is there and each later one, in ascending order.

        Args:
            take_up: Called in the thread that found the snapshot. A method is not kept alive. What
                it raises counts as a failed look, and it is asked again at the next one.
        """
        follower = self._here
        follower.subscribe(take_up)

    def refresh(self) -> Library:
        """Look at the store now, and return what is the newest library.

        Raises:
            StoreError: The look failed; the last snapshot is served on.
        """
        follower = self._here
        error = follower.look()
        if error is not None:
            raise error
        return follower.known.library

    def load(self, version: int | None = None) -> Library:
        """The newest snapshot that is known, without asking the store; or that of ``version``.

        Raises:
            StoreUnavailableError: That version is not held here, and the store is away.
            StoreError: There is no such version.
        """
        follower = self._here
        newest = follower.known.library
        if version is None or version == newest.version:
            follower.check_open()
            return newest
        held = follower.older.get(version)
        if held is None:
            held = _read(follower, version)
            follower.older.put(held)
        return held

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change`` to the store; it is seen here before this returns."""
        follower = self._here
        try:
            version = follower.store().commit(change, expected_version=expected_version)
        except StaleVersionError:
            follower.look()  # whoever builds the change anew needs what came before it
            raise
        follower.look()
        return version

    def versions(self) -> Sequence[int]:
        """All versions of the store in ascending order."""
        return self.store.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        return self.store.history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind ``after``, ascending."""
        return self.store.changes(after=after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``; from now on the thread looks for later ones too."""
        follower = self._here
        events = follower.store().events(after=after)
        follower.saw_events(events, after=after)
        return events

    def append(self, episode: Episode) -> None:
        """Keep one episode in the store."""
        self.store.append(episode)

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several; one by one where the store can not do better."""
        append_all(self.store, episodes)

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        return self.store.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes of the store that match."""
        return self.store.select(matching)

    def stop(self) -> None:
        """End the thread; what is there stays, and the store stays open."""
        self._here.stop()

    def close(self) -> None:
        """End the thread and close the store. A second call does nothing."""
        self.stop()
        self._here.close()

    def _since(self, known: Known) -> float:
        return max(0.0, self._clock() - known.at)

    @property
    def _here(self) -> StoreFollower:
        """What follows the store in this process, which may be a fork of the one that began."""
        return self._followers.get(os.getpid()) or self._follow_in_fork()

    def _follow_in_fork(self) -> StoreFollower:
        """A fork has no thread, and locks that nobody opens: it follows the store on its own."""
        made = next(reversed(self._followers.values())).in_fork()
        follower = self._followers.setdefault(made.process, made)
        if follower is made:  # of several threads one begins
            self._start(made)
        return follower

    def _start(self, follower: StoreFollower) -> None:
        weakref.finalize(self, follower.ask_to_stop).atexit = False
        follower.start()


def replica_of(store: object) -> Replica | None:
    """The replica that a store is, or whose definitions it has with episodes of elsewhere.

    Example:
        >>> print(replica_of("memory:"))
        None
    """
    tools = getattr(store, "tools", store)  # as ``with_episodes`` makes it
    return tools if isinstance(tools, Replica) else None


def _read(follower: StoreFollower, version: int) -> Library:
    """An older version from the store, or why there is none."""
    try:
        return follower.store().load(version)
    except StoreUnavailableError as error:
        held = ", ".join(map(str, (*follower.older.versions, follower.known.library.version)))
        raise StoreUnavailableError(
            f"library version {version} is not among those that this process holds ({held}), and "
            f"the store can not be asked now: {error}"
        ) from error


def _check(refresh_seconds: float, max_staleness_seconds: float | None, most: int) -> None:
    if not 0 < refresh_seconds < math.inf:
        raise UsageError(f"refresh_seconds is a time between two looks; got {refresh_seconds!r}")
    if max_staleness_seconds is not None and not max_staleness_seconds > refresh_seconds:
        raise UsageError(
            f"max_staleness_seconds={max_staleness_seconds!r} would be over between two looks; "
            f"it is more than refresh_seconds={refresh_seconds!r}, or None for no bound"
        )
    if most < 0:
        raise UsageError(f"most_versions is a number of versions, 0 or more; got {most!r}")
