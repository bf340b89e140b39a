"""The table of a SQLite file that holds the chain of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from agentkit.errors import StaleVersionError, StoreFormatError, ToolNotFoundError
from agentkit.library.capabilities import AppliedChange
from agentkit.library.changes import are_held, check_change, check_follows, now
from agentkit.library.derived import DerivedCache
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library, nearest_names
from agentkit.library.sqlite.connection import SQLiteConnection, storable
from agentkit.library.store import LibraryChange, ToolRevision
from agentkit.library.tables import Differences, NewestLibrary, VerifiedDefinitions, read_evidence
from agentkit.tools.definition import ToolDefinition

_LAST = "SELECT sequence, body FROM library_events ORDER BY sequence DESC LIMIT 1"
_AFTER = "SELECT sequence, body FROM library_events WHERE sequence > ? ORDER BY sequence"
_BETWEEN = """
SELECT sequence, body FROM library_events WHERE sequence BETWEEN ? AND ? ORDER BY sequence
"""

_GREATEST = 2**63 - 1  # the largest number that SQLite compares


class EventTable:
    """The chain over a connection. A commit writes to it inside its own transaction."""

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        rows = self._connection.execute(_AFTER, (min(max(after, 0), _GREATEST),))
        return tuple(self._event(*row) for row in rows)

    def last(self) -> LibraryEvent | None:
        """The end of the chain; None when there is none."""
        for row in self._connection.execute(_LAST):
            return self._event(*row)
        return None

    def holds(self, events: Sequence[LibraryEvent]) -> bool:
        """Whether a change of these events was applied before."""
        rows = self._connection.execute(_BETWEEN, (events[0].sequence, events[-1].sequence))
        return are_held(events, [self._event(*row) for row in rows])

    def append(self, rows: Sequence[tuple[int, str]]) -> None:
        """Write events that follow the last one; the caller holds the transaction."""
        if rows:
            self._connection.execute_many("INSERT INTO library_events VALUES (?,?)", rows)

    def _event(self, sequence: int, body: str) -> LibraryEvent:
        try:
            event = LibraryEvent.from_json(json.loads(body))
        except (ValueError, TypeError, AttributeError, StoreFormatError) as error:
            raise StoreFormatError(
                f"{self._connection.path} holds an event that can not be read ({sequence}): {error}"
            ) from error
        if event.sequence != sequence:
            raise StoreFormatError(
                f"{self._connection.path} holds event {event.sequence} in the place of event "
                f"{sequence}; somebody changed the file by hand"
            )
        return event


def encoded(events: Sequence[LibraryEvent]) -> list[tuple[int, str]]:
    """Events as the table holds them."""
    return [
        (event.sequence, json.dumps(event.to_json(), ensure_ascii=False, separators=(",", ":")))
        for event in events
    ]


_PAGE = 32
"""Versions read at a time: the lock is free while the caller looks at them."""

_NEWEST = "SELECT coalesce(max(version), 0) FROM versions"

_CHANGES = """
SELECT v.version, v.proposal_id, v.author, v.reason, v.evidence, v.created_at,
       r.tool_name, r.digest, r.origin, d.body
