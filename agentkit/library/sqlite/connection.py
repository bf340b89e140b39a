"""One SQLite connection that threads share: transactions, tracing, errors in our words."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit.episodes.replacing import make_private
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library.sqlite.forks import Opening, give_up_inherited, identity_of
from agentkit.library.sqlite.still_files import check_still, still_state, uri_to_read
from agentkit.library.sqlite.write_ahead_log import CHECKPOINT, WriteAheadLog

if TYPE_CHECKING:
    import sqlite3  # loaded where a file is opened: programs without one do without it

Tracer: TypeAlias = Callable[[str, object], None]
"""Called with the SQL and its parameters before a statement runs; what it raises stops it."""

_PRIMARY_CODE = 0xFF  # SQLite keeps the general error code in the lowest byte of a specific one


class SQLiteConnection:
    """A connection that several threads may use, one statement or transaction at a time.

    A lock rather than one connection a thread: statements take microseconds, and closing is then
    one step that leaves nothing behind.

    Args:
        path: The file; it is made when it does not exist, its folder is not.
        timeout_seconds: How long to wait for other processes that hold the file.
        tracer: Sees every statement.
        read_only: Never write to the file; one that does not exist is not made.

    Raises:
        StoreError: The file can not be opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout_seconds: float,
        tracer: Tracer | None,
        read_only: bool = False,
    ) -> None:
        import sqlite3

        self.path = path
        self.is_read_only = read_only
        self.tracer = tracer
        self.timeout_seconds = timeout_seconds
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._raw: sqlite3.Connection | None = None
        self._place = path.absolute()
        self._still = still_state(self._place) if read_only else None
        with self._translated():
            give_up_inherited(self._place)
            if not read_only and not self._place.exists():
                with suppress(OSError):  # SQLite says what is wrong with the folder
                    make_private(self._place)
            self._raw = sqlite3.connect(
                uri_to_read(self._place, self._still) if read_only else self._place,
                uri=read_only,
                timeout=timeout_seconds,
                isolation_level=None,  # transactions start where the code says so
                check_same_thread=False,  # the lock keeps threads apart
            )
        self._identity = identity_of(self._place)
        self._opening = Opening(self._raw, self._identity, self._lock)
        self._log = None if read_only else WriteAheadLog(self._place)
        if self._log is not None:
            self._log.switch_off(self._raw)
        self.execute("PRAGMA foreign_keys = ON")
        # A file may come from anybody, and its schema is code.
        self.execute("PRAGMA trusted_schema = OFF")
        self.execute("PRAGMA cell_size_check = ON")

    @property
    def raw(self) -> sqlite3.Connection:
        """The driver's connection, for a library that needs one.

        Raises:
            StoreError: The store is closed, or was opened before this process forked.
        """
        if self._process != os.getpid():
            raise StoreError(
                f"{self.path} was opened by process {self._process} and is used by its fork "
                f"{os.getpid()}; SQLite can not be carried across a fork, open the store again "
                "in the new process"
            )
        if self._raw is None:
            raise StoreError(f"{self.path} is closed; open it again with open_store")
        return self._raw

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Run one statement and return all its rows."""
        raw = self.raw  # before the lock: a fork may have copied it while it was held
        with self._lock, self._translated():
            self._trace(sql, parameters)
            try:
                return raw.execute(sql, parameters).fetchall()
            finally:  # also where it failed: what looks like damage may be a change
                if self._still is not None:
                    self._check_still()

    def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement once for each row of parameters."""
        raw = self.raw
        with self._lock, self._translated():
            self._trace(sql, rows)
            raw.executemany(sql, rows)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """Hold the write lock of the file; everything inside happens, or nothing of it.

        Args:
            durable: Wait until the disk has it, so that even a power cut leaves it in place.

        Raises:
            StoreUnavailableError: Another process held the lock for too long, or the file is no
                longer where it was.
        """
        raw = self.raw
        if self.is_read_only:
            raise StoreError(
                f"{self.path} was opened to be read only, and nothing was changed; open it with "
                "open_store to write to it"
            )
        self.check_in_place()
        with self._lock, self._translated():
            self.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            try:
                self.execute("BEGIN IMMEDIATE")
                if self._log is not None and self._log.is_long():
                    self._trace(CHECKPOINT, ())
                    self._log.bring_over()
                    self.execute("COMMIT")
                    self.execute("BEGIN IMMEDIATE")  # on the file alone: this write begins it anew
                yield
                self.execute("COMMIT")
            except BaseException:
                if raw.in_transaction:  # some errors have ended it already
                    raw.execute("ROLLBACK")
                raise

    def check_in_place(self) -> None:
        """Refuse to go on with a file that is no longer where it was.

        The system keeps an open file alive: reading it would give an ever older library, and what
        is written to it would be lost.

        Raises:
            StoreUnavailableError: It was moved away, deleted, or another one is in its place.
        """
        if identity_of(self._place) != self._identity:
            raise StoreUnavailableError(
                f"{self.path} was moved away, deleted or replaced since it was opened. Nothing was "
                "changed; put it back, or open the store again to use what is there now"
            )

    @contextmanager
    def changing_a_copy(self) -> Iterator[None]:
        """Copy the file into a private one, go on with that, and be allowed to change it inside.

        So a file that is only read can be seen in a newer shape. The copy is a temporary file,
        gone with the connection.
        """
        import sqlite3

        with self._lock, self._translated():
            copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            try:
                self.raw.backup(copy)
                self._check_still()
            except BaseException:
                copy.close()
                raise
            self.raw.close()
            self._opening.end()
            self._raw, self._still = copy, None
        was, self.is_read_only = self.is_read_only, False
        yield
        self.is_read_only = was

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        if self._process != os.getpid():
            return  # the file belongs to the process that opened it
        with self._lock:
            if self._raw is not None:
                self._raw.close()
                self._raw = None
                self._opening.end()

    def _check_still(self) -> None:
        if self._still is not None:
            check_still(self._place, self._still)

    def _trace(self, sql: str, parameters: object) -> None:
        if self.tracer is not None:
            self.tracer(sql, parameters)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            raise _in_our_words(error, self.path, self.timeout_seconds) from error
        except UnicodeDecodeError as error:  # the driver's, of a text or of its own message
            raise StoreFormatError(
                f"{self.path} is damaged: it holds text that is no UTF-8 ({error}). Nothing was "
                "changed; restore a backup, or save what can be read with `sqlite3 FILE .recover`"
            ) from error


