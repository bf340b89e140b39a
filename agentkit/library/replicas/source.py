"""The store behind a replica."""

from __future__ import annotations

import threading

from agentkit.errors import StoreError
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import open_store
from agentkit.library.store import Store


class Source:
    """A store that was given open, or the URL of one that is opened when it can be reached.

    Args:
        store: The store or its URL.
    """

    def __init__(self, store: Store | str) -> None:
        self._given = store
        self._lock = threading.Lock()
        self._store = None if isinstance(store, str) else store
        self._closed = False

    def get(self) -> Store:
        """The store, open.

        Raises:
            StoreUnavailableError: It can not be reached now.
            StoreError: The replica is closed.
            AgentKitError: As ``open_store`` says.
        """
        store = self._store
        if store is not None:
            return store
        with self._lock:
            self.check_open()
            if self._store is None:
                self._store = open_store(str(self._given))
            return self._store

    def check_open(self) -> None:
        """Say so where the replica is closed.

        Raises:
            StoreError: It is.
        """
        if self._closed:
            raise StoreError("this replica is closed; make a new one")

    def in_fork(self) -> Source:
        """The source for a process that was forked: a connection is not carried across.

        A store that was given open stays the one that it is, and says itself if it can not go on;
        so does one in memory, of which the fork has a copy.
        """
        return Source(self._store if isinstance(self._store, MemoryStore) else self._given)

    def close(self) -> None:
        """Close the store, if it is open."""
        with self._lock:
            self._closed = True
            if self._store is not None:
                self._store.close()
