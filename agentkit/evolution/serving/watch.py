"""``LedgerWatch``: what the ledger of a store says, looked at from time to time."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable

from agentkit.errors import StoreError
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.library.replicas import replica_of
from agentkit.library.store import EventStore

logger = logging.getLogger(__name__)


class LedgerWatch:
    """Follows the events of a store. Any number of runs, loops and threads may share one.

    A ``Replica`` knows by itself whether there are later events, so that a kill switch works as
    soon as it has noticed, and runs ask nobody while there is nothing new.

    Args:
        store: Where the events are kept.
        refresh_seconds: How old an answer may be; a kill switch works after this time at the
            latest. 0 looks each time.
        max_age_seconds: For how long the last answer counts while the store can not be read.
        clock: Seconds of a clock that never goes backwards.

    Attributes:
        errors: How often the store could not be read; each was logged.
    """

    def __init__(
        self,
        store: EventStore,
        *,
        refresh_seconds: float = 5.0,
        max_age_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._replica = replica_of(store)
        self._refresh_seconds = refresh_seconds
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None
        self._read_at = 0.0
        self._tried_at = 0.0
        self.errors = 0

    @property
    def last(self) -> Ledger | None:
        """What was read last, however old it is; None before the first time."""
        return self._ledger

    @property
    def is_fresh(self) -> bool:
        """Whether ``current`` answers without asking the store."""
        if self._ledger is None:
            return False
        if self._is_behind(self._ledger) and self._tried_at == self._read_at:
            return False
        return min(self._age(self._ledger), self._clock() - self._tried_at) < self._refresh_seconds

    @property
    def is_trusted(self) -> bool:
        """Whether what was read last may be acted on."""
        longest = max(self._max_age_seconds, self._refresh_seconds)
        return self._ledger is not None and self._age(self._ledger) <= longest

    def _age(self, ledger: Ledger) -> float:
        """Time since these were known to be all events."""
        age = self._clock() - self._read_at
        if self._replica is None or self._replica.last_event is None or self._is_behind(ledger):
            return age
        return min(age, self._replica.staleness_seconds)

    def _is_behind(self, ledger: Ledger) -> bool:
        """Whether the replica knows of later events."""
        last = None if self._replica is None else self._replica.last_event
        return last is not None and last > ledger.sequence

    def _is_known_to_be_away(self) -> bool:
        """Whether a replica found that the store does not answer; it looks for it, no run does."""
        return self._replica is not None and self._replica.status.state == "away"

    async def current(self) -> Ledger:
        """The ledger, at most ``refresh_seconds`` old unless the store can not be read.

        Raises:
            StoreError: The store could not be read, and never was.
        """
        known = self._ledger
        if known is not None and (self.is_fresh or self._is_known_to_be_away()):
            return known
        return await asyncio.to_thread(self.read)

    def read(self) -> Ledger:
        """As ``current``, for callers in a thread.

        Raises:
            StoreError: The store could not be read, and never was.
        """
        with self._lock:
            known = self._ledger
            if known is not None and self.is_fresh:  # another thread was faster
                return known
            self._tried_at = self._clock()
            try:
                events = self._store.events(after=0 if known is None else known.sequence)
                self._ledger = (known or Ledger()).after(events)
            except StoreError:
                self.errors += 1
                if known is None:
                    raise
                logger.exception("the events can not be read; what was read last counts on")
                return known
            self._read_at = self._tried_at
            return self._ledger
