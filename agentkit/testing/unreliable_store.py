"""``UnreliableStore``: a store whose commits fail as a test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from agentkit.episodes import Episode
from agentkit.errors import StaleVersionError, StoreError
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, LibraryChange, Store, ToolRevision

Fault: TypeAlias = Literal["refused", "unanswered", "late"]
"""``refused``: the store fails and writes nothing. ``unanswered``: it writes all, and its answer is
lost. ``late``: it says that another writer was faster, though none was."""


class UnreliableStore:
    """Wraps a store. Each commit meets the next fault that was given, and works when it is None.

    What is read is always right: that a store does not lie is what its conformance suite shows.

    Args:
        store: Where everything is kept.
        faults: One for each commit to come; commits beyond the last one work.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> store = UnreliableStore(open_store("memory:"), ["unanswered"])
        >>> change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> try:
        ...     store.commit(change, expected_version=0)
        ... except StoreError as error:
        ...     print(error)
        the connection was lost before the store answered
        >>> store.load().version, store.met["unanswered"]
        (1, 1)
    """

    def __init__(self, store: Store, faults: Iterable[Fault | None] = ()) -> None:
        self._store = store
        self._faults = iter(faults)
        self.met: Counter[Fault] = Counter()
        """How often each fault was met."""

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """As the store does, or with the next fault."""
        fault = next(self._faults, None)
        if fault is None:
            return self._store.commit(change, expected_version=expected_version)
        self.met[fault] += 1
        if fault == "late":
            raise StaleVersionError(expected=expected_version, actual=expected_version + 1)
        if fault == "unanswered":
            self._store.commit(change, expected_version=expected_version)
            raise StoreError("the connection was lost before the store answered")
        raise StoreError("the connection was lost before the store got the change")

    def load(self, version: int | None = None) -> Library:
        """See ``ToolStore.load``."""
        return self._store.load(version)

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        return self._store.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        return self._store.history(tool_name)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        return self._store.events(after=after)

    def append(self, episode: Episode) -> None:
        """See ``EpisodeStore.append``."""
        self._store.append(episode)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        return self._store.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """See ``EpisodeStore.select``."""
        return self._store.select(matching)

    def close(self) -> None:
        """See ``ToolStore.close``."""
        self._store.close()
