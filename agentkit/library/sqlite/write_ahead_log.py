"""Bringing the write-ahead log of a SQLite file into the file, while nobody else writes.

SQLite does so by itself behind a commit, when no lock keeps other writers out. In versions before
3.51.3 that may meet a writer who begins the log anew, and part of what is committed later is never
brought over: https://sqlite.org/wal.html#walresetbug. With the write lock held nobody begins anew.
"""

from __future__ import annotations

import logging
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger(__name__)

LOG_BYTES = 4 * 1024 * 1024
"""A log that is shorter is left alone; SQLite's own bound is about the same."""

_MOST_WRITES = 128
"""A log that is begun anew keeps its length; how much of it is in use only a checkpoint tells."""

CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"  # waits for nobody, and takes what no reader needs


class WriteAheadLog:
    """The log beside a SQLite file, kept short by those who write.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._known = LOG_BYTES
        self._writes = 0

    def switch_off(self, connection: sqlite3.Connection) -> None:
        """Let a connection never bring the log over behind a commit."""
        connection.execute("PRAGMA wal_autocheckpoint = 0")

    def is_long(self) -> bool:
        """Whether this write should bring the log over: it has grown, or was used for a while."""
        try:
            size = os.stat(self._log).st_size  # noqa: PTH116 - on the way of each write
        except OSError:  # there is none
            return False
        if size < LOG_BYTES:
            return False
        self._writes += 1
        if size <= self._known and self._writes < _MOST_WRITES:
            return False
        self._known, self._writes = size, 0
        return True

    def bring_over(self) -> None:
        """Bring the log into the file. The caller holds the write lock, on another connection."""
        import sqlite3

        try:
            with closing(sqlite3.connect(self._path, timeout=0, isolation_level=None)) as beside:
                self.switch_off(beside)
                beside.execute(CHECKPOINT).fetchall()
        except sqlite3.Error as error:  # as SQLite itself does, which does not even tell
            logger.info("the log of %s stays long for now: %s", self._path, error)
