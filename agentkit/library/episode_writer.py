"""``EpisodeWriter``: episodes are taken at once, gathered, and written to the store by a thread."""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Self

from agentkit.episodes import Episode
from agentkit.episodes.files import BrokenLine, encode_episode, read_episodes
from agentkit.episodes.replacing import for_owner_here, sync_folder
from agentkit.errors import StoreError, StoreUnavailableError, UsageError
from agentkit.library.changes import check_filter, matches
from agentkit.library.episode_stores import deliver, error_text
from agentkit.library.store import EpisodeFilter, EpisodeStore

logger = logging.getLogger(__name__)

_BATCH_BYTES = 4 * 1024 * 1024
"""Most bytes written in one step, as JSON text; a bigger episode is a batch of its own."""

_LONGEST_PAUSE = 100
"""The longest pause of a store that is away, in first ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WriterSettings:
    """How episodes are gathered, and what happens while the store is away.

    Attributes:
        batch_count: Most episodes written in one step.
        linger_seconds: How long an episode waits for others before it is written.
        max_count: Most episodes held in memory.
        max_bytes: Most bytes of them, as JSON text; a bigger episode is held alone.
        wait_seconds: How long it waits for room before all that is held goes to a file.
        pause_seconds: Pause after the first failure of the store; it doubles each time, up to a
            hundred times as much.
        close_seconds: How long ``close`` tries to reach the store before it spills the rest.
    """

    batch_count: int = 256
    linger_seconds: float = 0.05
    max_count: int = 10_000
    max_bytes: int = 64 * 1024 * 1024
    wait_seconds: float = 10.0
    pause_seconds: float = 0.1
    close_seconds: float = 5.0

    def __post_init__(self) -> None:
        for setting in fields(self):
            value, least = getattr(self, setting.name), int(setting.type == "int")
            if not value >= least:
                raise UsageError(f"{setting.name} is {least} or more; got {value!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class WriterState:
    """How a writer stands, for metrics and alarms.

    Attributes:
        pending: Episodes in memory that the store has not got yet.
        pending_bytes: Their size as JSON text.
        oldest_seconds: How long the oldest of them has waited; 0 when there is none.
        spilled: Episodes in files that the store has not got yet, those of earlier programs
            included.
        refused: Episodes that the store would not take, set aside in a file since the start.
        written: Episodes given to the store since the start.
        failures: Failed attempts in a row; 0 when the last one worked.
        last_error: What the last failure said; kept when the store is back.
    """

    pending: int = 0
    pending_bytes: int = 0
    oldest_seconds: float = 0.0
    spilled: int = 0
    refused: int = 0
    written: int = 0
    failures: int = 0
    last_error: str = ""


@dataclass(kw_only=True, slots=True)
class _Pending:
    """An episode that waits to be written.

    Attributes:
        episode: The episode.
        line: The same as a line of JSON, as it was when it came: what it holds may be changed in
            place meanwhile, and then a file of many must not fail at one.
        since: When it came, on the monotonic clock.
        number: Its place among those that a writer took, from 1.
    """

    episode: Episode
    line: bytes
    since: float = field(default_factory=time.monotonic)
    number: int = 0

    @classmethod
    def of(cls, episode: Episode) -> _Pending:
        """Write an episode down; ``EpisodeFormatError`` for a value that JSON can not hold."""
        return cls(episode=episode, line=encode_episode(episode).encode())


@dataclass(frozen=True, kw_only=True, slots=True)
class _SpilledFile:
    """A file of episodes that the store has not got yet.

    Attributes:
        path: The file.
        lock: The same, open and locked until the store has all of it.
        count: Episodes in it.
    """

    path: Path
    lock: BinaryIO
    count: int

    def read(self, on_broken: Callable[[BrokenLine], None] = lambda _: None) -> Iterator[Episode]:
        """The episodes in order; none when the file is gone, for then the store has them.

        Args:
            on_broken: Told of each line that is no episode, as a crash leaves it.
        """
        try:
            yield from read_episodes(self.path, on_broken=on_broken)
        except FileNotFoundError:
            return


_OURS = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}-\d{6,}\.jsonl")
_CAN_LOCK = find_spec("fcntl") is not None


class _SpillFolder:
    """Files of one writer, and those that were left by others.

    A file is locked for as long as the program lives that looks after it.

    Args:
        folder: Where they are; it is made when something is spilled.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._name = f"{time.time_ns():016x}-{os.urandom(4).hex()}"
        self._made = 0

    def write(self, episodes: Sequence[_Pending]) -> _SpilledFile:
        """Write episodes to a new file and wait until the disk has it.

        Raises:
            OSError: The file can not be written; what was written of it is deleted.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            self._made += 1
            path = self.folder / f"{self._name}-{self._made:06}.jsonl"
            file = open(path, "xb", opener=for_owner_here)  # noqa: SIM115 - it is held
            if _lock(file):
                break
            file.close()  # one that starts found it empty, and deletes it
        try:
            file.writelines(pending.line + b"\n" for pending in episodes)
            file.flush()
            os.fsync(file.fileno())
            sync_folder(self.folder)
        except BaseException:  # Ctrl-C too: what is held is written again later
            path.unlink(missing_ok=True)
            file.close()
            raise
        if not _CAN_LOCK:
            file.close()
        return _SpilledFile(path=path, lock=file, count=len(episodes))

    def refuse(self, line: bytes, reason: str) -> Path:
        """Set an episode aside that the store will never take, with the reason.

        Raises:
            OSError: The file can not be written; it is as before.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"refused-{self._name}.jsonl"
        with open(path, "ab", buffering=0, opener=for_owner_here) as file:
            before = file.tell()
            try:
                file.write(b'{"reason":%b,"episode":%b}\n' % (json.dumps(reason).encode(), line))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(before)
                raise
        return path

    def left_over(self) -> Iterator[_SpilledFile]:
        """The files of writers that ended, the oldest first; they are ours from now on.

        We make no links: one that lies here leads to something of somebody else.
        """
        paths = self.folder.glob("*.jsonl") if _CAN_LOCK else ()
        for path in sorted(one for one in paths if _OURS.fullmatch(one.name)):
            try:
                file = open(path, "rb", opener=for_owner_here)  # noqa: SIM115 - it is held
            except OSError as error:  # gone, a link, or of another user's program
                logger.warning("episodes that wait in %s are left alone: %s", path, error)
                continue
            if _lock(file) and os.fstat(file.fileno()).st_nlink:  # else its owner is just done
                count = sum(1 for line in file if line.strip())
                yield _SpilledFile(path=path, lock=file, count=count)
            else:
                file.close()

    def done(self, file: _SpilledFile, broken: Sequence[BrokenLine]) -> None:
        """Delete a file that the store has all of; one with broken lines is put aside instead."""
        try:
            if broken:
                aside = file.path.with_suffix(".broken")
                file.path.rename(aside)
                logger.warning("%s is kept, not all of it are episodes: %s", aside, broken[0])
            else:
                file.path.unlink()
        except FileNotFoundError:  # whoever took it has what was in it
            logger.warning("%s was taken away while it waited for the store", file.path)
        file.lock.close()


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed or the program dies; whether nobody else had."""
    if not _CAN_LOCK:  # nobody else's files are taken in here
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_STATE_SECONDS = 0.02


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
        self._store = store
        self._settings = settings or WriterSettings()
        self._redact = redact
        self._folder = _SpillFolder(spill)
        self._process = os.getpid()
        self._is_closed = False
        self._changed = threading.Condition()  # held to touch what follows
        self._held: dict[str, _Pending] = {}  # by id
        self._held_bytes = self._added = 0
        self._spilled = deque(self._folder.left_over())
        self._flushing = 0
        self._ends_at: float | None = None
        self._written = self._refused = self._failures = 0
        self._last_error = ""
        self._last_state = self._current_state()
        # a program may end with the store away; then what waits is spilled
        self._thread = threading.Thread(target=self._run, name="episode-writer", daemon=True)
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
        """How the writer stands now, or stood when a file was begun that is still being written.

        Raises:
            StoreError: This is a fork of the process that made the writer.
        """
        self._check_process()
        if self._changed.acquire(timeout=_STATE_SECONDS):  # an event loop may ask
            try:
                self._last_state = self._current_state()
            finally:
                self._changed.release()
        return self._last_state

    def append(self, episode: Episode) -> None:
        """Take one episode; see ``append_many``."""
        self.append_many((episode,))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Take episodes in this order, all of them or none; ids that are pending are ignored.

        Where they do not fit, this waits until the store took enough of what is there.

        Raises:
            EpisodeFormatError: One holds a value that JSON can not.
            StoreUnavailableError: There is no room, and the file for what is held can not be
                written. None was taken.
            StoreError: The writer is closed.
        """
        self._check_process()
        redacted = episodes if self._redact is None else map(self._redact, episodes)
        coming = tuple(map(_Pending.of, redacted))
        with self._changed:
            self._check_open()
            self._make_room(coming)
            for pending in coming:
                if pending.episode.episode_id not in self._held:
                    pending.number = self._added = self._added + 1
                    self._held[pending.episode.episode_id] = pending
                    self._held_bytes += len(pending.line)
            self._changed.notify_all()

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, pending or kept, or None."""
        waiting = self._waiting()
        kept = self._store.get(episode_id)
        if kept is not None:
            return kept
        return next((one for one in waiting if one.episode_id == episode_id), None)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, pending ones included, each once.

        Those that are pending now are younger than all that the store has, and some may reach it
        while this looks.
        """
        check_filter(matching)
        waiting = {one.episode_id: one for one in self._waiting() if matches(one, matching)}
        kept = self._store.select(matching)
        rest = (one for one in kept if one.episode_id not in waiting)
        if matching.oldest_first:
            return islice(chain(rest, waiting.values()), matching.limit)
        return islice(chain(reversed(waiting.values()), rest), matching.limit)

    def flush(self, *, timeout_seconds: float = 60.0) -> None:
        """Wait until the store has everything that was appended before.

        Raises:
            StoreUnavailableError: It did not get it in time. Nothing is lost: it is tried further.
            StoreError: The writer is closed.
        """
        self._check_process()
        with self._changed:
            self._check_open()
            until = self._added
            if not self._wait_hurrying(lambda: self._is_sent(until), timeout_seconds):
                raise StoreUnavailableError(
                    f"not all episodes reached the store within {timeout_seconds:g} s: "
                    f"{self._standing()}. They are kept and tried again; call flush again, or "
                    "close to write them to a file"
                )

    def close(self) -> None:
        """Write everything, to a file where the store is away, and close the store.

        A second call does nothing, unless the first one raised.

        Raises:
            StoreUnavailableError: The store is away and the file can not be written. All is still
                held: make room, then close again.
        """
        if self._process != os.getpid() or self._is_closed:
            return
        with self._changed:
            self._ends_at = time.monotonic() + self._settings.close_seconds
            self._changed.notify_all()
        self._thread.join(self._settings.close_seconds + 1)  # a store may hang
        with self._changed:
            if self._held:
                self._spill()
            elif self._spilled:
                logger.warning("episodes wait for the next start: %s", self._standing())
        self._is_closed = True
        atexit.unregister(self.close)
        for file in self._spilled:
            file.lock.close()  # others may take in what is left
        self._store.close()

    def _waiting(self) -> Iterator[Episode]:
        """What is on its way now, oldest first: in files, then in memory."""
        self._check_process()
        with self._changed:
            self._check_open()
            files = tuple(self._spilled)
            held = tuple(pending.episode for pending in self._held.values())
        return chain(chain.from_iterable(file.read() for file in files), held)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise StoreError(
                f"this writer of episodes was made by process {self._process} and is used by its "
                f"fork {os.getpid()}, where its thread does not run; make one in each process"
            )

    # With the lock held.

    def _check_open(self) -> None:
        if self._ends_at is not None:
            raise StoreError("this writer of episodes is closed; make a new one with EpisodeWriter")

    def _current_state(self) -> WriterState:
        oldest = next((pending.since for pending in self._held.values()), None)
        return WriterState(
            pending=len(self._held),
            pending_bytes=self._held_bytes,
            oldest_seconds=0.0 if oldest is None else time.monotonic() - oldest,
            spilled=sum(file.count for file in self._spilled),
            refused=self._refused,
            written=self._written,
            failures=self._failures,
            last_error=self._last_error,
        )

    def _wait_hurrying(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Wait for something, while the sender does not linger; whether it came about."""
        self._flushing += 1
        self._changed.notify_all()
        try:
            return self._changed.wait_for(is_done, seconds)
        finally:
            self._flushing -= 1

    def _make_room(self, coming: Sequence[_Pending]) -> None:
        if self._fits(coming):
            return
        self._wait_hurrying(
            lambda: self._fits(coming) or self._ends_at is not None, self._settings.wait_seconds
        )
        self._check_open()
        if not self._fits(coming):
            self._spill()

    def _fits(self, coming: Sequence[_Pending]) -> bool:
        """Whether there is room; one that is bigger than all of it is held alone."""
        settings = self._settings
        size = sum(len(pending.line) for pending in coming)
        return not self._held or (
            len(self._held) + len(coming) <= settings.max_count
            and self._held_bytes + size <= settings.max_bytes
        )

    def _drop(self, done: Iterable[_Pending]) -> None:
        """Forget episodes in memory; those that went another way meanwhile do not count."""
        for pending in done:
            if self._held.pop(pending.episode.episode_id, None) is not None:
                self._held_bytes -= len(pending.line)

    def _spill(self) -> None:
        """Write all that is in memory to a file, which comes before whatever comes later."""
        held = tuple(self._held.values())
        try:
            file = self._folder.write(held)
        except OSError as error:
            raise StoreUnavailableError(
                f"the store is away and {self._folder.folder} can not be written ({error}): "
                f"{self._standing()}. Nothing is lost, it is held in memory; make room, then try "
                "again"
            ) from error
        self._spilled.append(file)
        self._drop(held)
        why = self._last_error or "it was too slow"
        logger.warning("%d episodes wait in %s for their store: %s", file.count, file.path, why)

    def _is_sent(self, until: int) -> bool:
        """Whether the episodes up to a number are gone; files come before what is in memory."""
        first = next((one.number for one in self._held.values()), until + 1)
        return not self._spilled and first > until

    def _is_worth_sending(self) -> bool:
        """Whether there is a batch, or somebody waits."""
        settings = self._settings
        is_full = len(self._held) >= min(settings.batch_count, settings.max_count)
        is_big = self._held_bytes >= min(_BATCH_BYTES, settings.max_bytes)
        return is_full or is_big or self._flushing > 0 or self._ends_at is not None

    def _is_over(self) -> bool:
        """Whether no more is taken and the sender had its time."""
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def _standing(self) -> str:
        files = ", ".join(str(file.path) for file in self._spilled)
        count = sum(file.count for file in self._spilled)
        return (
            f"{len(self._held)} in memory ({self._held_bytes:,} bytes), {count} in files"
            + (f" ({files})" if files else "")
            + (f"; the store said: {self._last_error}" if self._last_error else "")
        )

    # In the thread that sends.

    def _run(self) -> None:
        """Send what comes, until there is nothing left after the end or the time is over."""
        while self._wait_for_work():
            try:
                with self._changed:
                    file = self._spilled[0] if self._spilled else None
                    batch = self._next_batch()
                if file is not None:
                    self._send_file(file)
                else:
                    done = batch[: self._send(batch)]
                    with self._changed:
                        self._drop(done)
                        self._changed.notify_all()
            except Exception as error:  # without this thread all would wait for ever
                logger.exception("the writer of episodes met what it does not know, and goes on")
                self._pause(f"{type(error).__name__}: {error}")

    def _wait_for_work(self) -> bool:
        """Wait for something to send, and a little for more of it; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._held or self._spilled or self._ends_at is not None)
            if not (self._held or self._spilled) or self._is_over():
                return False
            if not self._spilled:
                self._changed.wait_for(self._is_worth_sending, self._settings.linger_seconds)
            return True

    def _next_batch(self) -> Sequence[_Pending]:
        """The first episodes in memory, as many as fit; one at least."""
        found: list[_Pending] = []
        size = _BATCH_BYTES
        for pending in self._held.values():
            size -= len(pending.line)
            if found and (len(found) == self._settings.batch_count or size < 0):
                break
            found.append(pending)
        return found

    def _send_file(self, file: _SpilledFile) -> None:
        """Send the episodes of a file; all of them again later where that is broken off."""
        broken: list[BrokenLine] = []
        try:
            for batch in _batches(file.read(broken.append), self._settings):
                left = batch
                while left:
                    if self._is_over():
                        return
                    left = left[self._send(left) :]
            self._folder.done(file, broken)
        except OSError as error:
            self._pause(f"{file.path} can not be read or removed: {error}")
            return
        with self._changed:
            self._spilled.popleft()
            self._changed.notify_all()
        logger.info("the store has the %d episodes of %s", file.count, file.path)

    def _send(self, batch: Sequence[_Pending]) -> int:
        """How many of a batch are done with; pauses where something went wrong."""
        episodes = [pending.episode for pending in batch]
        delivered = deliver(self._store, episodes, lambda at, why: self._refuse(batch[at], why))
        with self._changed:
            self._written += delivered.written
            if delivered.error is None and self._failures:
                logger.info("the store takes episodes again after %d failures", self._failures)
                self._failures = 0
        if delivered.error is not None:
            self._pause(error_text(delivered.error))
        return delivered.count

    def _refuse(self, pending: _Pending, error: Exception) -> None:
        reason = error_text(error)
        path, name = self._folder.refuse(pending.line, reason), pending.episode.episode_id
        with self._changed:
            self._refused += 1
        logger.error("the store refuses episode %r, see %s: %s", name, path, reason)

    def _pause(self, error: str) -> None:
        """The store is away: pause, longer each time, but not beyond the end."""
        settings = self._settings
        with self._changed:
            self._failures, self._last_error = self._failures + 1, error
            if self._failures == 1:
                logger.warning("episodes wait for their store and are tried again: %s", error)
            doubled = min(2 ** min(self._failures - 1, 30), _LONGEST_PAUSE)
            pause, ends_at = settings.pause_seconds * doubled, self._ends_at
            if ends_at is not None:
                pause = min(settings.pause_seconds, ends_at - time.monotonic())
            self._changed.wait_for(lambda: self._ends_at != ends_at, max(pause, 0))


def writer_of(store: object) -> EpisodeWriter | None:
    """The writer through which a store keeps episodes, if it was made ``with_episodes`` of one.

    Example:
        >>> print(writer_of("memory:"))
        None
    """
    episodes = getattr(store, "episodes", store)
    return episodes if isinstance(episodes, EpisodeWriter) else None


def _batches(episodes: Iterator[Episode], settings: WriterSettings) -> Iterator[Sequence[_Pending]]:
    """Episodes in groups as they are sent, without holding more than one."""
    some: list[_Pending] = []
    for episode in episodes:
        some.append(_Pending.of(episode))
        size = sum(len(pending.line) for pending in some)
        if len(some) >= settings.batch_count or size >= _BATCH_BYTES:
            yield some
            some = []
    if some:
        yield some
