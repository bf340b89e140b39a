"""``EpisodeWriter``: a store for episodes that gathers them and writes many at once."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Self

from agentkit.episodes import Episode
from agentkit.errors import StoreError
from agentkit.library.keeping.buffer import Pending
from agentkit.library.keeping.outbox import Outbox
from agentkit.library.keeping.pending_view import select_with_pending
from agentkit.library.keeping.sender import Sender
from agentkit.library.keeping.settings import WriterSettings, WriterState
from agentkit.library.keeping.spill import SpillFolder
from agentkit.library.store import EpisodeFilter, EpisodeStore


class EpisodeWriter:
    """Takes episodes at once and writes them to a store in batches, in a thread of its own.

    An appended episode is read by ``get`` and ``select`` at once and is safe when ``flush`` or
    ``close`` returned: in the store, or in a file. A process that is killed loses what came since.
    While the store is away episodes wait in memory; when the memory is full, appending waits; when
    that takes too long, and at the end, all that waits goes to a file of ``spill``. Files are taken
    in when the store is back, by this writer or the next one with that folder, before anything
    younger is written. So each session keeps its order, and since a store ignores an id that it
    knows, nothing comes twice.

    Args:
        store: Where episodes are kept. Closing the writer closes it.
        spill: A folder for files of episodes; several programs may share it.
        settings: How much to gather and how long to wait.
        redact: Applied to each episode before it is held anywhere.

    Example:
        >>> import tempfile
        >>> from agentkit import open_store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = EpisodeWriter(open_store("memory:"), spill=folder)
        ...     writer.append(Episode(episode_id="e1", request="Hi"))
        ...     read = writer.get("e1").request
        ...     writer.flush()
        ...     writer.close()
        >>> read
        'Hi'
    """

    def __init__(
        self,
        store: EpisodeStore,
        *,
        spill: str | os.PathLike[str],
        settings: WriterSettings | None = None,
        redact: Callable[[Episode], Episode] | None = None,
    ) -> None:
        settings = settings or WriterSettings()
        self._store = store
        self._redact = redact
        self._patience = settings.close_seconds + 1  # a store may hang
        self._folder = SpillFolder(spill)
        self._outbox = Outbox(self._folder, settings)
        self._process = os.getpid()
        self._is_closed = False
        self._thread = threading.Thread(
            target=Sender(store, self._outbox, self._folder, settings).run,
            name="episode-writer",
            daemon=True,  # a program may end with the store away; then what waits is spilled
        )
        self._thread.start()
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"EpisodeWriter({self._store!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> WriterState:
        """How the writer stands now.

        Raises:
            StoreError: This is a fork of the process that made the writer.
        """
        self._check_process()
        return self._outbox.state

    def append(self, episode: Episode) -> None:
        """Take one episode; see ``append_many``."""
        self.append_many((episode,))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Take episodes in this order, all of them or none; ids that are pending are ignored.

        Where they do not fit, this waits until the store took enough of what is there.

        Raises:
            EpisodeFormatError: One holds a value that JSON can not.
            StoreUnavailableError: There is no room, and ``when_full`` says not to wait, or the
                file for what is held can not be written. None was taken.
            StoreError: The writer is closed.
        """
        self._check_process()
        redacted = episodes if self._redact is None else map(self._redact, episodes)
        self._outbox.put(tuple(map(Pending.of, redacted)))

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, pending or kept, or None."""
        self._check_process()
        files, held = self._outbox.held()
        kept = self._store.get(episode_id)
        if kept is not None:
            return kept
        waiting = chain(chain.from_iterable(file.read() for file in files), held)
        return next((one for one in waiting if one.episode_id == episode_id), None)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, pending ones included."""
        self._check_process()
        files, held = self._outbox.held()
        waiting = chain(chain.from_iterable(file.read() for file in files), held)
        return select_with_pending(self._store, waiting, matching)

    def flush(self, *, timeout_seconds: float = 60.0) -> None:
        """Wait until the store has everything that was appended before.

        Raises:
            StoreUnavailableError: It did not get it in time. Nothing is lost: it is tried further.
            StoreError: The writer is closed.
        """
        self._check_process()
        self._outbox.wait_until_sent(timeout_seconds)

    def close(self) -> None:
        """Write everything, to a file where the store is away, and close the store.

        A second call does nothing, unless the first one raised.

        Raises:
            StoreUnavailableError: The store is away and the file can not be written. All is still
                held: make room, then close again.
        """
        if self._process != os.getpid() or self._is_closed:
            return
        self._outbox.end()
        self._thread.join(self._patience)
        self._outbox.spill_rest()
        self._is_closed = True
        atexit.unregister(self.close)
        self._folder.close()
        self._store.close()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise StoreError(
                f"this writer of episodes was made by process {self._process} and is used by its "
                f"fork {os.getpid()}, where its thread does not run; make one in each process"
            )


def writer_of(store: object) -> EpisodeWriter | None:
    """The writer through which a store keeps episodes, if it was made ``with_episodes`` of one.

    Example:
        >>> print(writer_of("memory:"))
        None
    """
    episodes = getattr(store, "episodes", store)
    return episodes if isinstance(episodes, EpisodeWriter) else None
