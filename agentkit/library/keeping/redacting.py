"""A store for episodes that changes each one before it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agentkit.episodes import Episode
from agentkit.library.delivery import append_all
from agentkit.library.store import EpisodeFilter, EpisodeStore

_ABILITIES = ("prune", "prunable", "volume")


class RedactingStore:
    """Keeps episodes as ``redact`` returns them; nothing else reaches the store.

    What ``redact`` raises is raised to whoever appends, and the episode is not kept.

    Args:
        store: Where they are kept. Closing this one closes it.
        redact: Gives the episode to keep, such as ``agentkit.episodes.redaction.Redaction``. It
            leaves the id as it is.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit import open_store
        >>> quiet = RedactingStore(open_store("memory:"), lambda one: replace(one, request="-"))
        >>> quiet.append(Episode(episode_id="e1", request="Hi"))
        >>> quiet.get("e1").request
        '-'
    """

    def __init__(self, store: EpisodeStore, redact: Callable[[Episode], Episode]) -> None:
        self._store = store
        self._redact = redact
        for name in _ABILITIES:
            if hasattr(store, name):  # an ability is having the method, so only these are had
                setattr(self, name, getattr(store, name))

    def __repr__(self) -> str:
        return f"RedactingStore({self._store!r})"

    def append(self, episode: Episode) -> None:
        """Keep one episode, redacted."""
        self._store.append(self._redact(episode))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several, redacted; one by one where the store can not do better."""
        append_all(self._store, tuple(map(self._redact, episodes)))

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id as it is kept, or None."""
        return self._store.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, as they are kept."""
        return self._store.select(matching)

    def close(self) -> None:
        """Close the store."""
        self._store.close()
