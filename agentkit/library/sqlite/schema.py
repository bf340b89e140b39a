"""The tables of a SQLite store, as named steps that are only ever added to.

A step that was released is never edited: files out there have it behind them. The ledger has the
form that sqlite-utils gives it (``_sqlite_migrations``), so that tools of that family read it too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TypeAlias

from agentkit._version import __version__
from agentkit.errors import StoreFormatError
from agentkit.library.changes import now
from agentkit.library.sqlite.connection import SQLiteConnection

LEDGER = "_sqlite_migrations"
_MIGRATION_SET = "agentkit"
_SMALLEST_FILE = 512  # bytes of the smallest page of SQLite

_LEDGER_TABLE = f"""CREATE TABLE IF NOT EXISTS {LEDGER} (
    id INTEGER PRIMARY KEY, migration_set TEXT, name TEXT, applied_at TEXT)"""

_ONLY_APPENDED = "BEGIN SELECT raise(ABORT, 'events are only ever appended'); END"

STEPS: Mapping[str, Sequence[str]] = {
    # Definitions by content: a body has no origin, which the digest does not cover; each revision
    # has its own. A revision without a digest removed the tool. ``since`` is the version in which
    # the tool was added, and ``place`` where it stood there: the library's order.
    "m0001_tool_tables": (
        """CREATE TABLE definitions (
        digest TEXT PRIMARY KEY, name TEXT NOT NULL, body TEXT NOT NULL)""",
        """CREATE TABLE versions (
        version INTEGER PRIMARY KEY, proposal_id TEXT NOT NULL UNIQUE, author TEXT NOT NULL,
        reason TEXT NOT NULL, evidence TEXT NOT NULL, created_at TEXT NOT NULL)""",
        """CREATE TABLE revisions (
        version INTEGER NOT NULL REFERENCES versions, tool_name TEXT NOT NULL,
        digest TEXT REFERENCES definitions, origin TEXT, since INTEGER NOT NULL,
        place INTEGER NOT NULL, PRIMARY KEY (tool_name, version))""",
    ),
    "m0002_episode_tables": (
        """CREATE TABLE episodes (
        sequence INTEGER PRIMARY KEY, episode_id TEXT NOT NULL UNIQUE, session_id TEXT,
        stop_reason TEXT NOT NULL, body TEXT NOT NULL)""",
        "CREATE INDEX episodes_by_session ON episodes (session_id)",
        "CREATE INDEX episodes_by_stop_reason ON episodes (stop_reason)",
        """CREATE TABLE episode_tools (
        tool_name TEXT NOT NULL, sequence INTEGER NOT NULL REFERENCES episodes,
        PRIMARY KEY (tool_name, sequence)) WITHOUT ROWID""",
    ),
    # Earlier releases kept indexes in ``derived``.
    "m0003_derived_values": (
        """CREATE TABLE derived (
        key TEXT PRIMARY KEY, generation INTEGER NOT NULL, checksum BLOB NOT NULL,
        body BLOB NOT NULL)""",
        "CREATE INDEX revisions_by_version ON revisions (version)",
    ),
    "m0004_event_table": (
        "CREATE TABLE library_events (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL)",
        *(
            f"CREATE TRIGGER library_events_{statement.lower()} "
            f"BEFORE {statement} ON library_events {_ONLY_APPENDED}"
            for statement in ("UPDATE", "DELETE")
        ),
    ),
    # ``begun`` in microseconds since 1970, and the bytes of the body.
    "m0005_episode_extents": (
        """CREATE TABLE episode_extents (
        sequence INTEGER PRIMARY KEY, begun INTEGER NOT NULL, bytes INTEGER NOT NULL)""",
        "CREATE INDEX episode_extents_by_age ON episode_extents (begun, sequence, bytes)",
        "CREATE INDEX episode_tools_by_sequence ON episode_tools (sequence)",
    ),
}
"""Migrations in order. Append only; never reorder, remove, or change but for blanks."""


def bring_up_to_date(connection: SQLiteConnection) -> None:
    """Give a file the newest shape; one that has it already is only looked at.

    All steps that are missing run in one transaction, so that a file never stays half-way, and
    two programs that open the same new file do not both run them.

    Raises:
        StoreFormatError: The file is not a database, was written by a newer agentkit, or holds
            tables of another program under our names, or views or triggers that agentkit did not
            make. It is left as it was.
        StoreError: The file is locked or cannot be written.
    """
    tables = _table_names(connection)
    if LEDGER not in tables:
        _check_not_foreign(connection, tables)
    if found := foreign_parts(connection):
        raise StoreFormatError(
            f"{connection.path} holds what agentkit did not make, and what SQLite would follow: "
            f"{', '.join(found)}. Restore a backup, or undo the change with the sqlite3 program"
        )
    applied = _applied(connection, tables)
    _check_not_newer(connection, applied)
    if not tables:
        _check_blank(connection)
    if not applied:
        _check_not_foreign(connection, tables)
    if connection.is_read_only:
        if len(applied) < len(STEPS):
            words = "and was opened to be read only; open it once with open_store"
            raise StoreFormatError(f"{connection.path} is no store yet, or an older one, {words}")
        return
    connection.execute("PRAGMA journal_mode = WAL")
    if len(applied) < len(STEPS):
        _apply_missing(connection)


def _apply_missing(connection: SQLiteConnection) -> None:
    with connection.transaction():
        applied = _applied(connection, _table_names(connection))  # now that nobody else is at it
        connection.execute(_LEDGER_TABLE)
        for name, statements in STEPS.items():
            if name not in applied:
                for statement in statements:
                    connection.execute(statement)
                row = (_MIGRATION_SET, name, now())
                connection.execute(f"INSERT INTO {LEDGER} VALUES (NULL, ?, ?, ?)", row)  # noqa: S608 - a constant


def _table_names(connection: SQLiteConnection) -> frozenset[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    return frozenset(name for (name,) in rows)


def _applied(connection: SQLiteConnection, tables: Collection[str]) -> frozenset[str]:
    if LEDGER not in tables:
        return frozenset()
    ours = f"SELECT name FROM {LEDGER} WHERE migration_set = ?"  # noqa: S608 - a constant above
    return frozenset(str(name) for (name,) in connection.execute(ours, (_MIGRATION_SET,)))


Part: TypeAlias = tuple[str, str]
"""A table, index or trigger, and its name."""

_NAMED = re.compile(r"\s*CREATE (TABLE|INDEX|TRIGGER)(?: IF NOT EXISTS)? (\w+)")
_COMMENT = re.compile(r"--[^\n]*")
_TOKENS = re.compile(r"\w+|[^\s\w]", re.ASCII)
_QUOTES = frozenset('[]"')


def _tokens(kind: str, sql: str) -> list[str]:
    """The words and signs of a statement.

    Comments of tables and indexes do not count. Ours hold no quotes otherwise, so a text that
    begins no comment where it says so is none of ours. A trigger of ours has quotes, and none.
    """
    return _TOKENS.findall(sql if kind == "trigger" else _COMMENT.sub(" ", sql))


@cache
def our_parts() -> Mapping[Part, list[str]]:
    """What the steps make, each with its statement in tokens."""
    parts: dict[Part, list[str]] = {}
    for statement in chain.from_iterable(STEPS.values()):
        found = _NAMED.match(statement)
        assert found is not None
        kind = found[1].lower()
        parts[kind, found[2]] = _tokens(kind, statement)
    return parts


_LEDGER_PARTS = {
    ("table", LEDGER): _tokens("table", _LEDGER_TABLE.replace("IF NOT EXISTS ", "")),
    ("index", f"idx_{LEDGER}_migration_set_name"): _tokens(
        "index",
        f"CREATE UNIQUE INDEX idx_{LEDGER}_migration_set_name ON {LEDGER} (migration_set, name)",
    ),
}
"""The ledger of ``sqlite-utils`` too, which quotes names."""


def foreign_parts(connection: SQLiteConnection) -> list[str]:
    """What is on our tables, or under their names, and is not as agentkit makes it.

    A file may come from anybody, and its schema decides what is run and kept: a view in the place
    of a table need never end, a trigger deletes, and one more ``UNIQUE`` has rows refused or left
    out. Tables, views and triggers of other names are other people's, as long as no row of theirs
    hangs on one of ours.
    """
    rows = connection.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master")
    found = [
        f"the {'virtual table' if kind == 'table' and not page else kind} {name}"
        for kind, name, table, page, sql in rows
        if (_is_ours(name) or _is_ours(table)) and not _is_as_made(kind, name, sql)
    ]
    if found:  # SQLite is asked no more about a schema that is not to be trusted
        return found
    others = [name for kind, name, _, page, _ in rows if kind == "table" and page]
    return [
        f"the table {name}, whose rows hang on {of}"
        for name in others
        if not _is_ours(name)
        for (of,) in connection.execute('SELECT "table" FROM pragma_foreign_key_list(?)', (name,))
        if _is_ours(of)
    ]


def _is_as_made(kind: str, name: str, sql: str | None) -> bool:
    """Whether a part of our tables is what a step makes; SQLite itself adds indexes without SQL."""
    if sql is None:
        return kind == "index"
    given = _tokens(kind, sql)
    if (kind, name) in _LEDGER_PARTS:
        return [token for token in given if token not in _QUOTES] == _LEDGER_PARTS[kind, name]
    return given == our_parts().get((kind, name))


@cache
def _our_tables() -> frozenset[str]:
    return frozenset(name for kind, name in our_parts() if kind == "table")


def _is_ours(name: object) -> bool:
    return str(name).lower() in _our_tables() | {LEDGER}


def _check_blank(connection: SQLiteConnection) -> None:
    """SQLite takes a file of one byte for a new database and would write over it.

    The file is not opened to look: closing it again would take away the locks that SQLite holds
    on it for this process. Another program would then clear away the log that this one writes to.
    """
    size = connection.path.stat().st_size
    if 0 < size < _SMALLEST_FILE:
        words = f"is not a SQLite database, or is damaged: it has {size} bytes; restore a backup"
        raise StoreFormatError(f"{connection.path} {words}")


def _check_not_newer(connection: SQLiteConnection, applied: Collection[str]) -> None:
    unknown = sorted(set(applied) - STEPS.keys())
    if unknown:
        raise StoreFormatError(
            f"{connection.path} was written by a newer agentkit: {__version__} does not know "
            f"{', '.join(unknown)}; run: pip install --upgrade agentkit-evolve"
        )


def _check_not_foreign(connection: SQLiteConnection, tables: Collection[str]) -> None:
    taken = sorted(_our_tables().intersection(tables))
    if taken:
        words = f"it holds {', '.join(taken)}, which agentkit did not make; choose another file"
        raise StoreFormatError(f"{connection.path} belongs to another program: {words}")