def _in_our_words(error: sqlite3.Error, path: Path, timeout_seconds: float) -> StoreError:
    import sqlite3

    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailableError(
                f"{path} is locked: another program held it for more than {timeout_seconds:g} s. "
                "Nothing was changed; try again when that program is done"
            )
        case sqlite3.SQLITE_READONLY:
            return StoreError(
                f"{path} is read-only, or its folder is: {error}. Nothing was changed; give this "
                "user the right to write both, or copy the file to a place where it has it"
            )
        case sqlite3.SQLITE_CANTOPEN:
            return StoreError(f"{path} can not be opened: {_why_not(path)}")
        case sqlite3.SQLITE_FULL:
            return StoreError(
                f"{path} can not grow, its disk is full: {error}. Nothing was changed; make room "
                "and try again"
            )
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return StoreFormatError(
                f"{path} is not a SQLite database, or is damaged: {error}. Nothing was changed; "
                "restore a backup, save what can be read with `sqlite3 FILE .recover`, or "
                "choose another file"
            )
        case _:
            return StoreError(f"{path}: SQLite says {type(error).__name__}: {error}")


def _why_not(path: Path) -> str:
    if path.is_dir():
        return "it is a folder; name a file in it"
    if not path.absolute().parent.is_dir():
        return f"the folder {path.absolute().parent} does not exist; make it first"
    return (
        "this user may not write the file or its folder; SQLite keeps its log beside the file, so "
        "even reading needs a folder that can be written"
    )


def storable(text: str) -> str:
    r"""Text that SQLite takes: half a surrogate pair, which a model may write, as ``\udXXX``."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
