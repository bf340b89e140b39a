"""``Newest``: the newest snapshot of a remote library; it stays when the server is away."""

from __future__ import annotations

import logging
import threading
import time

from agentkit.errors import StoreError, StoreFormatError
from agentkit.library.remote.asking import LibraryClient
from agentkit.library.remote.bodies import Bounds
from agentkit.library.remote.cache import LibraryCache
from agentkit.library.remote.catching_up import CatchingUp, Known, Trust
from agentkit.library.remote.connection import Connection

_LOG = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
"""A server that was away is not asked again for so long, so that nobody waits for it twice."""


class Newest:
    """What is known of one library. Several threads may ask; one of them asks the server.

    Args:
        connection: To the server.
        cache: What is known from earlier, on disk.
        trust: What has to be shown before something is taken up.
        bounds: How much is taken from the server.
        name: Of the library, for the log.

    Attributes:
        fault: Why the last try to hear from the server failed; None when it did not.
        heard_at: When the server last confirmed what is known, by ``time.monotonic``; None when
            it never did.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        cache: LibraryCache,
        trust: Trust,
        bounds: Bounds,
        name: str,
    ) -> None:
        self.fault: StoreError | None = None
        self.heard_at: float | None = None
        self._connection = connection
        self._cache = cache
        self._trust = trust
        self._bounds = bounds
        self._name = name
        self._turn = threading.Lock()
        self._known = Known()
        self._has_begun = False
        self._asked_at = self._failed_at = float("-inf")

    def known(self, *, with_events: bool = False, is_patient: bool = False) -> Known:
        """What is known once the server was asked, or did not answer.

        Args:
            with_events: Whether the chain of events is wanted to its end.
            is_patient: Whether a server that just failed is asked again.

        Raises:
            StoreError: The server can not be asked, and nothing was known before.
        """
        came = time.monotonic()
        with self._turn:
            self._begin()
            known = self._known
            if self._asked_at >= came and (known.has_all_events or not with_events):
                return known  # another thread asked meanwhile
            if known.is_heard and not is_patient and self._rests():
                return known
            try:
                self._ask(with_events=with_events)
            except StoreError as error:
                self._fail(error)
            return self._known

    def close(self) -> None:
        """Break off what is under way, and close the cache. A second call does nothing."""
        self._connection.close()
        with self._turn:
            self._cache.close()

    def _rests(self) -> bool:
        return time.monotonic() - self._failed_at < _PAUSE_SECONDS

    def _begin(self) -> None:
        """Take up what was kept on disk, as if it had just come."""
        if self._has_begun:
            return
        self._has_begun = True
        kept = self._cache.read()
        if kept is None:
            return
        try:
            self._known = self._catching_up().checked(kept)
        except StoreError as error:
            _LOG.warning("what was kept of %s is of no use now: %s", self._name, error)

    def _ask(self, *, with_events: bool) -> None:
        began, before = time.monotonic(), self._known
        try:
            known = self._catching_up().after(before, with_events=with_events)
        except StoreFormatError as error:
            # A cache on the way may hold what the server says no longer.
            _LOG.info("asking %s again, past caches on the way: %s", self._name, error)
            known = self._catching_up(is_fresh=True).after(before, with_events=with_events)
        if self.fault is not None:
            _LOG.warning("%s is back, at library version %d", self._name, known.head.version)
        self._known, self.fault = known, None
        self._asked_at, self.heard_at = began, time.monotonic()
        if (known.head, len(known.events)) != (before.head, len(before.events)):
            self._cache.keep(known)

    def _catching_up(self, *, is_fresh: bool = False) -> CatchingUp:
        client = LibraryClient(self._connection, bounds=self._bounds, is_fresh=is_fresh)
        return CatchingUp(client, self._trust)

    def _fail(self, error: StoreError) -> None:
        """Keep what is known and say so; without anything known there is nothing to keep."""
        is_news = type(self.fault) is not type(error)
        self.fault, self._failed_at = error, time.monotonic()
        if not self._known.is_heard or self._connection.is_closed:
            raise error
        if is_news:
            version = self._known.head.version
            _LOG.warning("the library stays at version %d, as last heard: %s", version, error)
