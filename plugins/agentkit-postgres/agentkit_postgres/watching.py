"""``PostgresWatch``: hears commits by LISTEN, on a connection of its own."""

from __future__ import annotations

import threading
from time import monotonic

import psycopg
from psycopg import sql

from agentkit.errors import StoreError
from agentkit_postgres.connection import Connections, Link
from agentkit_postgres.failures import in_our_words

_LOOK_SECONDS = 0.25
"""How soon a wait sees that it was closed by another thread."""


class PostgresWatch:
    """Hears every commit in a store's schema; see ``agentkit.library.capabilities.Watch``.

    The server tells of a commit when it is done. A connection that broke is made again by the next
    wait, which ends at once then: what happened meanwhile was not heard.

    Args:
        connections: Of the store.

    Raises:
        StoreUnavailableError: The server can not be reached now.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._waiting = threading.Lock()  # held while the connection is in use
        self._closed = False
        self._link: Link | None = self._listening()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a commit by anybody; see ``Watch.wait``."""
        with self._waiting:
            self._check_open()
            if self._link is None:
                self._link = self._listening()
                return True
            try:
                return self._heard(self._link, timeout_seconds)
            except psycopg.Error as error:
                self._let_go()
                raise in_our_words(error, self._connections.address) from error

    def close(self) -> None:
        """Release the connection. A second call does nothing."""
        self._closed = True  # ends a wait of another thread soon
        if self._connections.is_ours:
            with self._waiting:
                self._let_go()

    def _heard(self, link: Link, timeout_seconds: float) -> bool:
        deadline = monotonic() + timeout_seconds
        while True:
            left = max(0.0, deadline - monotonic())
            if list(link.notifies(timeout=min(left, _LOOK_SECONDS), stop_after=1)):
                list(link.notifies(timeout=0))  # several commits are one reason to look
                return True
            if left <= _LOOK_SECONDS:
                return False
            self._check_open()

    def _listening(self) -> Link:
        link = self._connections.connected()
        channel = sql.Identifier(self._connections.address.schema)
        try:
            link.execute(sql.SQL("LISTEN {}").format(channel))
        except psycopg.Error as error:
            link.close()
            raise in_our_words(error, self._connections.address) from error
        return link

    def _let_go(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _check_open(self) -> None:
        self._connections.check_usable()
        if self._closed:
            raise StoreError("this watch is closed; begin another with watch()")
