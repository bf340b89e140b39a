"""``UnreliableStore``: a store whose commits, and episodes, fail as a test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from agentkit.episodes import Episode
from agentkit.errors import StaleVersionError, StoreUnavailableError
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.replicas import Replica
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    LibraryChange,
    Store,
    ToolRevision,
    append_all,
)

Fault: TypeAlias = Literal["refused", "unanswered", "late"]
"""``refused``: the store fails and writes nothing. ``unanswered``: it writes all, and its answer is
lost. ``late``: it says that another writer was faster, though none was."""


EpisodeFault: TypeAlias = Literal["refused", "unanswered"]
"""The same for what keeps episodes: nothing is written, or all is and the answer is lost."""


class UnreliableStore:
    """Wraps a store. Each commit meets the next fault that was given, and works when it is None.

    What is read is always right: that a store does not lie is what its conformance suite shows.
    Between ``away()`` and ``back()`` nothing can be read or written.

    Args:
        store: Where everything is kept.
        faults: One for each commit to come; commits beyond the last one work.
        episode_faults: The same for each ``append`` and ``append_many``.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> store = UnreliableStore(open_store("memory:"), ["unanswered"])
        >>> change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> try:
        ...     store.commit(change, expected_version=0)
        ... except StoreUnavailableError as error:
        ...     print(error)
        the connection was lost before the store answered
        >>> store.load().version, store.met["unanswered"]
        (1, 1)
    """

    def __init__(
        self,
        store: Store,
        faults: Iterable[Fault | None] = (),
        episode_faults: Iterable[EpisodeFault | None] = (),
    ) -> None:
        self._store = store
        self._faults = iter(faults)
        self._episode_faults = iter(episode_faults)
        self._is_away = False
        self.met: Counter[Fault] = Counter()
        """How often each fault was met."""
        self.refused = 0
        """How often somebody asked while the store was away."""

    def away(self) -> None:
        """Be out of reach from now on: each method but ``close`` raises."""
        self._is_away = True

    def back(self) -> None:
        """Answer again, with everything that was there."""
        self._is_away = False

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """As the store does, or with the next fault."""
        store = self._reached()
        fault = next(self._faults, None)
        if fault is None:
            return store.commit(change, expected_version=expected_version)
        self.met[fault] += 1
        if fault == "late":
            raise StaleVersionError(expected=expected_version, actual=expected_version + 1)
        if fault == "unanswered":
            self._store.commit(change, expected_version=expected_version)
            raise StoreUnavailableError("the connection was lost before the store answered")
        raise StoreUnavailableError("the connection was lost before the store got the change")

    def load(self, version: int | None = None) -> Library:
        """See ``ToolStore.load``."""
        return self._reached().load(version)

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        return self._reached().versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        return self._reached().history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """See ``ToolStore.changes``."""
        return self._reached().changes(after=after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        return self._reached().events(after=after)

    def append(self, episode: Episode) -> None:
        """As the store does, or with the next fault."""
        self.append_many((episode,))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """As the store does, one by one where it cannot do better, or with the next fault."""
        store = self._reached()
        fault = next(self._episode_faults, None)
        if fault is not None:
            self.met[fault] += 1
        if fault == "refused":
            raise StoreUnavailableError("the connection was lost before the store got the episodes")
        append_all(store, episodes)
        if fault == "unanswered":
            raise StoreUnavailableError("the connection was lost before the store answered")

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        return self._reached().get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """See ``EpisodeStore.select``."""
        return self._reached().select(matching)

    def close(self) -> None:
        """See ``ToolStore.close``."""
        self._store.close()

    def _reached(self) -> Store:
        if self._is_away:
            self.refused += 1
            raise StoreUnavailableError("the store is away")
        return self._store


class ReplicaWithEpisodes(Replica):
    """A replica whose episodes lie in another store, which never goes away."""

    def __init__(self, store: Store, episodes: Store, **options: Any) -> None:
        self._kept_in = episodes
        super().__init__(store, **options)

    @property
    def _episodes(self) -> Store:
        return self._kept_in

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several in the other store."""
        append_all(self._kept_in, episodes)
