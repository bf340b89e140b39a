"""``Following``: what one process knows of a store, and how it looks for what is new."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library.abilities import Confirming
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.recent_versions import RecentVersions
from agentkit.library.replicas.followers import Followers
from agentkit.library.replicas.kept_copy import read_copy, write_copy
from agentkit.library.replicas.source import Source
from agentkit.library.replicas.status import ReplicaState

logger = logging.getLogger(__name__)

Clock: TypeAlias = Callable[[], float]


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


class Following:
    """Follows a store from one process. Any thread may look; looks take turns, reading does not.

    Args:
        source: The store.
        older: Holds the snapshots of older versions.
        kept_copy: Where the newest library is kept beyond this process; None for nowhere.
        clock: Seconds of a clock that never goes backwards.
    """

    def __init__(
        self,
        source: Source,
        *,
        older: RecentVersions,
        kept_copy: Path | None,
        clock: Clock,
    ) -> None:
        self.process = os.getpid()
        self.source = source
        self.known = Known(library=Library(), at=-math.inf)
        self.older = older
        self.last_event: int | None = None
        """The last event that is known of; None while nobody has asked for events."""
        self.followers = Followers()
        self._kept_copy = kept_copy
        self._clock = clock
        self._looking = threading.Lock()
        self._loaded: Library | None = None
        self._asks_versions = False
        self._copied: Library | None = None

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

    def in_fork(self) -> Following:
        """The same for this process, which was forked: with locks and a store of its own."""
        following = Following(
            self.source.in_fork(),
            older=self.older,
            kept_copy=self._kept_copy,
            clock=self._clock,
        )
        following.known = self.known
        following.last_event = self.last_event
        following.followers = self.followers.in_fork()
        return following

    def look(self) -> Exception | None:
        """Look at the store now, and take up what is new.

        Returns:
            What it failed of; None when this is the newest library.
        """
        with self._looking:
            before, began = self.known, self._clock()
            error = self._looked()
            after = _after(self.known, error, began)
            _tell(before, after, seconds=began - before.at)
            self.known = after
            self._keep_copy()
        return error

    def saw_events(self, events: Sequence[LibraryEvent], *, after: int) -> None:
        """Remember how far the chain goes; from the first time on, looks ask for later events."""
        end = events[-1].sequence if events else after
        self.last_event = max(self.last_event or 0, end)

    def _looked(self) -> Exception | None:
        """What a look failed of. A pin comes by events and reaches us whatever the library is."""
        error = _failure_of(self._look_for_events)
        if error is None or _answered(error):
            error = _failure_of(self._look_for_library) or error
        return error

    def _look_for_events(self) -> None:
        if self.last_event is not None:
            events = self.source.get().events(after=self.last_event)
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
        self.followers.take_up(self.known.library)

    def _newest(self) -> Library:
        """The newest snapshot, by the question that costs the store less."""
        store, known = self.source.get(), self.known.library
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
        if copy is None and isinstance(store := self.source.get(), Confirming):
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
