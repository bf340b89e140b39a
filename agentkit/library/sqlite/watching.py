"""``SQLiteWatch``: hears the commits of any program into one file."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from agentkit.errors import StoreError
from agentkit.library.sqlite.connection import SQLiteConnection, Tracer

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
