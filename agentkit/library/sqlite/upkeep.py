"""Looking for damage in a SQLite file, and writing it anew without what nobody needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentkit.library.capabilities import Compacted, StoreFault
from agentkit.library.sqlite.connection import SQLiteConnection
from agentkit.library.sqlite.schema import TRIGGERS, traps

_MOST_FAULTS = 100
"""Of those that SQLite names; a file with more is not repaired one by one."""

_SAVE = "restore a backup, or save what can be read with `sqlite3 FILE .recover`"

_UNUSED = "DELETE FROM derived WHERE generation < (SELECT max(generation) FROM derived)"
"""What the last one that worked something out did not name is of an older library."""


def check_file(connection: SQLiteConnection) -> Iterator[StoreFault]:
    """What SQLite itself finds, and triggers that are not ours; see ``Checkable.check``."""
    if found := traps(connection):  # put there since it was opened; reading on may never end
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
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for name in TRIGGERS.keys() - {name for (name,) in rows}:
        message = f"the trigger {name}, which keeps events from being changed, was taken away"
        yield StoreFault(place="library_events", message=message)


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
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Compacted(bytes_before=before, bytes_after=file_bytes(connection.path))


def file_bytes(path: Path) -> int:
    """What a SQLite file takes on the disk, with the log beside it."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
