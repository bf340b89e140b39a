"""The seam to persistence: the protocols ``ToolStore`` and ``EpisodeStore``.

Stores are synchronous: a run reads one snapshot, and only one place writes. An async caller
moves a store call to a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from agentkit.episodes import Episode
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryChange:
    """One atomic step from a library version to the next.

    Attributes:
        proposal_id: Identifies the change; a store applies each id exactly once, and answers a
            repeated one with the version that it made the first time.
        upserts: Definitions to add, or to put in the place of those of the same name.
        removals: Names to remove.
        author: Who made the change.
        reason: Why, in words.
        evidence: Ids of the episodes behind it.
    """

    proposal_id: str
    upserts: tuple[ToolDefinition, ...] = ()
    removals: tuple[str, ...] = ()
    author: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()


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
    """Keeps definitions and their versions. Five methods; a plugin implements all of them.

    ``agentkit.testing.store_conformance`` holds the tests that every implementation passes.
    """

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version`` (None: the newest). Version 0 is the empty library.

        Raises:
            StoreError: There is no such version.
        """
        ...

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change`` if the store is still at ``expected_version``; all of it or nothing.

        Returns:
            The new version. A ``proposal_id`` that was already applied returns the version that it
            made then, whatever ``expected_version`` says.

        Raises:
            StaleVersionError: Another writer was faster.
            StoreError: The change is empty, or names one tool twice.
            ToolNotFoundError: A removal names a tool that is not there.
        """
        ...

    def versions(self) -> Sequence[int]:
        """All versions in ascending order; empty for a fresh store."""
        ...

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order; empty for a name never seen."""
        ...

    def close(self) -> None:
        """Release what the store holds. A second call does nothing."""
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
class Store(ToolStore, EpisodeStore, Protocol):
    """Both halves in one place, as ``memory:`` and ``sqlite:`` give them."""
