"""``SpillFolder``: files of episodes that wait for their store, also those of earlier writers."""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, Literal

from agentkit.episodes import Episode
from agentkit.episodes.files import BrokenLine, encode_episode, read_episodes
from agentkit.episodes.replacing import for_owner, for_owner_here, sync_folder

logger = logging.getLogger(__name__)


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
