"""``SQLiteStore``: the default store, one file that several programs may use at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentkit.episodes import Episode
from agentkit.library.abilities import (
    AppliedChange,
    Compacted,
    EpisodeVolume,
    Retention,
    StoreFault,
)
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.sqlite.checking import check_file
from agentkit.library.sqlite.compacting import compact_file
from agentkit.library.sqlite.connection import SQLiteConnection, Tracer
from agentkit.library.sqlite.derived_table import DerivedTable
from agentkit.library.sqlite.episode_tables import EpisodeTables
from agentkit.library.sqlite.event_table import EventTable
from agentkit.library.sqlite.extent_table import ExtentTable
from agentkit.library.sqlite.migrations import bring_up_to_date
from agentkit.library.sqlite.tool_tables import ToolTables
from agentkit.library.sqlite.watching import SQLiteWatch
from agentkit.library.store import EpisodeFilter, LibraryChange, ToolRevision


class SQLiteStore:
    """All parts of a store in one SQLite file.

    Definitions are kept by content, so that a version costs what it changed. Two definitions of
    equal digest are one: what JSON does not tell apart (the order of properties, ``1`` and
    ``1.0``) is that of the first. Where a definition came from is kept with each revision.

    Several processes may use one file: reading does not wait for a writer in another one, and
    writers wait for each other for ``timeout_seconds``. The threads of one process take turns.

    A committed version survives a crash of the program and, at the cost of one flush to the
    disk, of the machine; of the episodes, the last ones before a power cut may be lost.

    Args:
        path: The file. It is made when it does not exist; its folder is not.
        timeout_seconds: How long to wait for a writer in another process.
        tracer: Called with the SQL and its parameters before each statement.
        read_only: Refuse to write. A file of an older agentkit is left in its shape: what it holds
            is copied to a temporary file and read from there.

    Raises:
        StoreError: The file can not be opened, or another program holds it.
        StoreFormatError: The file is damaged, no database, another program's, or written by a
            newer agentkit. It is left as it was.

    Example:
        >>> import tempfile
        >>> from agentkit import ToolDefinition
        >>> from agentkit.library import LibraryChange
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = SQLiteStore(Path(folder.name) / "library.db")
        >>> change = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(change, expected_version=0)
        1
        >>> store.load(), store.load(0)
        (Library(1 tools, version=1), Library(0 tools, version=0))
        >>> store.close()
        >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        timeout_seconds: float = 5.0,
        tracer: Tracer | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self._connection = SQLiteConnection(
            self.path, timeout_seconds=timeout_seconds, tracer=tracer, read_only=read_only
        )
        try:
            bring_up_to_date(self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._events = EventTable(self._connection)
        self._tools = ToolTables(self._connection, DerivedTable(self._connection), self._events)
        self._extents = ExtentTable(self._connection)
        self._episodes = EpisodeTables(self._connection, self._extents)

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self.path)!r})"

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        The newest snapshot is kept: asking again costs one look at the file and gives the same
        object until somebody commits, and then only what changed is read.
        """
        return self._tools.load(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``."""
        return self._tools.commit(change, expected_version=expected_version)

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        return self._tools.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        return self._tools.history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind the version ``after``, ascending; some are read at a time."""
        return self._tools.changes(after=after)

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending."""
        return self._events.events(after=after)

    def append(self, episode: Episode) -> None:
        """Keep one episode; one with a known id is ignored.

        Raises:
            EpisodeFormatError: The episode holds a value that JSON can not.
        """
        self._episodes.append_many((episode,))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes in one transaction; see ``BatchAppending.append_many``."""
        self._episodes.append_many(episodes)

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        return self._episodes.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, of those kept before the call; a page is read at a time."""
        return self._episodes.select(matching)

    def volume(self) -> EpisodeVolume:
        """How much is kept of episodes. The first call on a file of an older agentkit reads all."""
        return self._extents.volume()

    def prunable(self, retention: Retention) -> EpisodeVolume:
        """How much ``prune`` would delete."""
        return self._extents.prunable(retention)

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete the episodes that break ``retention``, some at a time; see ``Pruning.prune``.

        Others may write meanwhile. The file does not shrink by it, its room is used again.
        """
        return self._extents.prune(retention)

    def watch(self) -> SQLiteWatch:
        """Hears commits by any program within milliseconds; see ``Watchable.watch``."""
        connection = self._connection
        connection.raw  # noqa: B018 - says so where the store is closed
        return SQLiteWatch(
            self.path, timeout_seconds=connection.timeout_seconds, tracer=connection.tracer
        )

    def check(self) -> Iterator[StoreFault]:
        """Look at the file, its tables and every row of them; see ``Checkable.check``."""
        return check_file(self._connection)

    def compact(self) -> Compacted:
        """Write the file anew without what nobody needs; see ``Compactable.compact``.

        Others may read meanwhile, and writers wait. It takes as much free room on the disk as the
        file has, once more for a temporary file.
        """
        return compact_file(self._connection)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._connection.close()
