"""``Replica``: a store whose newest library is always at hand."""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

from agentkit.episodes import Episode
from agentkit.errors import StaleVersionError, StoreUnavailableError, UsageError
from agentkit.library.delivery import append_all
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.recent_versions import MOST_VERSIONS, RecentVersions
from agentkit.library.replicas.following import Following, Known
from agentkit.library.replicas.loop import RefreshLoop
from agentkit.library.replicas.source import Source
from agentkit.library.replicas.status import ReplicaStatus, WhenStale
from agentkit.library.store import EpisodeFilter, LibraryChange, Store, ToolRevision


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
        following = Following(
            Source(store),
            older=RecentVersions(most=most_versions),
            kept_copy=None if kept_copy is None else Path(kept_copy),
            clock=clock,
        )
        following.begin()
        loop = RefreshLoop(following, refresh_seconds=refresh_seconds, hints=hints)
        self._attached = {following.process: _Attached(following=following, loop=loop)}
        self._begin(self._attached[following.process])

    def __repr__(self) -> str:
        known = self._here.following.known
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
        return self._here.following.source.get()

    @property
    def status(self) -> ReplicaStatus:
        """How it stands now. It costs no look at the store."""
        here = self._here
        known, loop = here.following.known, here.loop
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
            hints=loop.hints_heard,
            is_listening=loop.is_listening,
        )

    @property
    def staleness_seconds(self) -> float:
        """Time since the library, and the events if they are followed, were known to be all."""
        return self._since(self._here.following.known)

    @property
    def last_event(self) -> int | None:
        """The last event that is known of; None while nobody has read events from here."""
        return self._here.following.last_event

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
        following = self._here.following
        following.followers.add(take_up, following.known.library)

    def refresh(self) -> Library:
        """Look at the store now, and return what is the newest library.

        Raises:
            StoreError: The look failed; the last snapshot is served on.
        """
        following = self._here.following
        error = following.look()
        if error is not None:
            raise error
        return following.known.library

    def load(self, version: int | None = None) -> Library:
        """The newest snapshot that is known, without asking the store; or that of ``version``.

        Raises:
            StoreUnavailableError: That version is not held here, and the store is away.
            StoreError: There is no such version.
        """
        following = self._here.following
        newest = following.known.library
        if version is None or version == newest.version:
            following.source.check_open()
            return newest
        held = following.older.get(version)
        if held is None:
            held = _read(following, version)
            following.older.put(held)
        return held

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change`` to the store; it is seen here before this returns."""
        following = self._here.following
        try:
            version = following.source.get().commit(change, expected_version=expected_version)
        except StaleVersionError:
            following.look()  # whoever builds the change anew needs what came before it
            raise
        following.look()
        return version

    def versions(self) -> Sequence[int]:
        """All versions of the store in ascending order."""
        return self.store.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        return self.store.history(tool_name)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``; from now on the thread looks for later ones too."""
        following = self._here.following
        events = following.source.get().events(after=after)
        following.saw_events(events, after=after)
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
        self._here.loop.stop()

    def close(self) -> None:
        """End the thread and close the store. A second call does nothing."""
        self.stop()
        self._here.following.source.close()

    def _since(self, known: Known) -> float:
        return max(0.0, self._clock() - known.at)

    @property
    def _here(self) -> _Attached:
        """What follows the store in this process, which may be a fork of the one that began."""
        attached = self._attached.get(os.getpid())
        return attached or self._attach_fork()

    def _attach_fork(self) -> _Attached:
        """A fork has no thread, and locks that nobody opens: it follows the store on its own."""
        before = next(reversed(self._attached.values()))
        following = before.following.in_fork()
        made = _Attached(following=following, loop=before.loop.in_fork(following))
        attached = self._attached.setdefault(following.process, made)
        if attached is made:  # of several threads one begins
            self._begin(made)
        return attached

    def _begin(self, attached: _Attached) -> None:
        weakref.finalize(self, attached.loop.ask_to_stop).atexit = False
        attached.loop.start()


def replica_of(store: object) -> Replica | None:
    """The replica that a store is, or whose definitions it has with episodes of elsewhere.

    Example:
        >>> print(replica_of("memory:"))
        None
    """
    tools = getattr(store, "tools", store)  # as ``with_episodes`` makes it
    return tools if isinstance(tools, Replica) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attached:
    """What follows the store in one process."""

    following: Following
    loop: RefreshLoop


def _read(following: Following, version: int) -> Library:
    """An older version from the store, or why there is none."""
    try:
        return following.source.get().load(version)
    except StoreUnavailableError as error:
        held = ", ".join(map(str, (*following.older.versions, following.known.library.version)))
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
