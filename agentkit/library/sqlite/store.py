"""``sqlite:``, the default store: one file that several programs may use at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentkit.episodes import Episode
from agentkit.episodes.files import encode_episode
from agentkit.errors import StaleVersionError, StoreFormatError
from agentkit.library.changes import (
    are_held,
    begun_at,
    check_change,
    check_follows,
    missing_tool,
    now,
)
from agentkit.library.events import storable
from agentkit.library.sql_store import SQLStore
from agentkit.library.sqlite.connection import SQLiteConnection, Tracer
from agentkit.library.sqlite.schema import bring_up_to_date, foreign_parts, our_parts
from agentkit.library.store import EpisodeFilter, EpisodeVolume, LibraryChange, StoreFault
from agentkit.tools.definition import ToolDefinition

_MADE_BY = "SELECT version FROM versions WHERE proposal_id = ?"

_LOAD = """
SELECT r.tool_name, r.digest, r.origin, r.since, d.body
FROM (SELECT tool_name, max(version) AS version FROM revisions WHERE version > ? AND version <= ?
      GROUP BY tool_name) AS newest
JOIN revisions AS r ON r.tool_name = newest.tool_name AND r.version = newest.version
LEFT JOIN definitions AS d ON d.digest = r.digest
ORDER BY r.since, r.place
"""
"""The difference between two versions: each tool in the later one, no digest if removed."""

_ROWS = """
SELECT version, tool_name FROM revisions
WHERE version > ?1 AND (
    (version <= ?2 AND (
        typeof(since) <> 'integer' OR typeof(place) <> 'integer' OR since > version
        OR typeof(digest) NOT IN ('text', 'null') OR (digest IS NULL AND since = version)
    ))
    OR version NOT IN (SELECT version FROM versions)
) ORDER BY version LIMIT 1
"""
"""A revision that no commit writes. What a version removes was added by an earlier one."""

_GAP = """SELECT version FROM versions WHERE version > ?1 AND version <= ?2 AND (
    (version > 1 AND version - 1 NOT IN (SELECT version FROM versions))
    OR version NOT IN (SELECT version FROM revisions)) ORDER BY version LIMIT 1"""
"""A version that does not follow the one before, or that changed no tool."""

_CURRENT = "SELECT digest, since, place FROM revisions WHERE tool_name = ? ORDER BY version DESC"
_LAST_EVENT = "SELECT sequence, body FROM library_events ORDER BY sequence DESC LIMIT 1"
_EVENTS_BETWEEN = """SELECT sequence, body FROM library_events
WHERE sequence BETWEEN ? AND ? ORDER BY sequence"""

_INSERT_EPISODE = """INSERT INTO episodes (episode_id, session_id, stop_reason, body)
VALUES (?,?,?,?) ON CONFLICT (episode_id) DO NOTHING"""

_INSERT_EXTENT = "INSERT INTO episode_extents VALUES (?,?,?) ON CONFLICT (sequence) DO NOTHING"

_HAS_LABEL = """CASE WHEN json_valid(body) THEN EXISTS (
    SELECT 1 FROM json_each(body, '$.metadata')
    WHERE key = json_extract(?, '$') AND atom = json_extract(?, '$')) ELSE TRUE END"""
"""Python writes and reads NaN, where SQLite says "malformed JSON" and ends the query. What it can
not read is looked at when it has been decoded."""


class SQLiteStore(SQLStore):
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
        read_only: Refuse to write.

    Raises:
        StoreError: The file cannot be opened, or another program holds it.
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

    events_table = "library_events"
    extents_table = "episode_extents"  # a column behind a body could only be read through it
    begun = "begun"
    page = 64
    pruned_at_a_time = 200  # another writer waits for milliseconds
    longest_pause = 0.1

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
        super().__init__(self.path)

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self.path)!r})"

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``."""
        check_change(change)
        tools = [(tool, *_encoded(tool)) for tool in change.upserts]  # before the file is locked
        events = [(event.sequence, _json(event.to_json())) for event in change.events]
        with self._connection.transaction(durable=True):
            made = self._rows(_MADE_BY, (storable(change.proposal_id),))
            if made:
                return int(made[0][0])
            actual = self._newest_version()
            if not change.makes_version and self._holds_events_of(change):
                return actual
            if actual != expected_version:
                raise StaleVersionError(expected=expected_version, actual=actual)
            if change.events:
                last = [self._event(*row) for row in self._rows(_LAST_EVENT)]
                check_follows(change.events, last[0] if last else None)
            if change.makes_version:
                self._write(change, tools, version=actual + 1)
            if events:
                self._connection.execute_many("INSERT INTO library_events VALUES (?,?)", events)
        return actual + change.makes_version

    def _holds_events_of(self, change: LibraryChange) -> bool:
        ends = (change.events[0].sequence, change.events[-1].sequence)
        return are_held(
            change.events, [self._event(*row) for row in self._rows(_EVENTS_BETWEEN, ends)]
        )

    def _write(
        self,
        change: LibraryChange,
        tools: Sequence[tuple[ToolDefinition, str, str]],
        *,
        version: int,
    ) -> None:
        revisions: list[tuple[object, ...]] = []
        for name in change.removals:
            place = self._standing(name)
            if place is None:
                raise missing_tool(name, self.load())
            revisions.append((version, storable(name), None, None, *place))
        for number, (tool, _, origin) in enumerate(tools):
            place = self._standing(tool.name) or (version, number)
            revisions.append((version, tool.name, tool.digest, origin, *place))
        words = map(storable, (change.proposal_id, change.author, change.reason))
        noted = (json.dumps(change.evidence), change.created_at or now())
        self._rows("INSERT INTO versions VALUES (?,?,?,?,?,?)", (version, *words, *noted))
        self._connection.execute_many(
            "INSERT INTO definitions VALUES (?,?,?) ON CONFLICT (digest) DO NOTHING",
            [(tool.digest, tool.name, body) for tool, body, _ in tools],
        )
        self._connection.execute_many("INSERT INTO revisions VALUES (?,?,?,?,?,?)", revisions)

    def _standing(self, tool_name: str) -> tuple[int, int] | None:
        """A tool's place in the library's order; None when it is not in the library."""
        for digest, since, place in self._rows(_CURRENT, (storable(tool_name),)):
            return None if digest is None else (since, place)
        return None

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes in one transaction; see ``BatchAppending.append_many``."""
        by_key: dict[str, Episode] = {}
        for episode in episodes:
            by_key.setdefault(storable(episode.episode_id), episode)
        bodies = {key: encode_episode(one) for key, one in by_key.items()}  # before it is locked
        kept, connection = datetime.now(UTC), self._connection
        with connection.transaction():
            newest = self._newest_episode(EpisodeFilter())
            rows = [_row(key, by_key[key], body) for key, body in bodies.items()]
            connection.execute_many(_INSERT_EPISODE, rows)
            added = self._rows(
                "SELECT sequence, episode_id FROM episodes WHERE sequence > ?", (newest,)
            )
            called = [(name, place) for place, key in added for name in _called(by_key[key])]
            if called:
                connection.execute_many("INSERT INTO episode_tools VALUES (?,?)", called)
            extents = [
                (place, _microseconds(begun_at(by_key[key], kept=kept)), len(bodies[key]))
                for place, key in added
            ]
            connection.execute_many(_INSERT_EXTENT, extents)

    def check(self) -> Iterator[StoreFault]:
        """Look at the file, its tables and every row of them; see ``Checkable.check``."""
        return check_file(self._connection)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._connection.close()

    # What ``SQLStore`` asks for.

    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[Any]:
        return self._connection.execute(sql, parameters)

    def _rows_between(self, after: int, version: int) -> Sequence[Any]:
        self._check_rows(after, version)
        return self._rows(_LOAD, (after, version))

    def _check_rows(self, after: int, version: int) -> None:
        """Refuse what would give a smaller library than the one that was committed, and no error.

        Raises:
            StoreFormatError: A version or revision is missing, or is not as a commit writes it.
        """
        between = (after, version)
        found = [
            *(f"revision {at} of {name!r}" for at, name in self._rows(_ROWS, between)),
            *(f"version {at}" for (at,) in self._rows(_GAP, between)),
        ]
        if found:
            raise StoreFormatError(
                f"{self.path} is damaged at {found[0]}: a row was changed or deleted by hand. "
                "'agentkit check' lists the damage, 'agentkit store copy BACKUP NEW' restores it"
            )

    def _newest_version(self) -> int:
        self._connection.check_in_place()
        newest = super()._newest_version()
        if not newest:  # an empty library holds no revisions
            self._check_rows(0, 0)
        return newest

    def _key(self, text: str) -> str:
        return storable(text)

    def _moment(self, time: datetime) -> int:
        return _microseconds(time)

    def _having_labels(self, labels: Mapping[str, str]) -> tuple[list[str], list[object]]:
        # As JSON, in which half a surrogate pair is plain ASCII; SQLite reads both sides alike.
        values: list[object] = [json.dumps(one) for label in labels.items() for one in label]
        return [_HAS_LABEL] * len(labels), values

    def _delete_up_to(self, begun: Any, sequence: int) -> EpisodeVolume:
        sql = (
            "SELECT sequence FROM episode_extents WHERE (begun, sequence) <= (?, ?) "
            "ORDER BY begun, sequence LIMIT ?"
        )
        with self._connection.transaction():
            rows = self._rows(sql, (begun, sequence, self.pruned_at_a_time))
            among = f"WHERE sequence IN ({','.join(str(int(one)) for (one,) in rows)})"
            gone = self._volume(among, ())
            for table in ("episode_tools", "episode_extents", "episodes"):
                self._rows(f"DELETE FROM {table} {among}")  # noqa: S608 - names and integers
        return gone


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(time: datetime) -> int:
    """A time as whole microseconds since 1970, for a column that is compared and sorted."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def _encoded(tool: ToolDefinition) -> tuple[str, str]:
    """The body and the origin of a definition, as the tables hold them."""
    record = tool.to_json()
    origin = record.pop("origin", {})
    return _json(record), json.dumps(origin, separators=(",", ":"))


