"""``RemoteWatch``: hears of commits on the server, which answers as soon as there is news."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from agentkit.errors import StoreError
from agentkit.library.remote.asking import LibraryClient
from agentkit.library.remote.bodies import Bounds
from agentkit.library.remote.connection import Connection
from agentkit.library.remote.wire import LONGEST_WAIT_SECONDS, Head

_POLL_SECONDS = 1.0
"""How often a server is asked that answers at once, whatever it is asked to wait for."""


class RemoteWatch:
    """A ``Watch`` of a remote library, on a connection of its own. Any thread may close it.

    Args:
        connection: To the server.
        bounds: How much is taken from it.
        on_close: Called once, when it is closed.

    Raises:
        StoreUnavailableError: The server can not be reached.
    """

    def __init__(
        self, connection: Connection, *, bounds: Bounds, on_close: Callable[[RemoteWatch], None]
    ) -> None:
        self._connection = connection
        self._client = LibraryClient(connection, bounds=bounds)
        self._on_close = on_close
        self._closed = threading.Event()
        self._etag = ""
        self._head: Head | None = None
        try:
            self._is_other(0.0)
        except BaseException:
            connection.close()
            raise

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a commit; see ``Watch.wait``."""
        began = time.monotonic()
        until = began + timeout_seconds
        while not self._is_other(max(0.0, min(until - began, LONGEST_WAIT_SECONDS))):
            asked, began = began, time.monotonic()
            left = until - began
            if left <= 0:
                return False
            if began - asked < _POLL_SECONDS:
                self._closed.wait(min(left, _POLL_SECONDS))
                began = time.monotonic()
        return True

    def close(self) -> None:
        """End a wait, and hear nothing more. A second call does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self._connection.close()
            self._on_close(self)

    def _is_other(self, wait_seconds: float) -> bool:
        """Whether the head is another one than the last time."""
        if self._closed.is_set():
            raise StoreError(f"this watch on {self._connection} is closed; make a new one")
        answer = self._client.head(etag=self._etag, wait_seconds=wait_seconds)
        if answer is None:
            return False
        before, (self._head, self._etag) = self._head, answer
        return before != self._head
