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
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Literal, Self

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import BrokenLine, encode_episode, read_episodes
from agentkit.episodes.replacing import for_owner, for_owner_here, sync_folder
from agentkit.errors import StoreError, StoreUnavailableError, UsageError
from agentkit.library.capabilities import deliver, error_text
from agentkit.library.changes import check_filter, matches
from agentkit.library.store import EpisodeFilter, EpisodeStore

WhenFull = Literal["wait", "raise"]
"""What appending to a full buffer does: wait for room and then spill, or raise at once."""

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class WriterSettings:
    """How episodes are gathered, and what happens while the store is away.

    Attributes:
        batch_count: Most episodes written in one step.
        batch_bytes: Most bytes of them, as JSON text; a bigger episode is a batch of its own.
        linger_seconds: How long an episode waits for others before it is written.
        max_count: Most episodes held in memory.
        max_bytes: Most bytes of them, as JSON text; a bigger episode is held alone.
        when_full: What appending to a full buffer does.
        wait_seconds: How long it waits for room before all that is held goes to a file.
        first_pause_seconds: Pause after the first failure of the store; it doubles each time.
        longest_pause_seconds: The longest of these pauses.
        close_seconds: How long ``close`` tries to reach the store before it spills the rest.
    """

    batch_count: int = 256
    batch_bytes: int = 4 * _MIB
    linger_seconds: float = 0.05
    max_count: int = 10_000
    max_bytes: int = 64 * _MIB
    when_full: WhenFull = "wait"
    wait_seconds: float = 10.0
    first_pause_seconds: float = 0.1
    longest_pause_seconds: float = 10.0
    close_seconds: float = 5.0

    def __post_init__(self) -> None:
        least = {"batch_count": 1, "batch_bytes": 1, "max_count": 1, "max_bytes": 1}
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name != "when_full" and not value >= least.get(setting.name, 0):
                raise UsageError(
                    f"{setting.name} is {least.get(setting.name, 0)} or more; got {value!r}"
                )
        if self.when_full not in {"wait", "raise"}:
            raise UsageError(f"when_full is 'wait' or 'raise'; got {self.when_full!r}")


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """An episode that waits to be written.

    Attributes:
        episode: The episode.
        line: The same as a line of JSON, as it was when it came: what it holds may be changed in
            place meanwhile, and then a file of many must not fail at one.
        since: When it came, on the monotonic clock.
    """

    episode: Episode
    line: bytes
    since: float = field(default_factory=time.monotonic)

    @property
    def bytes(self) -> int:
        """Its size as JSON text."""
        return len(self.line)

    @classmethod
    def of(cls, episode: Episode) -> Pending:
        """Write an episode down.

        Raises:
            EpisodeFormatError: It holds a value that JSON can not.
        """
        return cls(episode=episode, line=encode_episode(episode).encode())


class Buffer:
    """A queue with a size. It has no lock: its owner has one."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, Pending]] = {}
        self.bytes = 0
        """Size of all that is held."""
        self.added = 0
        """Number of the episode that came last, from 1."""

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, episode_id: object) -> bool:
        return episode_id in self._held

    def __iter__(self) -> Iterator[Pending]:
        return (pending for _, pending in self._held.values())

    @property
    def first(self) -> int | None:
        """Number of the episode that waits longest; None when nothing does."""
        return next((number for number, _ in self._held.values()), None)

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, if it is held."""
        found = self._held.get(episode_id)
        return None if found is None else found[1].episode

    def add(self, pending: Pending) -> None:
        """Put an episode at the end."""
        self.added += 1
        self._held[pending.episode.episode_id] = (self.added, pending)
        self.bytes += pending.bytes

    def batch(self, *, count: int, size: int) -> Sequence[Pending]:
        """The first episodes, as many as fit; one at least."""
        found: list[Pending] = []
        for pending in self:
            size -= pending.bytes
            if found and (len(found) == count or size < 0):
                break
            found.append(pending)
        return found

    def drop(self, done: Iterable[Pending]) -> None:
        """Forget episodes; those that went another way meanwhile do not count."""
        for pending in done:
            if self._held.pop(pending.episode.episode_id, None) is not None:
                self.bytes -= pending.bytes


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


def select_with_pending(
    store: EpisodeStore, pending: Iterable[Episode], matching: EpisodeFilter
) -> Iterator[Episode]:
    """What ``store.select`` gives once it has the pending episodes.

    Args:
        store: Where the older ones are.
        pending: Those on their way, oldest first, as they were before this call: one that arrives
            meanwhile comes once.
        matching: Which ones to read.
    """
    check_filter(matching)
    waiting = {one.episode_id: one for one in pending if matches(one, matching)}
    # The youngest first: they arrive in order, so that what is left are the last ones, although
    # some arrive while this looks.
    for episode_id in tuple(reversed(waiting)):
        if store.get(episode_id) is not None:  # it arrived, or its id was known before
            del waiting[episode_id]
    if not waiting:
        return store.select(matching)
    limit = None if matching.limit is None else matching.limit + len(waiting)
    kept = store.select(replace(matching, limit=limit))
    if matching.oldest_first:
        found = _then(kept, waiting)
    else:
        rest = (one for one in kept if one.episode_id not in waiting)
        found = chain(reversed(waiting.values()), rest)
    return islice(found, matching.limit)


def _then(kept: Iterable[Episode], waiting: dict[str, Episode]) -> Iterator[Episode]:
    """The kept episodes, then those of the waiting ones that were not among them."""
    left = dict(waiting)
    for episode in kept:
        left.pop(episode.episode_id, None)
        yield episode
    yield from left.values()


