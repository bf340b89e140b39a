"""Giving up the connections that a fork inherited, before it opens their file again.

SQLite keeps the locks on a file in a list of the process. A fork inherits that list, and no lock.
A new connection to the same file would believe the list and lock nothing: no other program would
see it, and the next one to close the file would clear away the log to which this one writes. What
was committed since would be lost.
"""

from __future__ import annotations

import os
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from agentkit.errors import StoreError

if TYPE_CHECKING:
    import sqlite3

Identity: TypeAlias = tuple[int, int]
"""What tells a file from another one of the same name."""


class Opening:
    """A connection that SQLite has in the list of this process, or of the one it was forked from.

    Args:
        raw: The connection.
        identity: Of its file.
        lock: Held by a thread for as long as it uses the connection.
    """

    def __init__(
        self, raw: sqlite3.Connection, identity: Identity | None, lock: threading.RLock
    ) -> None:
        self.raw = raw
        self.identity = identity
        self.lock = lock
        self.process = os.getpid()
        _OPENINGS[id(self)] = self

    def end(self) -> None:
        """The connection is closed."""
        _OPENINGS.pop(id(self), None)


_OPENINGS: WeakValueDictionary[int, Opening] = WeakValueDictionary()
"""Of this process, as SQLite's own list is; each goes with the connection that holds it."""


def give_up_inherited(path: Path) -> None:
    """Close the connections to a file that this process inherited. Whose they are keeps its own.

    Raises:
        StoreError: The fork came while one was in use, so that it can not be closed.
    """
    here = os.getpid()
    known = [reference() for reference in _OPENINGS.valuerefs()]  # whole, whatever threads do
    inherited = [one for one in known if one is not None and one.process != here]
    identity = identity_of(path) if inherited else None
    for one in inherited:
        if one.identity == identity is not None:
            _give_up(one, path)


def _give_up(one: Opening, path: Path) -> None:
    import sqlite3

    if not one.lock.acquire(blocking=False) or one.raw.in_transaction:
        raise StoreError(
            f"{path} was in use by another thread when process {os.getpid()} was forked from "
            f"process {one.process}, and SQLite can not open it here any more; start processes "
            "with the method 'spawn' or 'forkserver', or fork before the store is opened"
        )
    # The last connection to close clears the log away, and this one knows no later log than its
    # own. Beside one that only reads it is not the last, and that one may clear nothing away.
    only_reads = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    with closing(only_reads):
        only_reads.execute("BEGIN")
        only_reads.execute("SELECT count(*) FROM sqlite_master")
        one.raw.close()
    one.end()


def identity_of(path: Path) -> Identity | None:
    """What tells a file from another one of the same name; None when there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - on the way of each read: half the time of Path.stat
    except OSError:
        return None
    return found.st_dev, found.st_ino
