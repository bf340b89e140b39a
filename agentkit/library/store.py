"""The seam to persistence: the protocols ``ToolStore``, ``EventStore`` and ``EpisodeStore``.

Stores are synchronous: a run reads one snapshot, and only one place writes. An async caller
moves a store call to a thread.

What a store may do beyond them is a capability (``BatchAppending``, ``Pruning``, ``Checkable``),
which it has by having its methods: ``isinstance(store, Pruning)``. None is demanded; most callers
have a slower way that works with every store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from agentkit.episodes import Episode
from agentkit.errors import EpisodeFormatError, UsageError
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:  # agents load this module, and most never see an event
    from agentkit.library.events import LibraryEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryChange:
    """One atomic step from a library version to the next, with the events that tell of it.

    A change with events alone makes no version: it only adds to the chain.

    Attributes:
        proposal_id: Identifies the change; a store applies each id that made a version exactly
            once, and answers a repeated one with the version that it made the first time.
        upserts: Definitions to add, or to put in the place of those of the same name.
        removals: Names to remove.
        author: Who made the change.
        reason: Why, in words.
        evidence: Ids of the episodes behind it.
        events: What is to be remembered of it, chained to the last event that the store holds;
            see ``agentkit.library.events.chained``.
        created_at: When it was made, as ISO 8601 in UTC, for a change that is copied from another
            store; empty for a new one, of which the store notes its own time.
    """

    proposal_id: str
    upserts: tuple[ToolDefinition, ...] = ()
    removals: tuple[str, ...] = ()
    author: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    events: tuple[LibraryEvent, ...] = ()
    created_at: str = ""

    @property
    def makes_version(self) -> bool:
        """Whether the library differs afterwards; otherwise there are only events to keep."""
        return bool(self.upserts or self.removals)


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedChange:
    """A change that made a version.

    Attributes:
        version: The version that it made.
        change: What was asked for, with the time at which the store noted it; without its events,
            which ``EventStore.events`` gives.
    """

    version: int
    change: LibraryChange


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRevision:
    """One entry in a tool's history.

    Attributes:
        version: The library version that made it.
        definition: The definition from then on; None when the tool was removed.
        proposal_id: The change that made it.
        author: Who made the change.
        reason: Why, in words.
        evidence: Ids of the episodes behind it.
        created_at: ISO 8601 time in UTC.
    """

    version: int
    definition: ToolDefinition | None
    proposal_id: str
    author: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    created_at: str = ""


@runtime_checkable
class ToolStore(Protocol):
    """Keeps definitions and their versions. Six methods; a plugin implements all of them.

    ``agentkit.testing.conformance`` holds the tests that every implementation passes.
    """

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version`` (None: the newest). Version 0 is the empty library.

        Raises:
            StoreError: There is no such version.
        """
        ...

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change`` if the store is still at ``expected_version``; all of it or nothing.

        Definitions and events are written together. The events must follow the last one that the
        store holds.

        A writer that got no answer, because it or the store died, sends the same change again.
        One that makes a version is known by its ``proposal_id``: the version that it made then is
        returned, whatever ``expected_version`` and the events say, and nothing is written. One of
        events alone is known by them: each holds the hash of the one before, so that two equal
        ones cannot both be new. When they stand in the chain already, the newest version is
        returned and nothing is written. A writer that died for good and rebuilds its events,
        with another time, gets a ``StaleChainError`` where it remembers the old end of the chain;
        where it reads the chain first, what it was about to tell stands there already, and it is
        for the writer to see that.

        Returns:
            The new version; for a change of events alone the newest one.

        Raises:
            StaleVersionError: Another writer was faster; ``StaleChainError`` when the library
                stands where it was expected and the chain of events does not.
            StoreError: The change is empty, names one tool twice, or its events are not a chain.
            ToolNotFoundError: A removal names a tool that is not there.
        """
        ...

    def versions(self) -> Sequence[int]:
        """All versions in ascending order; empty for a fresh store."""
        ...

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order; empty for a name never seen."""
        ...

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes that made the versions behind ``after``, ascending, lazily.

        Committing them into an empty store, in this order, gives the same library at every
        version: same tools, same order, same digests.
        """
        ...

    def close(self) -> None:
        """Release what the store holds. A second call does nothing."""
        ...


@runtime_checkable
class EventStore(Protocol):
    """Keeps what was done to the library, by whom and why. ``ToolStore.commit`` appends to it.

    ``agentkit.library.chain.verify_chain`` tells whether anybody changed it since.
    """

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events whose ``sequence`` is greater than ``after``, ascending.

        Raises:
            StoreFormatError: The store holds something there that is not an event.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeFilter:
    """Which episodes to read; the default is all, newest first.

    Attributes:
        session_id: Only those of this conversation.
        tool_name: Only those that called this tool.
        stop_reason: Only those that ended so.
        labels: Only those whose metadata holds all of these. No index serves this one.
        limit: At most this many; None for all.
        oldest_first: Order by time of creation instead of newest first.
    """

    session_id: str | None = None
    tool_name: str | None = None
    stop_reason: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    oldest_first: bool = False


@runtime_checkable
class EpisodeStore(Protocol):
    """Keeps episodes. Append-only."""

    def append(self, episode: Episode) -> None:
        """Keep one episode; one with a known id is ignored, so a retry is safe."""
        ...

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        ...

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:
        """The episodes that match, lazily."""
        ...

    def close(self) -> None:
        """Release what the store holds. A second call does nothing."""
        ...


@runtime_checkable
class Store(ToolStore, EventStore, EpisodeStore, Protocol):
    """All three in one place, as ``memory:`` and ``sqlite:`` give them."""


@runtime_checkable
class SelfRefreshing(Protocol):
    """A store that refreshes its newest snapshot itself, as a ``Replica`` does."""

    def follow(self, take_up: Callable[[Library], None]) -> None:
        """Hand on the snapshot that is there and each later one, in ascending order."""
        ...

    def refresh(self) -> Library:
        """Look for the newest snapshot now.

        Raises:
            StoreError: The look failed; the last snapshot is served on.
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
        max_count: Maximum number of episodes.
    """

    max_age: timedelta | None = None
    max_count: int | None = None

    def __post_init__(self) -> None:
        is_negative = self.max_count is not None and self.max_count < 0
        if is_negative or (self.max_age is not None and self.max_age < timedelta()):
            raise UsageError(f"a bound of retention is 0 or more, or None for no bound; got {self}")


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeVolume:
    """The size of stored or deleted episodes.

    Attributes:
        count: Number of episodes.
        bytes: Size of their bodies, as stored.
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
        """The size of the stored episodes."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreFault:
    """Something in a store that is not as it should be.

    Attributes:
        place: Where: a file, a table, a key, a version, an event, a tool's name.
        message: What is wrong there, or what waits.
        advice: What to do, a command where there is one.
        code: What kind of thing it is; ``damage`` for what is not as it was written.
        is_note: Whether it is worth to know and no fault, such as an edit that waits.
    """

    place: str
    message: str
    advice: str = ""
    code: str = "damage"
    is_note: bool = False


@runtime_checkable
class Checkable(Protocol):
    """A store that knows how to look for damage of its own kind."""

    def check(self) -> Iterator[StoreFault]:
        """Read everything and tell what is damaged; nothing is changed."""
        ...


class ForwardingStore(ABC):
    """Hands everything on to the stores that a subclass names."""

    @property
    @abstractmethod
    def _tools(self) -> Store:
        """Keeps definitions and events."""

    @property
    def _episodes(self) -> EpisodeStore:
        """Keeps episodes."""
        return self._tools

    def load(self, version: int | None = None) -> Library:
        """See ``ToolStore.load``."""
        return self._tools.load(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """See ``ToolStore.commit``."""
        return self._tools.commit(change, expected_version=expected_version)

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        return self._tools.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        return self._tools.history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """See ``ToolStore.changes``."""
        return self._tools.changes(after=after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        return self._tools.events(after=after)

    def append(self, episode: Episode) -> None:
        """See ``EpisodeStore.append``."""
        self._episodes.append(episode)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        return self._episodes.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:
        """See ``EpisodeStore.select``."""
        return self._episodes.select(matching)


def pruning(store: object) -> Pruning:
    """The store as one that can let episodes go.

    Raises:
        UsageError: It cannot.
    """
    if not isinstance(store, Pruning):
        raise UsageError(
            f"{type(store).__name__} cannot let episodes go: it has no method prune "
            "(agentkit.library.store.Pruning); use the retention of what keeps them"
        )
    return store


def holds_episode(store: EpisodeStore, episode_id: str) -> bool:
    """Whether a store has an episode of that id, readable or not."""
    try:
        return store.get(episode_id) is not None
    except EpisodeFormatError:
        return True


def append_all(store: EpisodeStore, episodes: Sequence[Episode]) -> None:
    """Append episodes in one step, or one by one where the store cannot do better."""
    if isinstance(store, BatchAppending):
        store.append_many(episodes)
        return
    for episode in episodes:
        store.append(episode)