_LOCK = ".lock"
_CAN_LOCK = find_spec("fcntl") is not None
_FOLDER_MODE = 0o700
_OURS = re.compile(r"([0-9a-f]{16}-[0-9a-f]{8})(?:-\d{6,}\.jsonl|\.lock)")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpilledFile:
    """A file of episodes that the store has not got yet.

    Attributes:
        path: The file.
        count: Episodes in it.
        first: Number of the first one in the writer's order; 0 for those of earlier programs.
    """

    path: Path
    count: int
    first: int = 0

    def read(self, on_broken: Callable[[BrokenLine], None] | None = None) -> Iterator[Episode]:
        """The episodes in order; none when the file is gone, for then the store has them.

        Args:
            on_broken: Told of each line that is no episode, as a crash leaves it.
        """
        try:
            yield from read_episodes(self.path, on_broken=on_broken or _no_matter)
        except FileNotFoundError:
            return


class SpillFolder:
    """Files of one writer, and those that were left by others.

    Args:
        folder: Where they are; it is made when something is spilled.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._name = _new_name()
        self._locks: dict[str, BinaryIO] = {}
        self._made = 0

    def write(self, episodes: Sequence[Pending], *, first: int) -> SpilledFile:
        """Write episodes to a new file and wait until the disk has it.

        Raises:
            OSError: The file can not be written; what was written of it is deleted.
        """
        while not self._lock(self._name, make=True):  # one that starts looked into it meanwhile
            self._name = _new_name()
        self._made += 1
        path = self.folder / f"{self._name}-{self._made:06}.jsonl"
        try:
            with open(path, "xb", opener=for_owner) as file:
                file.writelines(pending.line + b"\n" for pending in episodes)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.folder)
        except BaseException:  # Ctrl-C too: what is held is written again later
            path.unlink(missing_ok=True)
            raise
        return SpilledFile(path=path, count=len(episodes), first=first)

    def refuse(self, line: bytes, reason: str) -> Path:
        """Set an episode aside that the store will never take, with the reason.

        Raises:
            OSError: The file can not be written; it is as before.
        """
        self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
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

    def left_over(self) -> Sequence[SpilledFile]:
        """The files of writers that ended, the oldest first; they are ours from now on."""
        found = []
        for name in self._names():
            if name not in self._locks and self._take_over(name):
                found += [_found(path) for path in sorted(self.folder.glob(f"{name}-*.jsonl"))]
                self._release_if_empty(name)
        return found

    def done(self, file: SpilledFile, broken: Sequence[BrokenLine] = ()) -> None:
        """Delete a file that the store has all of; one with broken lines is put aside instead.

        One that is gone was taken away by somebody, who has what was in it.
        """
        try:
            if broken:
                aside = file.path.with_suffix(".broken")
                file.path.rename(aside)
                logger.warning("%s is kept, not all of it are episodes: %s", aside, broken[0])
            else:
                file.path.unlink()
        except FileNotFoundError:
            logger.warning("%s was taken away while it waited for the store", file.path)
        self._release_if_empty(file.path.name.rsplit("-", 1)[0])

    def close(self) -> None:
        """Let others take in what is left."""
        for name in tuple(self._locks):
            self._release_if_empty(name)
            lock = self._locks.pop(name, None)
            if lock is not None:
                lock.close()

    def _names(self) -> Sequence[str]:
        """The writers that have files here, the oldest first; also one whose lock was deleted.

        We make no links: one that lies here leads to something of somebody else.
        """
        paths = tuple(self.folder.glob("*"))
        found = {path: ours[1] for path in paths if (ours := _OURS.fullmatch(path.name))}
        strange = {name for path, name in found.items() if path.is_symlink()}
        return sorted(set(found.values()) - strange)

    def _take_over(self, name: str) -> bool:
        try:
            return self._lock(name, make=_CAN_LOCK)
        except PermissionError as error:
            logger.warning("episodes of another user's program wait here, left alone: %s", error)
            return False

    def _lock(self, name: str, *, make: bool) -> bool:
        """Hold the lock of a writer; whether nobody else does."""
        if name in self._locks:
            return True
        path = self.folder / f"{name}{_LOCK}"
        if make:
            self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        try:
            mode: Literal["ab", "rb+"] = "ab" if make else "rb+"
            file = open(path, mode, opener=for_owner_here)  # noqa: SIM115 - until done
        except FileNotFoundError:  # its owner was done in this moment
            return False
        if not _held_alone(file, path):
            file.close()
            return False
        self._locks[name] = file
        return True

    def _release_if_empty(self, name: str) -> None:
        if name in self._locks and not any(self.folder.glob(f"{name}-*.jsonl")):
            (self.folder / f"{name}{_LOCK}").unlink(missing_ok=True)
            self._locks.pop(name).close()


def _new_name() -> str:
    return f"{time.time_ns():016x}-{os.urandom(4).hex()}"


def _held_alone(file: BinaryIO, path: Path) -> bool:
    """Lock a file until it is closed or the program dies; whether nobody had."""
    if not _CAN_LOCK:  # nobody else's files are taken in here
        return file.mode == "ab"
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):  # or whoever had it deleted it
        return False


def _found(path: Path) -> SpilledFile:
    with path.open("rb") as file:
        return SpilledFile(path=path, count=sum(1 for line in file if line.strip()))


def _no_matter(_: BrokenLine) -> None:
    """Whoever takes the file in tells of it."""


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
