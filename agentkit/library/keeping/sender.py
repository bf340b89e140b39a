"""The work of a writer's thread: what is in the outbox goes to the store, in order."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import BrokenLine
from agentkit.library.delivery import deliver, error_text
from agentkit.library.keeping.buffer import Buffer, Pending
from agentkit.library.keeping.outbox import Outbox
from agentkit.library.keeping.settings import WriterSettings
from agentkit.library.keeping.spill import SpilledFile, SpillFolder
from agentkit.library.store import EpisodeStore

logger = logging.getLogger(__name__)


class Sender:
    """Gives episodes to the store, again and again where it is away.

    Args:
        store: Where they go.
        outbox: Where they come from.
        folder: The files of the outbox.
        settings: How many to give at a time.
    """

    def __init__(
        self, store: EpisodeStore, outbox: Outbox, folder: SpillFolder, settings: WriterSettings
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._folder = folder
        self._settings = settings

    def run(self) -> None:
        """Send what comes, until there is nothing left after the end or the time is over."""
        while self._outbox.wait_for_work():
            try:
                self._send_next()
            except Exception as error:  # without this thread all would wait for ever
                logger.exception("the writer of episodes met what it does not know, and goes on")
                self._outbox.note_failure(f"{type(error).__name__}: {error}")

    def _send_next(self) -> None:
        file = self._outbox.first_file()
        if file is not None:
            self._send_file(file)
            return
        batch = self._outbox.first_batch()
        self._outbox.forget(batch[: self._send(batch)])

    def _send_file(self, file: SpilledFile) -> None:
        """Send the episodes of a file; all of them again later where that is broken off."""
        broken: list[BrokenLine] = []
        try:
            for batch in _batches(file.read(broken.append), self._settings):
                if not self._send_all(batch):
                    return
            self._folder.done(file, broken)
        except OSError as error:
            self._outbox.note_failure(f"{file.path} can not be read or removed: {error}")
            return
        self._outbox.forget_first_file()
        logger.info("the store has the %d episodes of %s", file.count, file.path)

    def _send_all(self, batch: Sequence[Pending]) -> bool:
        """Send a batch, however many attempts it takes; False when the time is over before."""
        while batch:
            if self._outbox.is_over():
                return False
            batch = batch[self._send(batch) :]
        return True

    def _send(self, batch: Sequence[Pending]) -> int:
        """How many of a batch are done with; pauses where something went wrong."""
        episodes = [pending.episode for pending in batch]
        delivered = deliver(self._store, episodes, lambda at, why: self._refuse(batch[at], why))
        self._outbox.note_written(delivered.written)
        if delivered.error is not None:
            self._outbox.note_failure(error_text(delivered.error))
        else:
            self._outbox.note_success()
        return delivered.count

    def _refuse(self, pending: Pending, error: Exception) -> None:
        reason = error_text(error)
        path, name = self._folder.refuse(pending.line, reason), pending.episode.episode_id
        self._outbox.note_refused()
        logger.error("the store refuses episode %r, see %s: %s", name, path, reason)


def _batches(episodes: Iterator[Episode], settings: WriterSettings) -> Iterator[Sequence[Pending]]:
    """Episodes in groups as they are sent, without holding more than one."""
    buffer = Buffer()
    for episode in episodes:
        buffer.add(Pending.of(episode))
        if len(buffer) >= settings.batch_count or buffer.bytes >= settings.batch_bytes:
            yield tuple(buffer)
            buffer = Buffer()
    if len(buffer):
        yield tuple(buffer)
