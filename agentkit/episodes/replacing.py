"""Writing a file so that there is the old one or the whole new one, and never a half."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside ``path`` to write to; it takes its place when the block ends well.

    Where the block raises, the new file is deleted and what was there stays.

    Raises:
        OSError: The file can not be written.

    Example:
        >>> with replaced("numbers.txt") as draft:
        ...     count = draft.write_text("1 2 3")
        >>> Path("numbers.txt").read_text()
        '1 2 3'
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}.draft")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(target)
        sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of the files in a folder, where the system can say so."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
