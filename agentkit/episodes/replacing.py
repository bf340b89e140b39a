"""Writing a file so that there is the old one or the whole new one, and never a half."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from agentkit.reading import only_plain

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)

CAN_LOCK = find_spec("fcntl") is not None
"""Whether files can be locked on this system."""


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside ``path`` to write to; it takes its place when the block ends well.

    Where the block raises, the new file is deleted and what was there stays. Who may read the old
    file may read the new one, a new one is its owner's alone, and a link leads on to it. What is no
    file, such as a pipe or ``/dev/null``, cannot be replaced and is written to itself.

    Raises:
        OSError: The file cannot be written.

    Example:
        >>> with replaced("numbers.txt") as draft:
        ...     count = draft.write_text("1 2 3")
        >>> Path("numbers.txt").read_text()
        '1 2 3'
    """
    old = _mode(Path(path))
    if old is not None and not stat.S_ISREG(old):
        yield Path(path)
        return
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}.draft")
    try:
        _make(draft, old)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(target)
        sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _make(draft: Path, old: int | None) -> None:
    """Make an empty file that those may read who could read the old one."""
    draft.touch(mode=0o600, exist_ok=False)
    if old is not None:
        draft.chmod(stat.S_IMODE(old))


def for_owner(path: str, flags: int) -> int:
    """An opener for ``open``: a file that it makes is its owner's alone; an old one keeps its mode.

    Requests, arguments and answers are people's words. A stricter umask is respected.
    """
    return os.open(path, flags, 0o600)


def plain_here(path: str, flags: int, mode: int = 0o666) -> int:
    """An opener for ``open`` for a plain file in a folder of ours, which no link leads out of.

    Git keeps links and an archive pipes, so a checkout may hold one that leads anywhere, or at
    which a program would wait for good; these are an ``OSError``.
    """
    return only_plain(path, flags, mode, extra=_NO_FOLLOW)


def first_stray(folder: Path) -> tuple[Path, str] | None:
    """What is not a plain file in a folder of ours, and what it is: itself, or directly in it.

    Raises:
        OSError: The folder cannot be listed; one that this user may not list is passed over.
    """
    if folder.is_symlink():
        return folder, "a link"
    if not folder.is_dir() or not os.access(folder, os.R_OK):
        return None
    with os.scandir(folder) as found:
        for one in found:
            if one.is_symlink():
                return Path(one.path), "a link"
            if not (one.is_file() or one.is_dir()):
                return Path(one.path), "a pipe or a device"
    return None


def make_private(path: Path) -> None:
    """Make an empty file for its owner alone, if there is none, without opening it by its name.

    Closing a file of SQLite would release the locks that other threads hold on it.
    """
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.new")
    os.close(for_owner(str(draft), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was faster
    finally:
        draft.unlink()


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of the files in a folder, where the system can say so."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some file servers flush names with the file, and refuse to be asked
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF}:
            raise
    finally:
        os.close(descriptor)


def try_lock(file: IO[Any]) -> bool:
    """Lock a file until it is closed or the program dies, if nobody else holds it.

    Returns:
        Whether it is ours now; always where files cannot be locked.

    Raises:
        OSError: The file cannot be locked, as on some file systems.

    Example:
        >>> with open("work.lock", "a") as one, open("work.lock", "a") as other:
        ...     try_lock(one), try_lock(other)
        (True, False)
    """
    if not CAN_LOCK:
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def append_synced(file: IO[bytes], content: bytes) -> None:
    """Put content behind an unbuffered file, and wait until the disk has it.

    Raises:
        OSError: The file cannot be written. It is as before.
    """
    end = file.seek(0, os.SEEK_END)
    try:
        while content:  # a disk that is almost full takes a part
            content = content[file.write(content) :]
        os.fsync(file.fileno())
    except BaseException:  # Ctrl-C too
        file.truncate(file.seek(end))
        raise
