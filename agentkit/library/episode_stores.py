"""A store whose episodes are kept elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.library.capabilities import Pruning
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    EpisodeStore,
    LibraryChange,
    Store,
    ToolRevision,
)

_CAPABILITIES_OF_TOOLS = ("follow", "refresh", "check_staleness")
_CAPABILITIES_OF_EPISODES = ("append_many", "prune", "prunable", "volume")


class SplitStore:
    """A store whose episodes are kept elsewhere; see ``with_episodes``.

    What a part can do beyond the seam, the whole can: it prunes as
    the second one does.

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

    def load(self, version: int | None = None) -> Library:
        """See ``ToolStore.load``."""
        return self.tools.load(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """See ``ToolStore.commit``."""
        return self.tools.commit(change, expected_version=expected_version)

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        return self.tools.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        return self.tools.history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """See ``ToolStore.changes``."""
        return self.tools.changes(after=after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        return self.tools.events(after=after)

    def append(self, episode: Episode) -> None:
        """See ``EpisodeStore.append``."""
        self.episodes.append(episode)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        return self.episodes.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """See ``EpisodeStore.select``."""
        return self.episodes.select(matching)

    def close(self) -> None:
        """Close the episodes, which may have some to write yet, then the rest."""
        try:
            self.episodes.close()
        finally:
            self.tools.close()


def with_episodes(store: Store, *, episodes: EpisodeStore) -> SplitStore:
    """A store with its definitions and events, but with episodes that are kept elsewhere.

    So an agent keeps its episodes through a writer, or reads its library over HTTP and keeps
    episodes in a file of its own. Episodes that ``store`` holds itself are not seen.

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
        UsageError: It can not.
    """
    if not isinstance(store, Pruning):
        raise UsageError(
            f"{type(store).__name__} can not let episodes go: it has no method prune "
            "(agentkit.library.capabilities.Pruning); use the retention of what keeps them"
        )
    return store
