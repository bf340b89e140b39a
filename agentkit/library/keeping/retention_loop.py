"""``RetentionLoop``: old episodes go every now and then, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Self

from agentkit.errors import UsageError
from agentkit.library.abilities import EpisodeVolume, Pruning, Retention

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionState:
    """What a loop has done.

    Attributes:
        rounds: How often it looked.
        gone: What it deleted, all rounds together.
        failures: Failed rounds in a row; 0 when the last one worked.
        last_error: What the last failure said.
    """

    rounds: int = 0
    gone: EpisodeVolume = field(default_factory=lambda: EpisodeVolume(count=0, bytes=0))
    failures: int = 0
    last_error: str = ""


class RetentionLoop:
    """Prunes a store at once and then every ``every_seconds``, until it is closed.

    A round that fails, since the store is away, is said in the log and made up for by the next one.
    Several programs may run one each: they delete what one would have.

    Args:
        store: The store; the loop does not close it.
        retention: What may stay.
        every_seconds: From the end of one round to the next.

    Raises:
        UsageError: The store can not let episodes go, or the time is no pause.

    Example:
        >>> from datetime import timedelta
        >>> from agentkit import open_store
        >>> month = Retention(max_age=timedelta(days=30))
        >>> with RetentionLoop(open_store("memory:"), month) as loop:
        ...     loop.state.failures
        0
    """

    def __init__(
        self, store: object, retention: Retention, *, every_seconds: float = 600.0
    ) -> None:
        if not every_seconds > 0:
            raise UsageError(f"every_seconds is more than 0; got {every_seconds!r}")
        self._store = pruning(store)
        self._retention = retention
        self._every_seconds = every_seconds
        self._stop = threading.Event()
        self._state = RetentionState()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> RetentionState:
        """What it has done so far."""
        return self._state

    def close(self) -> None:
        """Stop; a round that has begun is finished. A second call does nothing."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._state = self._after_a_round()
            if self._stop.wait(self._every_seconds):
                return

    def _after_a_round(self) -> RetentionState:
        before = self._state
        try:
            gone = self._store.prune(self._retention)
        except Exception as error:  # noqa: BLE001 - the next round makes up for it
            said = f"{type(error).__name__}: {error}"
            logger.warning("old episodes could not be deleted, it is tried again: %s", said)
            return RetentionState(
                rounds=before.rounds + 1,
                gone=before.gone,
                failures=before.failures + 1,
                last_error=said,
            )
        if gone.count:
            logger.info("%d episodes of %d bytes were too old or too many", gone.count, gone.bytes)
        return RetentionState(
            rounds=before.rounds + 1,
            gone=EpisodeVolume(
                count=before.gone.count + gone.count, bytes=before.gone.bytes + gone.bytes
            ),
            last_error=before.last_error,
        )


def pruning(store: object) -> Pruning:
    """The store as one that can let episodes go.

    Raises:
        UsageError: It can not.
    """
    if not isinstance(store, Pruning):
        raise UsageError(
            f"{type(store).__name__} can not let episodes go: it has no method prune "
            "(agentkit.library.abilities.Pruning); use the retention of what keeps them"
        )
    return store
