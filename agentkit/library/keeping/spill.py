"""The folder of files that take episodes while their store is away.

A file is written whole and never touched again until all of it is in the store. Each writer that
has one holds a lock beside it; a file whose lock nobody holds was left by a program that ended, and
the next writer takes it in.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import BrokenLine, encode_episode, read_episodes
from agentkit.episodes.replacing import sync_folder

logger = logging.getLogger(__name__)

_LOCK = ".lock"


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
        self._name = f"{time.time_ns():016x}-{os.urandom(4).hex()}"
        self._locks: dict[str, BinaryIO] = {}
        self._made = 0

    def write(self, episodes: Iterable[Episode], *, first: int) -> SpilledFile:
        """Write episodes to a new file and wait until the disk has it.

        Raises:
            OSError: The file can not be written; what was written of it is deleted.
        """
        self._lock(self._name, make=True)
        self._made += 1
        path = self.folder / f"{self._name}-{self._made:06}.jsonl"
        count = 0
        try:
            with path.open("xb") as file:
                for count, episode in enumerate(episodes, start=1):  # noqa: B007 - the last one counts
                    file.write(encode_episode(episode).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.folder)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return SpilledFile(path=path, count=count, first=first)

    def refuse(self, episode: Episode, reason: str) -> Path:
        """Set an episode aside that the store will never take, with the reason.

        Raises:
            OSError: The file can not be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"refused-{self._name}.jsonl"
        line = json.dumps({"reason": reason, "episode": episode.to_json()})
        with path.open("ab") as file:
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return path

    def left_over(self) -> Sequence[SpilledFile]:
        """The files of writers that ended, the oldest first; they are ours from now on."""
        found = []
        for lock in sorted(self.folder.glob(f"*{_LOCK}")):
            name = lock.name.removesuffix(_LOCK)
            if name not in self._locks and self._lock(name):
                found += [_found(path) for path in sorted(self.folder.glob(f"{name}-*.jsonl"))]
                self._release_if_empty(name)
        return found

    def done(self, file: SpilledFile, broken: Sequence[BrokenLine] = ()) -> None:
        """Delete a file that the store has all of; one with broken lines is put aside instead."""
        if broken:
            aside = file.path.with_suffix(".broken")
            file.path.rename(aside)
            logger.warning("%s is kept, not all of it are episodes: %s", aside, broken[0])
        else:
            file.path.unlink()
        self._release_if_empty(file.path.name.rsplit("-", 1)[0])

    def close(self) -> None:
        """Let others take in what is left."""
        for name in tuple(self._locks):
            self._release_if_empty(name)
            lock = self._locks.pop(name, None)
            if lock is not None:
                lock.close()

    def _lock(self, name: str, *, make: bool = False) -> bool:
        """Hold the lock of a writer; whether nobody else does."""
        if name in self._locks:
            return True
        path = self.folder / f"{name}{_LOCK}"
        if make:
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("ab" if make else "rb+")
        except FileNotFoundError:  # its owner was done in this moment
            return False
        if not _held_alone(file):
            file.close()
            return False
        self._locks[name] = file
        return True

    def _release_if_empty(self, name: str) -> None:
        if name in self._locks and not any(self.folder.glob(f"{name}-*.jsonl")):
            (self.folder / f"{name}{_LOCK}").unlink(missing_ok=True)
            self._locks.pop(name).close()


def _held_alone(file: BinaryIO) -> bool:
    """Lock a file until it is closed or the program dies; whether nobody had."""
    try:
        import fcntl
    except ImportError:  # no such locks: nobody else's files are taken in here
        return file.mode == "ab"
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _found(path: Path) -> SpilledFile:
    with path.open("rb") as file:
        return SpilledFile(path=path, count=sum(1 for line in file if line.strip()))


def _no_matter(_: BrokenLine) -> None:
    """Whoever takes the file in tells of it."""
