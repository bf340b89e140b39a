"""The places in a directory store's folder, and how they are written: whole, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import TypeAlias

from agentkit.episodes.replacing import (
    append_synced,
    first_stray,
    plain_here,
    sync_folder,
    try_lock,
)
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.reading import expanded_limit

_SHORT_OF_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_LOOK_AGAIN_SECONDS = 0.002

Signature: TypeAlias = tuple[int, int, int]
"""Identifies a file, so that a replacement is noticed."""


class Folder:
    """The paths of a store's parts.

    ``log.jsonl`` is the truth, ``tools`` shows it, and ``local`` belongs to this machine alone:
    drafts, the lock, and episodes. ``history`` is where agentkit before format 2 kept the changes.

    Args:
        path: The folder of the store. Nothing is made before something is written.
        timeout_seconds: How long to wait for another writer.
    """

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        self.path = path
        self.tools = path / "tools"
        self.log = path / "log.jsonl"
        self.history = path / "history"
        self.local = path / "local"
        self.pending = self.local / "pending.json"
        self._timeout_seconds = timeout_seconds

    def make(self) -> None:
        """Make the folders that are absent; the one above the store's has to be there."""
        self.make_local()
        with self.translated(self.path):
            self.tools.mkdir(exist_ok=True)

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
            StoreError: One of the folders is a link, or something in ``local`` is not a plain file.
        """
        with self.translated(self.path):
            folders = ((one, "a link") for one in (self.tools, self.history) if one.is_symlink())
            stray = next(folders, None) or first_stray(self.local)
        if stray is not None:
            words = f"and the store does not write outside of {self.path}; delete it"
            raise StoreError(f"{stray[0]} is {stray[1]}, {words}")

    def signature(self, path: Path) -> Signature | None:
        """Time, number and size of a file; None where there is none."""
        with self.translated(path):
            try:
                found = path.stat()
            except FileNotFoundError:
                return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def content(self, path: Path) -> bytes | None:
        """The content of a tool's file; None when absent, empty for anything but a file.

        A pipe or a device, to which a link may lead, would never end.

        Raises:
            StoreError: It is larger than anything that a store writes.
        """
        with self.translated(path):
            try:
                return _read(path) if S_ISREG(path.stat().st_mode) else b""
            except FileNotFoundError:
                return None

    def plain(self, path: Path, *, start: int = 0) -> bytes:
        """The content of a change file from a byte on; only a plain file is read.

        Raises:
            StoreError: A link, pipe or device is in its place: what it leads to may lie outside
                of the folder, or never end; or it is larger than anything that a store writes.
        """
        with self.translated(path):
            if not S_ISREG(path.lstat().st_mode):
                raise StoreError(f"{path} is not a plain file; put back what was there, from git")
            return _read(path, start=start)

    def append(self, path: Path, content: bytes, *, end: int) -> None:
        """Put lines behind the byte ``end`` of a file, and wait until the disk has them.

        What a killed writer left behind it goes. On an error the file ends there, as before.
        """
        with self.translated(path), open(path, "ab", buffering=0, opener=plain_here) as file:
            file.truncate(end)
            append_synced(file, content)
            if not end:
                sync_folder(self.path)

    def replace(self, path: Path, content: bytes) -> None:
        """Put a file in the place of another; it is there whole, before and after."""
        draft = self.local / f"draft-{uuid.uuid4().hex}.tmp"
        with self.translated(path):
            _write_flushed(draft, content)
            draft.replace(path)
            sync_folder(path.parent)

    def put(
        self,
        contents: Mapping[Path, bytes | None],
        is_untouched: Callable[[Path, bytes | None], bool],
    ) -> None:
        """Write the files of tools, and delete those of which the content is None.

        Args:
            contents: The new content of each file.
            is_untouched: Whether a file's content is what the store wrote there; one that somebody
                edited meanwhile stays as it is.
        """
        draft = self.local / f"draft-{uuid.uuid4().hex}.tmp"
        for path, text in contents.items():
            if text is not None:
                with self.translated(draft):
                    _write_flushed(draft, text)
            found = self.content(path)
            if found != text and not is_untouched(path, found):
                continue
            with self.translated(path):
                if text is None:
                    path.unlink(missing_ok=True)
                else:
                    draft.replace(path)
        with self.translated(self.tools):
            sync_folder(self.tools)
            for left in self.local.glob("draft-*.tmp"):
                left.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer.

        Raises:
            StoreError: There is a link where the store would write; see ``check_no_links``.
            StoreUnavailableError: Another writer had it for too long.
        """
        self.check_no_links()
        with (
            self.translated(self.local),
            open(self.local / "lock", "ab", opener=plain_here) as file,
        ):
            deadline = time.monotonic() + self._timeout_seconds
            while not (is_held := try_lock(file)) and time.monotonic() < deadline:
                time.sleep(_LOOK_AGAIN_SECONDS)
            if not is_held:
                words = f"another program wrote to it for more than {self._timeout_seconds:g} s"
                raise StoreUnavailableError(f"{self.path} is locked: {words}; try again later")
            yield

    @contextmanager
    def translated(self, path: Path) -> Iterator[None]:
        """Say what the system refused in our words."""
        try:
            yield
        except OSError as error:
            raise _in_our_words(error, path, self.path) from error


def digest_of(content: bytes | None) -> str:
    """SHA-256 of a file's lines, whatever git made of their ends; empty for no file."""
    if content is None:
        return ""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _read(path: Path, *, start: int = 0) -> bytes:
    """All of a file, unless it is a hole of terabytes, which takes no room in an archive."""
    size = path.stat().st_size - start
    if size > expanded_limit(size):
        words = "more than a store writes; put back what was there, or delete it"
        raise StoreError(f"{path} has {size:,} bytes, {words}")
    with path.open("rb") as file:
        file.seek(start)
        return file.read()


def _write_flushed(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _in_our_words(error: OSError, path: Path, store: Path) -> StoreError:
    code = error.errno or 0
    if code in _SHORT_OF_ROOM:
        words = "The store is at the version before; make room and try again"
        return StoreError(f"{path} cannot be written, its disk is full: {error.strerror}. {words}")
    if code in _NOT_ALLOWED:
        words = "give this user the right to it"
        return StoreError(f"{path} cannot be read or written: {error.strerror}; {words}")
    if code == errno.ENOENT and not store.absolute().parent.is_dir():
        return no_parent(store)
    return StoreError(f"{path}: the system says {type(error).__name__}: {error.strerror}")


def no_parent(store: Path) -> StoreError:
    """The error for a store in a folder that is not there."""
    words = f"the folder {store.absolute().parent} does not exist; make it first"
    return StoreError(f"{store} cannot be opened: {words}")
