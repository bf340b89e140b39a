"""The places in a directory store's folder, and how they are written: whole, or not at all."""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO, TypeAlias

from agentkit.episodes.replacing import first_stray, plain_here, sync_folder
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.reading import expanded_limit

_FLUSHES_AT_ONCE = 8
"""So many files are flushed side by side: a file system often serves several by one write."""

_SHORT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_LOOK_AGAIN_SECONDS = 0.002


Signature: TypeAlias = tuple[int, int, int]
"""By which a file that was put in the place of another is told apart."""


class OvertakenError(Exception):
    """A file is not as it was when the writing of it was planned: somebody edits it just now."""


class Folder:
    """Where the parts of a store lie.

    ``history`` is the truth, ``tools`` and ``index.json`` show it, and ``local`` belongs to this
    machine alone: drafts, the lock, and episodes.

    Args:
        path: The folder of the store. Nothing is made before something is written.
        timeout_seconds: How long to wait for another writer.
    """

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        self.path = path
        self.tools = path / "tools"
        self.history = path / "history"
        self.index = path / "index.json"
        self.local = path / "local"
        self._timeout_seconds = timeout_seconds

    def make(self) -> None:
        """Make the folders that are absent; the one above the store's has to be there."""
        self.make_local()
        with self.translated(self.path):
            for one in (self.history, self.tools):
                one.mkdir(exist_ok=True)

    def make_local(self) -> None:
        """Make the folder of this machine, which git leaves out."""
        self.check_no_links()
        with self.translated(self.local):
            self.path.mkdir(exist_ok=True)
            # Episodes are for this user; a folder that a group writes to is shared with that group.
            shared = self.path.stat().st_mode & 0o070
            self.local.mkdir(0o700 | (shared if shared & 0o020 else 0), exist_ok=True)
            ignore = self.local / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")

    def check_no_links(self) -> None:
        """Refuse links through which the store would write outside, and pipes where it would wait.

        Files of tools may be links: those are reported as edits, and nothing is written through.

        Raises:
            StoreError: One of the folders is a link, or something in ``local`` is no plain file.
        """
        with self.translated(self.path):
            folders = ((one, "a link") for one in (self.tools, self.history) if one.is_symlink())
            stray = next(folders, None) or first_stray(self.local)
        if stray is not None:
            raise StoreError(
                f"{stray[0]} is {stray[1]}, and the store does not write outside of {self.path}. "
                "Nothing was changed; delete it, and put a folder or file in its place if you "
                "need what it led to"
            )

    def entry(self, place: int) -> Path:
        """The file of the change at a place of the history."""
        return self.history / f"{place:08}.json"

    def signature(self, path: Path) -> Signature | None:
        """Time, number and size of a file; None where there is none."""
        with self.translated(path):
            try:
                found = path.stat()
            except FileNotFoundError:
                return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def content(self, path: Path) -> bytes | None:
        """What a file holds; None when there is none, and nothing for what is no file.

        A pipe or a device, to which a link may lead, would never end.

        Raises:
            StoreError: It is larger than anything that a store writes.
        """
        with self.translated(path):
            try:
                found = path.stat()
                return _whole(path, found) if S_ISREG(found.st_mode) else b""
            except FileNotFoundError:
                return None

    def plain(self, path: Path) -> bytes:
        """What a file of the history holds, which only a plain file is.

        Raises:
            FileNotFoundError: There is none.
            StoreError: A link, pipe or device stands in its place: what it leads to may lie outside
                of the folder, or never end; or it is larger than anything that a store writes.
        """
        found = path.lstat()
        if not S_ISREG(found.st_mode):
            raise StoreError(
                f"{path} is no plain file, and the store reads its history from plain files alone. "
                "Nothing was changed; put back the file that was there, from git for example"
            )
        return _whole(path, found)

    def lay_aside(self, path: Path, content: bytes) -> Path:
        """Keep what stood in a file that is about to be written over."""
        aside = self.local / "set-aside"
        with self.translated(aside):
            aside.mkdir(exist_ok=True)
            kept = aside / f"{path.stem}-{uuid.uuid4().hex[:8]}{path.suffix}"
            if path.is_symlink() or not path.is_file():
                path.replace(kept)
            else:
                _write_flushed(kept, content)
        return kept

    @contextmanager
    def locked(self, *, is_patient: bool = True) -> Iterator[bool]:
        """Be the only writer on this machine; whether it is so.

        The lock keeps the files of tools in step with the history. That no two changes take one
        place does not hang on it.

        Args:
            is_patient: Wait for another writer; otherwise give up at once.

        Raises:
            StoreError: There is a link where the store would write; see ``check_no_links``.
            StoreUnavailableError: Another writer had it for too long.
        """
        self.check_no_links()
        with (
            self.translated(self.local),
            open(self.local / "lock", "ab", opener=plain_here) as file,
        ):
            deadline = time.monotonic() + (self._timeout_seconds if is_patient else 0)
            while not (is_held := _try_lock(file)) and time.monotonic() < deadline:
                time.sleep(_LOOK_AGAIN_SECONDS)
            if is_patient and not is_held:
                raise StoreUnavailableError(
                    f"{self.path} is locked: another program wrote to it for more than "
                    f"{self._timeout_seconds:g} s. Nothing was changed; try again when that "
                    "program is done"
                )
            yield is_held

    def claim(self, place: int, content: bytes) -> bool:
        """Make the change at a place the one of this content, unless somebody else has made it.

        The file is on the disk before it gets its name, and a name is given only once.
        """
        draft, target = self.draft(), self.entry(place)
        with self.translated(target):
            try:
                _write_flushed(draft, content)
                try:
                    os.link(draft, target)
                except FileExistsError:
                    # A file server may have done it and lost the answer.
                    return draft.samefile(target)
                except OSError as error:
                    if error.errno in _NO_LINKS and os.access(self.history, os.W_OK):
                        raise StoreError(
                            f"{target} can not be made: the file system has no hard links "
                            f"({error.strerror}), by which two writers are kept apart. Nothing "
                            "was changed; put the store on another file system"
                        ) from error
                    raise
                sync_folder(self.history)
                return True
            finally:
                draft.unlink(missing_ok=True)

    def draft(self) -> Path:
        """A name for a file that is not complete yet."""
        return self.local / f"draft-{os.getpid()}-{uuid.uuid4().hex}.tmp"

    def put(
        self,
        contents: Mapping[Path, bytes],
        *,
        gone: Iterable[Path] = (),
        last: tuple[Path, bytes],
        is_as_planned: Callable[[Path], bool] = lambda _path: True,
    ) -> None:
        """Put files in the place of those of their names; each is there whole, before and after.

        Args:
            contents: The files.
            gone: Files to delete.
            last: The one that is put when the disk has all of that.
            is_as_planned: Whether a file may go. It is asked just before, for between a plan and
                the last of ten thousand files lies time enough for an editor.

        Raises:
            OvertakenError: A file may not. Those before it were put, ``last`` was not.
        """
        drafts = {path: self.draft() for path in (*contents, last[0])}
        try:
            self._write_drafts({drafts[path]: text for path, text in (*contents.items(), last)})
            for path in (*contents, *gone):
                if not is_as_planned(path):
                    raise OvertakenError(path)
                with self.translated(path):
                    if path in contents:
                        drafts[path].replace(path)
                    else:
                        path.unlink(missing_ok=True)
            for parent in {path.parent for path in (*contents, *gone)}:
                sync_folder(parent)
            with self.translated(last[0]):
                drafts[last[0]].replace(last[0])
        finally:
            for draft in drafts.values():
                with suppress(FileNotFoundError):
                    draft.unlink()

    def _write_drafts(self, contents: Mapping[Path, bytes]) -> None:
        """Write files and wait until the disk has them."""

        def flush(path: Path) -> None:
            with self.translated(path), path.open("rb+") as file:
                os.fsync(file.fileno())

        for draft, content in contents.items():
            with self.translated(draft):
                draft.write_bytes(content)
        if len(contents) < _FLUSHES_AT_ONCE:
            for draft in contents:
                flush(draft)
            return
        with ThreadPoolExecutor(_FLUSHES_AT_ONCE) as pool:
            for _ in pool.map(flush, contents):
                pass

    @contextmanager
    def translated(self, path: Path) -> Iterator[None]:
        """Say what the system refused in our words."""
        try:
            yield
        except OSError as error:
            raise _in_our_words(error, path, self.path) from error


