"""One evolver at a time: a lock beside the store, which ends with the process that holds it.

What an evolver writes is safe without it: every commit is made on the newest version or made anew.
The lock keeps two of them from asking models the same questions, and says who is at work.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from agentkit.episodes.replacing import following_no_link
from agentkit.errors import StoreError
from agentkit.library.directory.store import folder_of
from agentkit.library.opening import file_of

_CAN_LOCK = find_spec("fcntl") is not None


@contextmanager
def evolving(store_url: str) -> Iterator[None]:
    """Hold the right to evolve a library; a process that is killed gives it back.

    A SQLite store has its lock in a file beside it. For other stores it is a file in the folder
    for temporary files, which holds for one machine. Where files can not be locked, there is none.

    Args:
        store_url: Where the library is.

    Raises:
        StoreError: Another process evolves it; the message says which, and since when.

    Example:
        >>> with evolving("memory:"):
        ...     pass
    """
    if store_url.startswith("memory:"):  # no other process can reach it
        yield
        return
    path = _place(store_url)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8", opener=following_no_link) as file:
        if not _taken(file):
            raise StoreError(_who(file, store_url))
        since = datetime.now(UTC).isoformat(timespec="seconds")
        _write(file, {"process": os.getpid(), "host": socket.gethostname(), "since": since})
        try:
            yield
        finally:
            _write(file, {})


def _place(store_url: str) -> Path:
    path = file_of(store_url)
    if path is not None:
        path = path.resolve()  # one lock, whichever link leads to the file
        return path.with_name(f"{path.name}.evolving")
    folder = folder_of(store_url)
    place = store_url if folder is None else str(folder.resolve())
    name = hashlib.sha256(place.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"agentkit-{name}.evolving"


def _taken(file: IO[str]) -> bool:
    """Whether the lock is ours now; the system takes it back when the process ends."""
    if not _CAN_LOCK:
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write(file: IO[str], holder: dict[str, object]) -> None:
    file.seek(0)
    file.truncate()
    if holder:
        json.dump(holder, file)
    file.flush()


def _who(file: IO[str], store_url: str) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        who = f"process {holder['process']} on {holder['host']} since {holder['since']}"
    except (ValueError, KeyError, TypeError):  # it is about to write its name
        who = "another process"
    return f"{who} evolves {store_url}; wait for its end, or stop it"
