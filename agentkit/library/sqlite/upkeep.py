"""Looking for damage in a SQLite file, row by row, so that one bad row does not hide the others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from agentkit.episodes.jsonl import decode_episode
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library.capabilities import UNREADABLE, Compacted, StoreFault
from agentkit.library.events import LibraryEvent
from agentkit.library.sql_store import row_fault
from agentkit.library.sqlite.connection import SQLiteConnection, storable
from agentkit.library.sqlite.migrations import TRIGGERS, traps
from agentkit.tools.definition import ToolDefinition

_PAGE = 200
_MOST_FAULTS = 100
"""Of those that SQLite names; a file with more is not mended one by one."""

_SAVE = "restore a backup, or save what can be read with `sqlite3 FILE .recover`"

_DEFINITIONS = """
SELECT rowid, CAST(digest AS BLOB), CAST(name AS BLOB), CAST(body AS BLOB)
FROM definitions WHERE rowid > ? ORDER BY rowid LIMIT ?
"""
_EVENTS = """
SELECT sequence, CAST(body AS BLOB) FROM library_events WHERE sequence > ?
ORDER BY sequence LIMIT ?
"""
_EPISODES = """
SELECT sequence, CAST(episode_id AS BLOB), CAST(session_id AS BLOB), CAST(stop_reason AS BLOB),
       CAST(body AS BLOB)
