"""``RefreshLoop``: the thread that looks at a store again and again."""

from __future__ import annotations

import logging
import random
import threading
import time

from agentkit.library.abilities import Watch, Watchable
from agentkit.library.replicas.following import Following

logger = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 10.0
"""Most time between two looks for a store that is away, unless ``refresh_seconds`` is longer."""

_LONGEST_WAIT_SECONDS = 0.25
"""How long a wait for a hint may keep the thread from ending."""


class RefreshLoop:
    """Looks at a store every ``refresh_seconds``, and at once when the store gives a hint.

    Args:
        following: Looks, and knows what came of it.
        refresh_seconds: Time between two looks.
        hints: Whether to listen to the store.
    """

    def __init__(self, following: Following, *, refresh_seconds: float, hints: bool) -> None:
        self.hints_heard = 0
        self._following = following
        self._refresh_seconds = refresh_seconds
        self._listens = hints
        self._watch: Watch | None = None
        self._is_deaf = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agentkit-replica", daemon=True)

    def in_fork(self, following: Following) -> RefreshLoop:
        """The same for a process that was forked, not begun yet."""
        return RefreshLoop(following, refresh_seconds=self._refresh_seconds, hints=self._listens)

    @property
    def is_listening(self) -> bool:
        """Whether hints of the store are heard now."""
        return self._watch is not None and not self._is_deaf

    def start(self) -> None:
        """Begin, in a thread that does not keep the program from ending."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """End after what is being done; nobody waits for it."""
        self._stopping.set()

    def stop(self) -> None:
        """End, and wait for it. A store that hangs is not waited for longer than it may take."""
        self._stopping.set()
        watch = self._watch
        if watch is not None:
            watch.close()  # which ends a wait
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(8 * _LONGEST_WAIT_SECONDS)

    def _run(self) -> None:
        try:
            self._listen()
            while not self._stopping.is_set():
                self._following.look()
                failed = self._following.known.failed_last
                pause = pause_after(failed, refresh_seconds=self._refresh_seconds)
                self.hints_heard += self._heard_within(pause)
        finally:
            if self._watch is not None:
                self._watch.close()

    def _heard_within(self, seconds: float) -> bool:
        """Wait for the next look; True when a hint ended the wait."""
        until = time.monotonic() + seconds
        if self._watch is None or self._is_deaf or self._following.known.failed_last:
            self._stopping.wait(seconds)
            self._listen()
            return False
        while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
            try:
                if self._watch.wait(min(left, _LONGEST_WAIT_SECONDS)):
                    return True
            except Exception as error:  # noqa: BLE001 - whatever a driver raises, looks go on
                if not self._stopping.is_set():  # else the wait was ended
                    self._hear_nothing(error)
                return False  # what was to be heard may be lost, so look at once
        return False

    def _listen(self) -> None:
        """Begin to listen, or try to hear again; where that fails, looks find what is new."""
        if not self._listens or self._stopping.is_set():
            return
        try:
            if self._watch is None:
                store = self._following.source.get()
                self._watch = store.watch() if isinstance(store, Watchable) else None
            self._is_deaf = False
        except Exception as error:  # noqa: BLE001 - it is logged, and looks find what is new
            self._hear_nothing(error)

    def _hear_nothing(self, error: Exception) -> None:
        if not self._is_deaf:
            logger.info(
                "no hint of the store is heard (%s: %s); it is looked at every %g s",
                type(error).__name__,
                error,
                self._refresh_seconds,
            )
        self._is_deaf = True


def pause_after(failed: int, *, refresh_seconds: float) -> float:
    """Time to the next look: longer after each that failed, and not the same for all replicas.

    Example:
        >>> pause_after(0, refresh_seconds=1.0)
        1.0
        >>> 2.0 <= pause_after(3, refresh_seconds=1.0) <= 4.0
        True
    """
    if not failed:
        return refresh_seconds
    doubled = refresh_seconds * 2.0 ** min(failed - 1, 16)
    longest = max(refresh_seconds, LONGEST_PAUSE_SECONDS)
    return min(doubled, longest) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