def _whole(path: Path, found: os.stat_result) -> bytes:
    """All of a file, unless it is a hole of terabytes, which takes no room in an archive."""
    if found.st_size > expanded_limit(found.st_size):
        raise StoreError(
            f"{path} has {found.st_size:,} bytes, more than a store writes. Nothing was changed; "
            "put back the file that was there, or delete it"
        )
    return path.read_bytes()


def _write_flushed(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _try_lock(file: IO[bytes]) -> bool:
    """Take the lock if nobody has it; it goes with the file, also when the program is killed."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: writers are kept apart by links alone
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _in_our_words(error: OSError, path: Path, store: Path) -> StoreError:
    code = error.errno or 0
    if code in _SHORT_OF_ROOM:
        return StoreError(
            f"{path} can not be written, its disk is full: {error.strerror}. The store is at the "
            "version before; make room and try again"
        )
    if code in _NOT_ALLOWED:
        return StoreError(
            f"{path} can not be read or written: {error.strerror}. Nothing was changed; give this "
            "user the right to it, or copy the folder to a place where it has it"
        )
    if code == errno.ENOENT and not store.absolute().parent.is_dir():
        return no_parent(store)
    return StoreError(f"{path}: the system says {type(error).__name__}: {error.strerror}")


def no_parent(store: Path) -> StoreError:
    """The error for a store in a folder that is not there."""
    return StoreError(
        f"{store} can not be opened: the folder {store.absolute().parent} does not exist; make it "
        "first"
    )
