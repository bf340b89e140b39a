"""Episodes of a directory store: a SQLite file in ``local/``, for they do not belong in git."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from agentkit.library.abilities import StoreFault
from agentkit.library.directory.folder import Folder
from agentkit.library.sqlite import SQLiteStore


class LocalEpisodes:
    """The SQLite store, opened when it is needed: a checkout that is only read gets no file."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._path = folder.local / "episodes.db"
        self._lock = threading.Lock()
        self._store: SQLiteStore | None = None

    def to_write(self) -> SQLiteStore:
        """The store, made when it is absent."""
        with self._lock:
            if self._store is None:
                self._folder.make_local()
                self._store = SQLiteStore(self._path)
            return self._store

    def to_read(self) -> SQLiteStore | None:
        """The store; None when no episode was ever kept here."""
        with self._folder.translated(self._path):
            is_there = self._store is not None or self._path.exists()
        return self.to_write() if is_there else None

    def check(self) -> Iterator[StoreFault]:
        """What is damaged in it."""
        store = self.to_read()
        if store is not None:
            yield from store.check()

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
