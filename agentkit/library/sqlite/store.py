"""``sqlite:``, the default store: one file that several programs may use at a time."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from agentkit.episodes import Episode
from agentkit.errors import StoreError
from agentkit.library.capabilities import (
    AppliedChange,
    Compacted,
    EpisodeVolume,
    Retention,
    StoreFault,
)
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.sealing import is_sealed, seal
from agentkit.library.sqlite.connection import SQLiteConnection, Tracer
from agentkit.library.sqlite.episodes import EpisodeTables, ExtentTable
from agentkit.library.sqlite.migrations import bring_up_to_date
from agentkit.library.sqlite.tables import EventTable, ToolTables
from agentkit.library.sqlite.upkeep import check_file, compact_file
from agentkit.library.store import EpisodeFilter, LibraryChange, ToolRevision

logger = logging.getLogger(__name__)

_GENERATIONS = 4
"""An entry goes when so many writes passed that did not name it."""

_AT_A_TIME = 500
"""Keys in one statement; SQLite takes a thousand at least."""

_MOST_BYTES = 512 * 1024 * 1024
"""What the table may hold; the index of a million tools is about 300 MB."""

_DAMAGED = (
    "%s: %d index entries are damaged or were written by another user or machine, and are made "
    "anew; tools are not affected"
)

_NEXT = "SELECT coalesce(max(generation), 0) + 1 FROM derived"


class DerivedTable:
    """A ``DerivedCache`` in a SQLite file.

    Each entry is sealed: a file from elsewhere may hold tools that were reviewed and an index that
    finds others, so an index is believed only where this user's programs made it.

    Whatever goes wrong here, the file is locked, read-only, full or damaged, is said in the log
    and costs the time to work things out again.

    Args:
        connection: The file.
    """

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The bytes of those keys that are there and undamaged; of others a warning."""
        found: dict[str, bytes] = {}
        strange = 0
        try:
            for some in _batches(keys):
                marks = ",".join("?" * len(some))
                sql = f"SELECT key, checksum, body FROM derived WHERE key IN ({marks})"  # noqa: S608 - question marks alone
                for key, checksum, body in self._connection.execute(sql, some):
                    if is_sealed(body, checksum, _kind(key)):
                        found[key] = body
                    else:
                        strange += 1
        except StoreError as error:
            logger.info("no index was read, it is made anew: %s", error)
        if strange:
            logger.warning(_DAMAGED, self._connection.path, strange)
        return found

    def put(self, entries: Mapping[str, bytes], *, keep: Collection[str] = ()) -> None:
        """Write entries in one transaction, and drop those that four writes did not name."""
        try:
            with self._connection.transaction():
                self._write(entries, keep)
        except StoreError as error:
            logger.info("the index was not kept for the next start: %s", error)

    def _write(self, entries: Mapping[str, bytes], keep: Collection[str]) -> None:
        ((generation,),) = self._connection.execute(_NEXT)
        self._connection.execute_many(
            "INSERT OR REPLACE INTO derived VALUES (?,?,?,?)",
            [(key, generation, seal(body, _kind(key)), body) for key, body in entries.items()],
        )
        self._connection.execute_many(
            "UPDATE derived SET generation = ? WHERE key = ?",
            [(generation, key) for key in keep if key not in entries],
        )
        oldest = generation - _GENERATIONS + 1
        self._connection.execute("DELETE FROM derived WHERE generation < ?", (oldest,))
        while self._size() > _MOST_BYTES and oldest <= generation:
            oldest += 1
            self._connection.execute("DELETE FROM derived WHERE generation < ?", (oldest,))

    def _size(self) -> int:
        ((total,),) = self._connection.execute("SELECT total(length(body)) FROM derived")
        return int(total)


def _kind(key: str) -> str:
    return f"derived {key}"


def _batches(keys: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while some := list(islice(rest, _AT_A_TIME)):
        yield some


_LOOK_EVERY_SECONDS = 0.02
"""SQLite wakes nobody, so somebody has to ask. Waking for it, more than the look itself, is what an
idle process pays; so not more often than a commit is to be heard soon."""

_HEADS = """
SELECT (SELECT max(version) FROM versions), (SELECT max(sequence) FROM library_events)
"""


class SQLiteWatch:
    """A ``Watch`` of a SQLite file, on a connection of its own. Any thread may close it.

    ``PRAGMA data_version`` changes when another connection has written, that of the same store
    included. Most of what is written are episodes; only news of the library end a wait.

    Args:
        path: The file, which is there.
        timeout_seconds: How long a look may wait for a program that holds the file.
        tracer: Sees every statement.

    Raises:
        StoreError: The file can not be opened.
    """

    def __init__(self, path: Path, *, timeout_seconds: float, tracer: Tracer | None) -> None:
        self._connection = SQLiteConnection(path, timeout_seconds=timeout_seconds, tracer=tracer)
        self._closed = threading.Event()
        self._written = self._data_version()
        self._heads = self._read_heads()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a commit; see ``Watch.wait``."""
        until = time.monotonic() + timeout_seconds
        while not self._hears():
            left = until - time.monotonic()
            if left <= 0:
                return False
            if self._closed.wait(min(left, _LOOK_EVERY_SECONDS)):
                raise StoreError(f"the watch on {self._connection.path} is closed; make a new one")
        return True

    def close(self) -> None:
        """Close its connection. A second call does nothing."""
        self._closed.set()
        self._connection.close()

    def _hears(self) -> bool:
        """Whether the library or its events differ from the last time."""
        written = self._data_version()
        if written == self._written:
            return False
        heads = self._read_heads()
        news = heads != self._heads
        self._written, self._heads = written, heads
        return news

    def _data_version(self) -> int:
        self._connection.check_in_place()
        ((number,),) = self._connection.execute("PRAGMA data_version")
        return int(number)

    def _read_heads(self) -> tuple[int, int]:
        ((version, sequence),) = self._connection.execute(_HEADS)
        return version or 0, sequence or 0


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
