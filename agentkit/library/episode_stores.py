"""Stores that hand on to other stores, and what every store of episodes can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentkit.episodes import Episode
from agentkit.errors import EpisodeFormatError, UsageError
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    BatchAppending,
    EpisodeFilter,
    EpisodeStore,
    LibraryChange,
    Pruning,
    Store,
    ToolRevision,
)

if TYPE_CHECKING:
    from agentkit.library.events import LibraryEvent

_CAPABILITIES_OF_TOOLS = ("follow", "refresh", "check_staleness")
_CAPABILITIES_OF_EPISODES = ("append_many", "prune", "prunable", "volume")


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

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """See ``EpisodeStore.select``."""
        return self._episodes.select(matching)


class SplitStore(ForwardingStore):
    """A store whose episodes are kept elsewhere; see ``with_episodes``.

    What a part can do beyond the seam, the whole can: it prunes as the second one does.

    Attributes:
        tools: Keeps definitions and events.
        episodes: Keeps episodes.
    """

    def __init__(self, tools: Store, episodes: EpisodeStore) -> None:
        self.tools = tools
        self.episodes = episodes
        for part, names in ((tools, _CAPABILITIES_OF_TOOLS), (episodes, _CAPABILITIES_OF_EPISODES)):
            for name in names:
                if hasattr(part, name):  # a capability is having the method
                    setattr(self, name, getattr(part, name))

    def __repr__(self) -> str:
        return f"SplitStore({self.tools!r}, episodes={self.episodes!r})"

    @property
    def _tools(self) -> Store:
        return self.tools

    @property
    def _episodes(self) -> EpisodeStore:
        return self.episodes

    def close(self) -> None:
        """Close the episodes, which may have some to write yet, then the rest."""
        try:
            self.episodes.close()
        finally:
            self.tools.close()


def with_episodes(store: Store, *, episodes: EpisodeStore) -> SplitStore:
    """A store with its definitions and events, but with episodes that are kept elsewhere.

    So an agent reads its library over HTTP and keeps episodes in a file of its own. Episodes that
    ``store`` holds itself are not seen.

    Example:
        >>> from agentkit import open_store
        >>> store = with_episodes(open_store("memory:"), episodes=open_store("memory:"))
        >>> store.append(Episode(episode_id="e1", request="Hi"))
        >>> store.tools.get("e1"), store.episodes.get("e1").request
        (None, 'Hi')
        >>> store.close()
    """
    return SplitStore(store, episodes)


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
