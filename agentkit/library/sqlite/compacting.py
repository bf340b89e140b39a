"""Giving back the room in a SQLite file that deleted and derived data took."""

from __future__ import annotations

import os
from pathlib import Path

from agentkit.errors import StoreError
from agentkit.library.abilities import Compacted
from agentkit.library.sqlite.connection import SQLiteConnection

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