def _json(record: Any) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _row(key: str, episode: Episode, body: str) -> tuple[object, ...]:
    session = None if episode.session_id is None else storable(episode.session_id)
    return (key, session, episode.stop_reason, body)


def _called(episode: Episode) -> Sequence[str]:
    """The tools that an episode called, each once."""
    return tuple(dict.fromkeys(storable(call.name) for call in episode.calls))


_MOST_FAULTS = 100
"""Maximum number of SQLite faults listed; a file with more is not repaired one by one."""

_SAVE = "restore a backup, or save what can be read with `sqlite3 FILE .recover`"


def check_file(connection: SQLiteConnection) -> Iterator[StoreFault]:
    """SQLite's own findings, and a schema that is not ours; see ``Checkable.check``."""
    if found := foreign_parts(
        connection
    ):  # put there since it was opened; reading on may never end
        message = f"it holds what agentkit did not make: {', '.join(found)}; {_SAVE}"
        yield StoreFault(place="file", message=message)
        return
    for (text,) in connection.execute(f"PRAGMA integrity_check({_MOST_FAULTS})"):
        if text != "ok":
            words = " ".join(str(text).split())
            yield StoreFault(place="file", message=f"SQLite finds: {words}; {_SAVE}")
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check")[:_MOST_FAULTS]:
        which = "a row" if row is None else f"row {row}"
        message = f"{which} names what the table {parent} does not hold; {_SAVE}"
        yield StoreFault(place=str(table), message=message)
    rows = connection.execute("SELECT type, name FROM sqlite_master")
    for kind, name in sorted(our_parts().keys() - set(rows)):
        message = f"the {kind} {name} was taken away; a copy ('agentkit store copy') has it again"
        yield StoreFault(place="library_events" if kind == "trigger" else name, message=message)