FROM versions AS v
LEFT JOIN revisions AS r ON r.version = v.version
LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE v.version > ? AND v.version <= ?
ORDER BY v.version, r.since, r.place
"""
"""What is new in a version has the greatest ``since`` of its revisions, and stands last."""


def read_changes(
    connection: SQLiteConnection,
    decode: Callable[[str, str, str], ToolDefinition],
    *,
    after: int,
) -> Iterator[AppliedChange]:
    """See ``ChangeLog.changes``.

    Args:
        connection: The file.
        decode: A definition from its digest, its origin and its body.
        after: The last version that is known already.
    """
    ((newest,),) = connection.execute(_NEWEST)
    for first in range(max(after, 0), newest, _PAGE):
        rows = connection.execute(_CHANGES, (first, min(first + _PAGE, newest)))
        for version, some in groupby(rows, key=itemgetter(0)):
            try:
                change = _change(list(some), decode, connection.path)
            except (ValueError, TypeError) as error:
                raise StoreFormatError(
                    f"{connection.path} holds a version that can not be read ({version}): {error}"
                ) from error
            yield AppliedChange(version=version, change=change)


def _change(
    rows: Sequence[Any], decode: Callable[[str, str, str], ToolDefinition], place: object
) -> LibraryChange:
    version, proposal_id, author, reason, evidence, created_at, *_ = rows[0]
    tools = [row[6:] for row in rows if row[6] is not None]
    return LibraryChange(
        proposal_id=proposal_id,
        upserts=tuple(decode(*kept) for _, *kept in tools if kept[0] is not None),
        removals=tuple(name for name, digest, *_ in tools if digest is None),
        author=author,
        reason=reason,
        evidence=read_evidence(evidence, version=version, place=place),
        created_at=created_at,
    )


_NEWEST_VERSION = "SELECT coalesce(max(version), 0) FROM versions"

_MADE_BY = "SELECT version FROM versions WHERE proposal_id = ?"

_LOAD = """
SELECT r.tool_name, r.digest, r.origin, r.since, d.body
FROM (SELECT tool_name, max(version) AS version FROM revisions WHERE version > ? AND version <= ?
      GROUP BY tool_name) AS newest
JOIN revisions AS r ON r.tool_name = newest.tool_name AND r.version = newest.version
LEFT JOIN definitions AS d ON d.digest = r.digest
ORDER BY r.since, r.place
"""
"""What differs between two versions: each tool as the later one has it, no digest if removed."""

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

_GAP = """
SELECT version FROM versions WHERE version > ?1 AND version <= ?2 AND (
    (version > 1 AND version - 1 NOT IN (SELECT version FROM versions))
    OR version NOT IN (SELECT version FROM revisions)
) ORDER BY version LIMIT 1
"""
"""A version that does not follow the one before, or that changed no tool."""

_HISTORY = """
SELECT v.version, v.proposal_id, v.author, v.reason, v.evidence, v.created_at,
       r.digest, r.origin, d.body
FROM revisions AS r
JOIN versions AS v ON v.version = r.version
LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE r.tool_name = ?
ORDER BY r.version
"""

_CURRENT = """
SELECT digest, since, place FROM revisions WHERE tool_name = ? ORDER BY version DESC LIMIT 1
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Encoded:
    """A definition as the tables hold it."""

    name: str
    digest: str
    body: str
    origin: str


