"""``PostgresStore``: a library and its episodes in a database that a fleet shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.episodes import Episode
from agentkit.library.capabilities import (
    AppliedChange,
    Compacted,
    EpisodeVolume,
    Retention,
    StoreFault,
)
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, LibraryChange, ToolRevision
from agentkit_postgres import retention as keeping
from agentkit_postgres.address import Address
from agentkit_postgres.change_log import read_changes
from agentkit_postgres.checking import check_tables
from agentkit_postgres.compacting import compact_tables
from agentkit_postgres.connection import Connections
from agentkit_postgres.derived_table import DerivedTable
from agentkit_postgres.episode_tables import EpisodeTables
from agentkit_postgres.event_table import EventTable
from agentkit_postgres.opening import make_ready
from agentkit_postgres.search import FoundTool, search_tools
from agentkit_postgres.tool_tables import ToolTables
from agentkit_postgres.watching import PostgresWatch


class PostgresStore:
    """All parts of a store in one schema of a PostgreSQL database.

    Any number of programs and threads may use it at a time. A committed version, and an episode
    that was taken, survive a crash of this program, of the server and of its machine.

    A connection that breaks is replaced, and what was sent is sent once more: a commit is known by
    its ``proposal_id`` and its events, an episode by its id.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``, with what libpq takes as
            parameters, and of ours ``schema``, ``pool_size``, ``timeout`` (seconds to wait for a
            connection and for other writers) and ``statement_timeout`` (seconds a statement).

    Raises:
        UsageError: This is no such URL.
        StoreUnavailableError: The server can not be reached now.
        StoreError: It refuses this user, has no such database, or can not hold a library.
        StoreFormatError: The schema belongs to another program or to a newer agentkit.
    """

    def __init__(self, url: str) -> None:
        self._connections = Connections(Address.parse(url))
        try:
            make_ready(self._connections)
        except BaseException:
            self._connections.close()
            raise
        self._events = EventTable(self._connections)
        self._tools = ToolTables(self._connections, DerivedTable(self._connections))
        self._episodes = EpisodeTables(self._connections)

    def __repr__(self) -> str:
        address = self._connections.address
        return f"PostgresStore({address.shown!r}, schema={address.schema!r})"

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        The newest snapshot is kept: asking again costs one question to the server and gives the
        same object until somebody commits, and then only what changed is read.
        """
        return self._tools.load(version)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``. One question to the server, one flush."""
        return self._tools.commit(change, expected_version=expected_version)

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        return self._tools.versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        return self._tools.history(tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind the version ``after``, ascending; some are read at a time."""
        return read_changes(self._connections, self._tools, after=after)

    def search_tools(self, words: str, *, limit: int = 10) -> Sequence[FoundTool]:
        """Current tools whose name or texts hold any of the words, the best first.

        The database searches, in its index, so that a program which shows a catalogue need not
        load it. Words are matched by their English stems; a word in the name counts most.

        Raises:
            UsageError: The limit is negative.
        """
        return search_tools(self._connections, self._tools, words, limit=limit)

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
        """Keep several episodes in this order, all of them or none; known ids are ignored."""
        self._episodes.append_many(episodes)

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        return self._episodes.get(episode_id)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, of those kept before the call; a page is read at a time.

        Whatever the number of episodes, it holds some hundred of them, and no transaction. The
        oldest first, it waits for those that are just being kept, so that whatever is kept later
        comes behind what it gives.
        """
        return self._episodes.select(matching)

    def volume(self) -> EpisodeVolume:
        """How much is kept of episodes."""
        return keeping.volume(self._connections)

    def prunable(self, retention: Retention) -> EpisodeVolume:
        """How much ``prune`` would delete."""
        return keeping.prunable(self._connections, retention)

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete the episodes that break ``retention``, some at a time; see ``Pruning.prune``.

        Others may read and write meanwhile. The tables do not shrink by it, their room is used
        again.
        """
        return keeping.prune(self._connections, retention)

    def watch(self) -> PostgresWatch:
        """Hears commits by any program within milliseconds, on a connection of its own."""
        return PostgresWatch(self._connections)

    def check(self) -> Iterator[StoreFault]:
        """Read every row and tell what is damaged; see ``Checkable.check``."""
        self._connections.check_usable()
        return check_tables(self._connections)

    def compact(self) -> Compacted:
        """Write each table anew without what was deleted; see ``Compactable.compact``.

        Others wait for a table while it is written, and it takes as much room once more
        meanwhile. It takes the rights of the tables' owner.
        """
        return compact_tables(self._connections)

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        self._connections.close()
