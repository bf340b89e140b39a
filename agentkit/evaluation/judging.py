"""``JudgingStore``: a store that puts a verdict on each episode before it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from agentkit.episodes import Episode, Verdict
from agentkit.library import (
    EpisodeFilter,
    Library,
    LibraryChange,
    LibraryEvent,
    Store,
    ToolRevision,
)


class JudgingStore:
    """Passes everything on to ``store``, and judges the episodes on their way in.

    Episodes are append-only and an agent keeps each one the moment its run ends, also when the
    run is interrupted; so the verdict has to be there by then.

    Args:
        store: Where everything is kept.
        judge: Gives the verdict, or None for an episode that can not be judged.
    """

    def __init__(self, store: Store, judge: Callable[[Episode], Verdict | None]) -> None:
        self._store = store
        self._judge = judge

    def append(self, episode: Episode) -> None:
        """Keep one episode with its verdict."""
        self._store.append(replace(episode, verdict=self._judge(episode)))

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        return self._store.get(episode_id)

    def select(
        self,
        matching: EpisodeFilter = EpisodeFilter(),  # noqa: B008 - immutable
    ) -> Iterator[Episode]:
        """The episodes that match, lazily."""
        return self._store.select(matching)

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``."""
        return self._store.load(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``."""
        return self._store.commit(change, expected_version=expected_version)

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        return self._store.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        return self._store.history(tool_name)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """What was done to the library since the event ``after``, ascending."""
        return self._store.events(after=after)

    def close(self) -> None:
        """Close the store behind it."""
        self._store.close()