class ToolTables:
    """The five methods of ``ToolStore`` over a connection, but ``close``."""

    def __init__(
        self, connection: SQLiteConnection, cache: DerivedCache, events: EventTable
    ) -> None:
        self._connection = connection
        self._events = events
        self._newest = NewestLibrary(cache=cache)
        self._verified = VerifiedDefinitions(str(connection.path.absolute()))

    def load(self, version: int | None = None) -> Library:
        """See ``SQLiteStore.load``."""
        newest = self._newest_version()
        return self._newest.load(version, newest=newest, read=self._differences)

    def _differences(self, base: Library, version: int) -> Differences:
        self._check_rows(base.version, version)
        gone: list[str] = []
        tools: list[ToolDefinition] = []
        for name, digest, origin, since, body in self._connection.execute(
            _LOAD, (base.version, version)
        ):
            if digest is None or (since > base.version and name in base):
                gone.append(name)
            if digest is not None:
                tools.append(self._verified.read(digest, origin, body))
        self._verified.keep()
        return Differences(gone=gone, tools=tools)

    def _check_rows(self, after: int, version: int) -> None:
        """Refuse what would give a smaller library than the one that was committed, and no error.

        Raises:
            StoreFormatError: A version or revision is missing, or is not as a commit writes it.
        """
        between = (after, version)
        found = [
            *(
                f"revision {at} of {name!r}"
                for at, name in self._connection.execute(_ROWS, between)
            ),
            *(f"version {at}" for (at,) in self._connection.execute(_GAP, between)),
        ]
        if found:
            raise StoreFormatError(
                f"{self._connection.path} is damaged at {found[0]}: a row there was changed or "
                "deleted by hand. Nothing of it is used; 'agentkit check' lists what is damaged, "
                "and a copy ('agentkit store copy BACKUP NEW') restores it"
            )

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """See ``ToolStore.commit``."""
        check_change(change)
        upserts = [_encoded(tool) for tool in change.upserts]  # before the file is locked
        events = encoded(change.events)
        with self._connection.transaction(durable=True):
            made = self._connection.execute(_MADE_BY, (storable(change.proposal_id),))
            if made:
                return int(made[0][0])
            actual = self._newest_version()
            if not change.makes_version and self._events.holds(change.events):
                return actual
            if actual != expected_version:
                raise StaleVersionError(expected=expected_version, actual=actual)
            if change.events:
                check_follows(change.events, self._events.last())
            if change.makes_version:
                self._write(change, upserts, version=actual + 1)
            self._events.append(events)
        self._verified.vouch((tool.digest, tool.body) for tool in upserts)
        return actual + change.makes_version

    def _write(self, change: LibraryChange, upserts: Sequence[_Encoded], *, version: int) -> None:
        revisions = [
            *self._removals(change.removals, version=version),
            *self._upserts(upserts, version=version),
        ]
        self._write_version(change, version=version)
        self._connection.execute_many(
            "INSERT OR IGNORE INTO definitions VALUES (?,?,?)",
            [(tool.digest, tool.name, tool.body) for tool in upserts],
        )
        self._connection.execute_many("INSERT INTO revisions VALUES (?,?,?,?,?,?)", revisions)

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        rows = self._connection.execute("SELECT version FROM versions ORDER BY version")
        return tuple(version for (version,) in rows)

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        rows = self._connection.execute(_HISTORY, (storable(tool_name),))
        return tuple(
            ToolRevision(
                version=version,
                definition=None if kept[0] is None else self._verified.read(*kept),
                proposal_id=proposal_id,
                author=author,
                reason=reason,
                evidence=read_evidence(evidence, version=version, place=self._connection.path),
                created_at=created_at,
            )
            for version, proposal_id, author, reason, evidence, created_at, *kept in rows
        )

    def changes(self, *, after: int) -> Iterator[AppliedChange]:
        """See ``ChangeLog.changes``."""
        return read_changes(self._connection, self._verified.read, after=after)

    def _newest_version(self) -> int:
        self._connection.check_in_place()
        ((version,),) = self._connection.execute(_NEWEST_VERSION)
        return int(version)

    def _removals(self, names: Sequence[str], *, version: int) -> list[tuple[object, ...]]:
        """Rows of the table ``revisions`` that take tools out."""
        rows: list[tuple[object, ...]] = []
        for name in names:
            place = self._place(name)
            if place is None:
                known = self.load()
                nearest = nearest_names(name, known.tools)
                raise ToolNotFoundError(name, nearest=nearest, version=known.version)
            rows.append((version, storable(name), None, None, *place))
        return rows

    def _upserts(self, tools: Sequence[_Encoded], *, version: int) -> list[tuple[object, ...]]:
        """Rows of the table ``revisions`` that add tools, or replace them where they stand."""
        return [
            (
                version,
                tool.name,
                tool.digest,
                tool.origin,
                *(self._place(tool.name) or (version, i)),
            )
            for i, tool in enumerate(tools)
        ]

    def _place(self, tool_name: str) -> tuple[int, int] | None:
        """Where a tool stands in the library's order; None when it is not in the library."""
        for digest, since, place in self._connection.execute(_CURRENT, (storable(tool_name),)):
            return None if digest is None else (since, place)
        return None

    def _write_version(self, change: LibraryChange, *, version: int) -> None:
        self._connection.execute(
            "INSERT INTO versions VALUES (?,?,?,?,?,?)",
            (
                version,
                storable(change.proposal_id),
                storable(change.author),
                storable(change.reason),
                json.dumps(change.evidence),
                change.created_at or now(),
            ),
        )


def _encoded(tool: ToolDefinition) -> _Encoded:
    record = tool.to_json()
    origin = record.pop("origin", {})
    return _Encoded(
        name=tool.name,
        digest=tool.digest,
        body=json.dumps(record, ensure_ascii=False, separators=(",", ":")),
        origin=json.dumps(origin, separators=(",", ":")),
    )