FROM episodes WHERE sequence > ? ORDER BY sequence LIMIT ?
"""
"""Text as bytes: what is no UTF-8 any more can not be read as text at all."""

_ROWS = {
    "SELECT digest FROM definitions WHERE digest NOT IN (SELECT digest FROM revisions "
    "WHERE digest IS NOT NULL) ORDER BY digest": (
        "definitions",
        "the definition {} belongs to no version: somebody took versions or revisions away",
    ),
    "SELECT version FROM versions WHERE version NOT IN (SELECT version FROM revisions) "
    "ORDER BY version": (
        "versions",
        "version {} changed no tool: somebody took its revisions away",
    ),
    "SELECT version FROM versions WHERE NOT json_valid(evidence) ORDER BY version": (
        "versions",
        "the evidence of version {} can not be read",
    ),
    "SELECT version || ' of ' || tool_name FROM revisions WHERE digest IS NOT NULL "
    "AND NOT json_valid(origin) ORDER BY version": (
        "revisions",
        "the origin in revision {} can not be read",
    ),
}
"""Queries for rows that should not be, with the table and words for each."""


def check_file(connection: SQLiteConnection) -> Iterator[StoreFault]:
    """See ``Checkable.check``."""
    if found := traps(connection):  # put there since it was opened; reading on may never end
        message = f"it holds what agentkit did not make: {', '.join(found)}; {_SAVE}"
        yield StoreFault(place="file", message=message)
        return
    for look in (_integrity, _references, _triggers, _odd_rows, _definitions, _events, _episodes):
        try:
            yield from look(connection)
        except StoreUnavailableError:
            raise
        except StoreError as error:  # the rest of this part is out of reach, other parts may not be
            yield StoreFault(place=look.__name__.strip("_"), message=str(error))
        except UNREADABLE as error:
            message = f"it holds what agentkit does not write ({type(error).__name__}: {error})"
            yield StoreFault(place=look.__name__.strip("_"), message=message)


def _integrity(connection: SQLiteConnection) -> Iterator[StoreFault]:
    for (text,) in connection.execute(f"PRAGMA integrity_check({_MOST_FAULTS})"):
        if text != "ok":
            words = " ".join(str(text).split())
            yield StoreFault(place="file", message=f"SQLite finds: {words}; {_SAVE}")


def _references(connection: SQLiteConnection) -> Iterator[StoreFault]:
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check")[:_MOST_FAULTS]:
        which = "a row" if row is None else f"row {row}"
        message = f"{which} names what the table {parent} does not hold; {_SAVE}"
        yield StoreFault(place=str(table), message=message)


def _triggers(connection: SQLiteConnection) -> Iterator[StoreFault]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    held = {name for (name,) in rows}
    for name in TRIGGERS:
        if name not in held:
            message = f"the trigger {name}, which keeps events from being changed, was taken away"
            yield StoreFault(place="library_events", message=message)


def _odd_rows(connection: SQLiteConnection) -> Iterator[StoreFault]:
    for query, (place, words) in _ROWS.items():
        for (value,) in connection.execute(query)[:_MOST_FAULTS]:
            yield StoreFault(place=place, message=words.format(value))


def _definitions(connection: SQLiteConnection) -> Iterator[StoreFault]:
    for _, *columns in _pages(connection, _DEFINITIONS):
        digest, name, body = map(_text, columns)
        message = row_fault(partial(_digest, body), (name, digest), advice=_SAVE)
        if message:
            place = f"definition {digest[:12]} ({name})"
            yield StoreFault(place=place, message=message)


def _digest(body: str) -> tuple[str, str]:
    definition = ToolDefinition.from_json(json.loads(body))
    return definition.name, definition.digest


def _events(connection: SQLiteConnection) -> Iterator[StoreFault]:
    for sequence, body in _pages(connection, _EVENTS):
        message = row_fault(partial(_sequence, _text(body)), sequence, advice=_SAVE)
        if message:
            yield StoreFault(place=f"event {sequence}", message=message)


def _sequence(body: str) -> int:
    return LibraryEvent.from_json(json.loads(body)).sequence


def _episodes(connection: SQLiteConnection) -> Iterator[StoreFault]:
    for sequence, *columns in _pages(connection, _EPISODES):
        episode_id, session_id, stop_reason, body = map(_text, columns)
        message = row_fault(
            partial(_keys, body), (episode_id, session_id, stop_reason), advice=_SAVE
        )
        if message:
            place = f"episode {episode_id!r} (row {sequence})"
            yield StoreFault(place=place, message=message)


def _keys(body: str) -> tuple[str, str, str]:
    episode = decode_episode(body)
    session = "" if episode.session_id is None else storable(episode.session_id)
    return storable(episode.episode_id), session, episode.stop_reason


def _pages(connection: SQLiteConnection, sql: str) -> Iterator[Any]:
    """The rows of a query by the number in their first column, some at a time."""
    last = -(2**63)
    while rows := connection.execute(sql, (last, _PAGE)):
        yield from rows
        last = rows[-1][0]


def _text(value: bytes | None) -> str:
    """Text as it is; of bytes that are no text what can be shown."""
    return "" if value is None else value.decode("utf-8", "backslashreplace")


_UNUSED = "DELETE FROM derived WHERE generation < (SELECT max(generation) FROM derived)"
"""What the last one that worked something out did not name is of an older library."""

_TEMPORARY = ("SQLITE_TMPDIR", "TMPDIR")
"""Variables by which SQLite, in this order, is told where to put temporary files."""


def compact_file(connection: SQLiteConnection) -> Compacted:
    """See ``Compactable.compact``.

    The file is written anew beside the old one, which needs room; others may read meanwhile, and
    writers wait. What they read holds back the end of it, which then comes by itself.

    Raises:
        StoreError: There is not enough room on the disk. Nothing was changed.
        StoreUnavailableError: Another program held the file for too long.
    """
    before = file_bytes(connection.path)
    with connection.transaction():
        connection.execute(_UNUSED)
    _check_room(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Compacted(bytes_before=before, bytes_after=file_bytes(connection.path))


def file_bytes(path: Path) -> int:
    """What a SQLite file takes on the disk, with the log beside it."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _check_room(connection: SQLiteConnection) -> None:
    """Refuse what the disk can not take: the new file goes to a temporary one, then to the log."""
    import shutil  # with compression: whoever opens a store does without

    ((pages,),) = connection.execute("PRAGMA page_count")
    ((free,),) = connection.execute("PRAGMA freelist_count")
    ((size,),) = connection.execute("PRAGMA page_size")
    needed = (pages - free) * size
    folder, temporary = connection.path.absolute().parent, _temporary_folder()
    is_one_disk = folder.stat().st_dev == temporary.stat().st_dev
    for place, wanted in ((folder, needed * (2 if is_one_disk else 1)), (temporary, needed)):
        room = shutil.disk_usage(place).free
        if room < wanted:
            raise StoreError(
                f"{connection.path} can not be compacted: that takes {wanted:,} bytes of free disk "
                f"room for a while, and {place} has {room:,}. Nothing was changed; make room, or "
                "name another folder for temporary files in SQLITE_TMPDIR"
            )


def _temporary_folder() -> Path:
    """Where SQLite puts the new file while it writes it."""
    import tempfile

    named = [os.environ[name] for name in _TEMPORARY if os.environ.get(name)]
    for place in (*named, "/var/tmp", "/usr/tmp", "/tmp"):  # noqa: S108 - those SQLite looks at
        if os.access(place, os.W_OK | os.X_OK) and Path(place).is_dir():
            return Path(place)
    return Path(tempfile.gettempdir())
