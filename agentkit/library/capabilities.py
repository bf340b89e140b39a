"""What a store may do beyond the seam. Each is asked for where it is used, and none is demanded.

A store has a capability by having its method: ``isinstance(store, Pruning)``. Whoever needs one
says what happens without it; most have a slower way that works with every store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, runtime_checkable

from agentkit.episodes import Episode
from agentkit.errors import EpisodeFormatError, UsageError
from agentkit.library.library import Library
from agentkit.library.store import EpisodeStore


@runtime_checkable
class Confirming(Protocol):
    """A store that loads its last snapshot while it is cut off, and can be asked not to."""

    def refresh(self) -> Library:
        """The newest snapshot, as ``load`` gives it, but only if it is known to be the newest now.

        Raises:
            StoreUnavailableError: It can not be known now.
            StoreError: What was told can not be right; ``load`` gives the last snapshot on.
        """
        ...


@runtime_checkable
class SelfRefreshing(Protocol):
    """A store that looks after its newest snapshot by itself, as a ``Replica`` does."""

    def follow(self, take_up: Callable[[Library], None]) -> None:
        """Hand on the snapshot that is there and each later one, in ascending order."""
        ...

    def refresh(self) -> Library:
        """Look for the newest snapshot now.

        Raises:
            StoreError: The look failed; the last snapshot is served on.
        """
        ...

    def check_staleness(self) -> None:
        """Refuse a run that is to begin on a snapshot that is staler than it may be.

        Raises:
            StoreUnavailableError: It is.
        """
        ...


@runtime_checkable
class BatchAppending(Protocol):
    """A store that keeps many episodes for the price of one flush."""

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes in this order, all of them or none; known ids are ignored."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Retention:
    """Which episodes may go. One that breaks any of the bounds goes, the oldest first.

    Attributes:
        max_age: Time since an episode began (``started_at``; where that is empty, since it was
            kept).
        max_bytes: Of the bodies of all episodes together, as the store holds them.
        max_count: Of episodes.
    """

    max_age: timedelta | None = None
    max_bytes: int | None = None
    max_count: int | None = None

    def __post_init__(self) -> None:
        bounds = (self.max_bytes, self.max_count)
        if any(bound is not None and bound < 0 for bound in bounds) or (
            self.max_age is not None and self.max_age < timedelta()
        ):
            raise UsageError(f"a bound of retention is 0 or more, or None for no bound; got {self}")


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeVolume:
    """How much there is of episodes, or went.

    Attributes:
        count: Of episodes.
        bytes: Of their bodies, as the store holds them.
    """

    count: int
    bytes: int


@runtime_checkable
class Pruning(Protocol):
    """A store that lets old episodes go. Definitions and events never go."""

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete the episodes that break ``retention``, and say how much that was."""
        ...

    def volume(self) -> EpisodeVolume:
        """How much is kept of episodes."""
        ...


@runtime_checkable
class PruningPreview(Protocol):
    """A store that says beforehand what pruning would take."""

    def prunable(self, retention: Retention) -> EpisodeVolume:
        """How much ``Pruning.prune`` would delete now; nothing is deleted."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreFault:
    """Something in a store that is not as it was written.

    Attributes:
        place: Where: a file, a table, a key, a tool's name.
        message: What is wrong there, and what to do.
        is_note: Whether it is worth to know and no damage, such as an edit that waits.
    """

    place: str
    message: str
    is_note: bool = False


UNREADABLE = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What code raises that meets damaged data; a check tells of it as a ``StoreFault``."""


@runtime_checkable
class Checkable(Protocol):
    """A store that knows how to look for damage of its own kind."""

    def check(self) -> Iterator[StoreFault]:
        """Read everything and tell what is damaged; nothing is changed."""
        ...


logger = logging.getLogger(__name__)

Refuse = Callable[[int, Exception], None]
"""Called with the place of an episode that the store will never take, and why."""

_REFUSALS = (EpisodeFormatError, UsageError, ValueError, TypeError)
"""What a store raises about the episode itself; everything else may pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivered:
    """What came of a batch.

    Attributes:
        count: How many of its episodes, from the first on, need no further attempt.
        written: How many of these the store has.
        error: What stopped the rest; None when all of them are done.
    """

    count: int
    written: int
    error: Exception | None = None


def append_all(store: EpisodeStore, episodes: Sequence[Episode]) -> None:
    """Append episodes in one step, or one by one where the store can not do better."""
    if isinstance(store, BatchAppending):
        store.append_many(episodes)
        return
    for episode in episodes:
        store.append(episode)


def deliver(store: EpisodeStore, batch: Sequence[Episode], refuse: Refuse) -> Delivered:
    """Give a batch to the store, in one step where it can and one by one otherwise.

    An episode that the store refuses is passed to ``refuse`` and holds up no other.
    """
    if isinstance(store, BatchAppending):
        try:
            store.append_many(batch)
        except _REFUSALS as error:
            logger.info("a batch was refused, its episodes are tried one by one: %s", error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the episodes are still there
            return Delivered(count=0, written=0, error=error)
        else:
            return Delivered(count=len(batch), written=len(batch))
    return _one_by_one(store, batch, refuse)


def _one_by_one(store: EpisodeStore, batch: Sequence[Episode], refuse: Refuse) -> Delivered:
    written = 0
    for place, episode in enumerate(batch):
        try:
            store.append(episode)
            written += 1
        except _REFUSALS as error:
            try:
                refuse(place, error)
            except OSError as full:
                error.add_note(f"it can not be set aside: {error_text(full)}")
                return Delivered(count=place, written=written, error=error)
        except Exception as error:  # noqa: BLE001 - as above
            return Delivered(count=place, written=written, error=error)
    return Delivered(count=len(batch), written=written)


def error_text(error: Exception) -> str:
    """The error in one line, with its notes."""
    notes = getattr(error, "__notes__", ())
    return "; ".join((f"{type(error).__name__}: {error}", *notes))
