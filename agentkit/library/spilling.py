"""``SpillingEpisodes``: episodes go to files while their store takes none, and from there to it."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Self

from agentkit.episodes import Episode
from agentkit.episodes.files import BrokenLine, encode_episode, read_episodes
from agentkit.episodes.replacing import (
    CAN_LOCK,
    append_synced,
    for_owner_here,
    sync_folder,
    try_lock,
)
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library.changes import check_filter, matches
from agentkit.library.episode_stores import REFUSALS, append_all, deliver, error_text
from agentkit.library.store import EpisodeFilter, EpisodeStore

logger = logging.getLogger(__name__)

_FILE_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}-\d{6,}\.jsonl")
_AT_A_TIME = 256
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0


@dataclass(kw_only=True, slots=True, eq=False)
class _SpilledFile:
    """A file of episodes that the store has not got yet.

    Attributes:
        path: The file.
        handle: The same, open and locked until the store has all of it.
        count: Episodes in it.
    """

    path: Path
    handle: BinaryIO
    count: int = 0

    def add(self, lines: Sequence[bytes]) -> None:
        """Append lines and wait until the disk has them; on an ``OSError`` it is as before."""
        append_synced(self.handle, b"".join(lines))
        self.count += len(lines)

    def episodes(self, broken: list[BrokenLine]) -> Iterator[Episode]:
        """The episodes in order; none when the file is gone, for then the store has them."""
        try:
            yield from read_episodes(self.path, on_broken=broken.append)
        except FileNotFoundError:
            return


class SpillingEpisodes:
    """Keeps episodes in files while their store takes none, and brings them over once it does.

    What was appended is in the store, or on the disk in a file of ``folder``. Files are taken in by
    a thread when the store is back, or by the next one with that folder, before anything younger:
    so each session keeps its order, and since a store ignores an id that it knows, nothing comes
    twice. ``get`` and ``select`` read the files too.

    Args:
        store: Where episodes are kept. Closing this closes it.
        folder: For the files, which their owner alone may read. Several programs may share it.

    Attributes:
        refused: Episodes from files that the store would not take; these files are kept as
            ``.broken``, and the log says why.
        last_error: What the last failure of the store said; empty once it works again.

    Example:
        >>> import tempfile
        >>> from agentkit import open_store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with SpillingEpisodes(open_store("memory:"), folder=folder) as episodes:
        ...         episodes.append(Episode(episode_id="e1", request="Hi"))
        ...         episodes.get("e1").request, episodes.in_files
        ('Hi', 0)
    """

    def __init__(self, store: EpisodeStore, *, folder: str | os.PathLike[str]) -> None:
        self._store = store
        self._folder = Path(folder)
        self._name = f"{time.time_ns():016x}-{os.urandom(4).hex()}"
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._files = list(self._left_over())  # the oldest first
        self._current: _SpilledFile | None = None  # to which more may be appended
        self._made = self._failures = self.refused = 0
        self.last_error = ""
        self._timer: threading.Timer | None = None
        self._is_closed = False
        if self._files:
            self._try_in(0)

    def __repr__(self) -> str:
        return f"SpillingEpisodes({self._store!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def in_files(self) -> int:
        """Episodes in files that the store has not got yet. Waits for nobody."""
        return sum(file.count for file in tuple(self._files))

    def append(self, episode: Episode) -> None:
        """Keep one episode; see ``append_many``."""
        self.append_many((episode,))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep episodes in this order, all of them or none; ids that are known are ignored.

        Raises:
            EpisodeFormatError: One holds a value that JSON cannot.
            StoreUnavailableError: The store takes none, and the file cannot be written either.
        """
        self._check()
        with self._lock:
            if not self._files:
                try:
                    append_all(self._store, episodes)
                except REFUSALS:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever it was, they go to a file
                    self._note(error)
                else:
                    return
            if episodes:
                self._spill([f"{encode_episode(one)}\n".encode() for one in episodes])

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, kept or in a file, or None."""
        waiting = self._waiting(lambda one: one.episode_id == episode_id)
        return self._store.get(episode_id) or next(iter(waiting), None)

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, those in files included, each once."""
        check_filter(matching)
        found = self._waiting(lambda one: matches(one, matching))
        waiting = {one.episode_id: one for one in found}
        kept = self._store.select(matching)
        rest = (one for one in kept if one.episode_id not in waiting)
        if matching.oldest_first:
            return islice(chain(rest, waiting.values()), matching.limit)
        return islice(chain(reversed(waiting.values()), rest), matching.limit)

    def close(self) -> None:
        """Leave what is in files for the next start, and close the store."""
        if self._process != os.getpid() or self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._files:
            where = ", ".join(str(file.path) for file in self._files)
            logger.warning("%d episodes wait for the next start in %s", self.in_files, where)
        for file in self._files:
            file.handle.close()  # others may take it in
        self._store.close()

    def _check(self) -> None:
        if self._process != os.getpid():
            raise StoreError(
                f"these episodes were opened by process {self._process} and are used by its fork "
                f"{os.getpid()}, where no thread takes files in; open them in each process"
            )
        if self._is_closed:
            raise StoreError("this store of episodes is closed; open it again")

    def _waiting(self, is_wanted: Callable[[Episode], bool]) -> list[Episode]:
        """Episodes in files, oldest first; of a repeated id, the first one.

        It is asked before the store: what leaves a file later is found there.
        """
        self._check()
        while True:
            files, seen = self._files, set[str]()
            found: list[Episode] = []
            for episode in chain.from_iterable(file.episodes([]) for file in files):
                if episode.episode_id not in seen and is_wanted(episode):
                    found.append(episode)
                seen.add(episode.episode_id)
            if files[:1] == self._files[:1]:  # else a part of them went into the store meanwhile
                return found

    # Into files.

    def _spill(self, lines: Sequence[bytes]) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._current = self._current or self._new_file()
            self._current.add(lines)
        except OSError as error:
            raise StoreUnavailableError(
                f"the store takes no episodes ({self.last_error}), and {self._folder} cannot be "
                f"written ({error}); make room there, then try again"
            ) from error
        finally:
            self._try_in(self._pause())

    def _new_file(self) -> _SpilledFile:
        while True:
            self._made += 1
            path = self._folder / f"{self._name}-{self._made:06}.jsonl"
            handle = open(path, "xb", buffering=0, opener=for_owner_here)  # noqa: SIM115 - it is held
            if try_lock(handle):
                sync_folder(self._folder)
                logger.warning("episodes wait in %s for their store: %s", path, self.last_error)
                self._files = [*self._files, made := _SpilledFile(path=path, handle=handle)]
                return made
            handle.close()  # one that starts found it empty, and deletes it

    def _left_over(self) -> Iterator[_SpilledFile]:
        """The files of programs that ended, the oldest first; they are ours from now on.

        We make no links: one that lies here leads to something of somebody else.
        """
        paths = self._folder.glob("*.jsonl") if CAN_LOCK else ()
        for path in sorted(one for one in paths if _FILE_NAME.fullmatch(one.name)):
            try:
                handle = open(path, "rb", opener=for_owner_here)  # noqa: SIM115 - it is held
            except OSError as error:  # gone, a link, or of another user's program
                logger.warning("episodes that wait in %s are left alone: %s", path, error)
                continue
            if (
                try_lock(handle) and os.fstat(handle.fileno()).st_nlink
            ):  # else its owner is just done
                count = sum(1 for line in handle if line.strip())
                yield _SpilledFile(path=path, handle=handle, count=count)
            else:
                handle.close()

    # Back into the store, in a thread.

    def _note(self, error: Exception) -> None:
        self._failures, self.last_error = self._failures + 1, error_text(error)

    def _pause(self) -> float:
        doubled = _FIRST_PAUSE_SECONDS * 2.0 ** min(max(self._failures - 1, 0), 10)
        return min(doubled, _LONGEST_PAUSE_SECONDS)

    def _try_in(self, seconds: float) -> None:
        """See that the store is tried again, after a pause."""
        with self._lock:
            if self._timer is None and not self._is_closed:
                self._timer = threading.Timer(seconds, self._take_in)
                self._timer.name, self._timer.daemon = "agentkit-spilled-episodes", True
                self._timer.start()

    def _take_in(self) -> None:
        """Give the files to the store; writers wait for a short last one, so that this ends."""
        works = False
        try:
            while self._files and not self._is_closed:
                is_short = works and self._files[0].count <= _AT_A_TIME
                with self._lock if is_short else nullcontext():
                    works = self._is_taken(self._files[0])
                if not works:
                    break
        except Exception as error:  # noqa: BLE001 - without this thread all would wait for ever
            self._note(error)
            logger.warning("spilled episodes are tried again: %s", self.last_error)
        with self._lock:
            self._timer = None
            if self._files:
                self._try_in(self._pause())

    def _is_taken(self, file: _SpilledFile) -> bool:
        """Whether the store has all of a file now."""
        with self._lock:
            if file is self._current:
                self._current = None  # what comes now goes to the next one
        broken: list[BrokenLine] = []
        refusals: list[str] = []
        episodes = file.episodes(broken)
        while batch := tuple(islice(episodes, _AT_A_TIME)):
            names = [repr(one.episode_id) for one in batch]
            done = deliver(
                self._store,
                batch,
                lambda at, why, of=names: refusals.append(f"{of[at]}: {error_text(why)}"),  # type: ignore[misc]
            )
            if done.error is not None:
                self._note(done.error)
                return False
        with self._lock:
            if self._is_closed:
                return False
            self._settle(file, [*map(str, broken), *refusals])
            self.refused += len(refusals)
            self._files = [one for one in self._files if one is not file]
        self._failures, self.last_error = 0, ""
        logger.warning("the store has the %d episodes of %s", file.count, file.path)
        return True

    def _settle(self, file: _SpilledFile, left: Sequence[str]) -> None:
        """Delete a file; one with lines that no store will ever take is put aside instead."""
        try:
            if left:
                aside = file.path.with_suffix(".broken")
                file.path.rename(aside)
                logger.error("the store refuses a part of %s, which is kept: %s", aside, left[0])
            else:
                file.path.unlink()
        except FileNotFoundError:  # the process that took it has its content
            logger.warning("%s was taken away while it waited for the store", file.path)
        file.handle.close()


def spilling_of(store: object) -> SpillingEpisodes | None:
    """The spilling store behind a store made ``with_episodes`` of one.

    Example:
        >>> print(spilling_of("memory:"))
        None
    """
    episodes = getattr(store, "episodes", store)
    return episodes if isinstance(episodes, SpillingEpisodes) else None
