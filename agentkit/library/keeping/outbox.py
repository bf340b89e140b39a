"""What a writer holds: episodes in memory and in files, between those who bring and the sender."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence

from agentkit.episodes import Episode
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library.keeping.buffer import Buffer, Pending
from agentkit.library.keeping.settings import WriterSettings, WriterState
from agentkit.library.keeping.spill import SpilledFile, SpillFolder

logger = logging.getLogger(__name__)

_STATE_SECONDS = 0.02


class Outbox:
    """A queue of episodes with a bound, of which all but the youngest part may be in files.

    Safe to use from several threads; one of them sends.

    Args:
        folder: Where episodes go for which there is no room.
        settings: How much to hold and how long to wait.
    """

    def __init__(self, folder: SpillFolder, settings: WriterSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._changed = threading.Condition()
        self._buffer = Buffer()
        self._spilled = deque(folder.left_over())
        self._flushing = 0
        self._ends_at: float | None = None
        self._written = self._refused = self._failures = 0
        self._last_error = ""
        self._last_state = self._current_state()

    @property
    def state(self) -> WriterState:
        """How it stands now, or stood when a file was begun that is still being written."""
        if self._changed.acquire(timeout=_STATE_SECONDS):  # an event loop may ask
            try:
                self._last_state = self._current_state()
            finally:
                self._changed.release()
        return self._last_state

    def _current_state(self) -> WriterState:
        oldest = next(iter(self._buffer), None)
        return WriterState(
            pending=len(self._buffer),
            pending_bytes=self._buffer.bytes,
            oldest_seconds=0.0 if oldest is None else time.monotonic() - oldest.since,
            spilled=sum(file.count for file in self._spilled),
            refused=self._refused,
            written=self._written,
            failures=self._failures,
            last_error=self._last_error,
        )

    def held(self) -> tuple[Sequence[SpilledFile], Sequence[Episode]]:
        """What is on its way, oldest first: files, then episodes in memory.

        Raises:
            StoreError: The outbox is closed.
        """
        with self._changed:
            self._check_open()
            return tuple(self._spilled), tuple(pending.episode for pending in self._buffer)

    # For those who bring episodes.

    def put(self, coming: Sequence[Pending]) -> None:
        """Take episodes in this order; see ``EpisodeWriter.append_many``."""
        with self._changed:
            self._check_open()
            self._make_room(coming)
            for pending in coming:
                if pending.episode.episode_id not in self._buffer:
                    self._buffer.add(pending)
            self._changed.notify_all()

    def wait_until_sent(self, timeout_seconds: float) -> None:
        """Wait until everything that was put before is gone; see ``EpisodeWriter.flush``."""
        with self._changed:
            self._check_open()
            until = self._buffer.added
            self._flushing += 1
            self._changed.notify_all()
            try:
                is_sent = self._changed.wait_for(lambda: self._is_sent(until), timeout_seconds)
            finally:
                self._flushing -= 1
            if not is_sent:
                raise StoreUnavailableError(
                    f"not all episodes reached the store within {timeout_seconds:g} s: "
                    f"{self._standing()}. They are kept and tried again; call flush again, or "
                    "close to write them to a file"
                )

    def end(self) -> None:
        """Take no more; the sender has ``close_seconds`` for what is here."""
        with self._changed:
            self._ends_at = time.monotonic() + self._settings.close_seconds
            self._changed.notify_all()

    def spill_rest(self) -> None:
        """Write what is in memory to a file, after the sender ended.

        Raises:
            StoreUnavailableError: The file can not be written; all is still here.
        """
        with self._changed:
            if len(self._buffer):
                self._spill()
            elif self._spilled:
                logger.warning("episodes wait for the next start: %s", self._standing())

    # For the sender.

    def wait_for_work(self) -> bool:
        """Wait for something to send, and a little for more of it; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_any() or self._ends_at is not None)
            if not self._has_any() or self.is_over():
                return False
            if not self._spilled:
                self._changed.wait_for(self._is_worth_sending, self._settings.linger_seconds)
            return True

    def first_file(self) -> SpilledFile | None:
        """The file that is next; None when what is in memory is."""
        with self._changed:
            return self._spilled[0] if self._spilled else None

    def first_batch(self) -> Sequence[Pending]:
        """The episodes in memory that are next."""
        settings = self._settings
        with self._changed:
            return self._buffer.batch(count=settings.batch_count, size=settings.batch_bytes)

    def forget(self, done: Iterable[Pending]) -> None:
        """Let go of episodes that were in memory."""
        with self._changed:
            self._buffer.drop(done)
            self._changed.notify_all()

    def forget_first_file(self) -> None:
        """Let go of the first file."""
        with self._changed:
            self._spilled.popleft()
            self._changed.notify_all()

    def note_written(self, count: int) -> None:
        """The store took so many."""
        with self._changed:
            self._written += count

    def note_success(self) -> None:
        """An attempt worked."""
        with self._changed:
            if self._failures:
                logger.info("the store takes episodes again after %d failures", self._failures)
                self._failures = 0

    def note_refused(self) -> None:
        """One was set aside."""
        with self._changed:
            self._refused += 1

    def note_failure(self, error: str) -> None:
        """The store is away: pause, longer each time, but not beyond the end."""
        settings = self._settings
        with self._changed:
            self._failures, self._last_error = self._failures + 1, error
            if self._failures == 1:
                logger.warning("episodes wait for their store and are tried again: %s", error)
            pause = settings.first_pause_seconds * 2 ** min(self._failures - 1, 30)
            pause, ends_at = min(pause, settings.longest_pause_seconds), self._ends_at
            if ends_at is not None:
                pause = min(pause, settings.first_pause_seconds, ends_at - time.monotonic())
            self._changed.wait_for(lambda: self._ends_at != ends_at, max(pause, 0))

    def is_over(self) -> bool:
        """Whether no more is taken and the sender had its time."""
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    # What both need, with the lock held.

    def _check_open(self) -> None:
        if self._ends_at is not None:
            raise StoreError("this writer of episodes is closed; make a new one with EpisodeWriter")

    def _has_any(self) -> bool:
        return bool(self._spilled or len(self._buffer))

    def _is_worth_sending(self) -> bool:
        """Whether there is a batch, or somebody waits."""
        settings, held = self._settings, self._buffer
        is_full = len(held) >= min(settings.batch_count, settings.max_count)
        is_big = held.bytes >= min(settings.batch_bytes, settings.max_bytes)
        return is_full or is_big or self._flushing > 0 or self._ends_at is not None

    def _is_sent(self, until: int) -> bool:
        """Whether the episodes up to a number are gone; files come before what is in memory."""
        if any(file.first <= until for file in self._spilled):
            return False
        first = self._buffer.first
        return first is None or first > until

    def _make_room(self, coming: Sequence[Pending]) -> None:
        if self._fits(coming):
            return
        if self._settings.when_full == "raise":
            raise StoreUnavailableError(
                f"the writer of episodes is full: {self._standing()}. The episode was not taken; "
                "append it again later, or allow the writer to wait"
            )
        self._flushing += 1  # whoever waits for room wants no lingering
        self._changed.notify_all()
        try:
            self._changed.wait_for(
                lambda: self._fits(coming) or self._ends_at is not None,
                self._settings.wait_seconds,
            )
        finally:
            self._flushing -= 1
        self._check_open()
        if not self._fits(coming):
            self._spill()

    def _fits(self, coming: Sequence[Pending]) -> bool:
        """Whether there is room; one that is bigger than all of it is held alone."""
        held, settings = self._buffer, self._settings
        size = sum(pending.bytes for pending in coming)
        return not len(held) or (
            len(held) + len(coming) <= settings.max_count
            and held.bytes + size <= settings.max_bytes
        )

    def _spill(self) -> None:
        """Write all that is in memory to a file, which comes before whatever is put later."""
        held, first = tuple(self._buffer), self._buffer.first or 0
        try:
            file = self._folder.write(held, first=first)
        except OSError as error:
            raise StoreUnavailableError(
                f"the store is away and {self._folder.folder} can not be written ({error}): "
                f"{self._standing()}. Nothing is lost, it is held in memory; make room, then try "
                "again"
            ) from error
        self._spilled.append(file)
        self._buffer.drop(held)
        why = self._last_error or "it was too slow"
        logger.warning("%d episodes wait in %s for their store: %s", file.count, file.path, why)

    def _standing(self) -> str:
        files = ", ".join(str(file.path) for file in self._spilled)
        count = sum(file.count for file in self._spilled)
        return (
            f"{len(self._buffer)} in memory ({self._buffer.bytes:,} bytes), {count} in files"
            + (f" ({files})" if files else "")
            + (f"; the store said: {self._last_error}" if self._last_error else "")
        )
