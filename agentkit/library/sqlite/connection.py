"""A connection to a SQLite file that threads share, and its write-ahead log.

The log is copied into the file while nobody else writes. SQLite does so on its own after a commit,
when no lock keeps other writers out. In versions before 3.51.3 that may race with a writer that
restarts the log, and part of what is committed later is never copied:
https://sqlite.org/wal.html#walresetbug. With the write lock held nobody restarts the log.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.episodes.replacing import make_private
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit.reading import open_plain

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger(__name__)

LOG_BYTES = 4 * 1024 * 1024
"""A log that is shorter is left alone; SQLite's own bound is about the same."""

_MOST_WRITES = 128
"""A log that is restarted keeps its length; only a checkpoint says how much of it is in use."""

CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"  # never waits, and copies what no reader needs


def uri_to_read(path: Path) -> str:
    """The file as SQLite opens it to read only.

    In a folder that this user may not write, such as that of an image, SQLite cannot read beside a
    writer; without a log beside it the file is read as immutable.
    """
    has_log = path.with_name(f"{path.name}-wal").exists()
    is_still = not has_log and not os.access(path.parent, os.W_OK)
    return f"{path.as_uri()}?mode=ro{'&immutable=1' if is_still else ''}"


Identity: TypeAlias = tuple[int, int]
"""Identity of a file, which differs for another one of the same name."""


def identity_of(path: Path) -> Identity | None:
    """A file's identity; None when there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - on the way of each read: half the time of Path.stat
    except OSError:
        return None
    return found.st_dev, found.st_ino


Tracer: TypeAlias = Callable[[str, object], None]
"""Called with the SQL and its parameters before a statement runs; what it raises stops it."""

_PRIMARY_CODE = 0xFF  # SQLite keeps the general error code in the lowest byte of a specific one


def check_plain(path: Path) -> None:
    """Refuse what lies at or beside the file and leads SQLite to other files, or makes it wait.

    Raises:
        StoreError: There is a pipe or device; or beside the file, where SQLite would write, a link,
            a hard one too, or a journal for which SQLite would delete the file that it names.
    """
    file = os.path.realpath(path)
    for name in (file, *(f"{file}{ending}" for ending in ("-journal", "-wal", "-shm"))):
        with suppress(OSError):  # there is none
            found = os.lstat(name)
            mode = found.st_mode
            words = "and SQLite would read and write it; delete it, or name another store"
            if not stat.S_ISREG(mode) and not (name == file and stat.S_ISDIR(mode)):
                raise StoreError(f"{name} is not a plain file, {words}")
            if found.st_nlink > 1 and name != file:
                raise StoreError(f"{name} is a hard link, {words}")
    with suppress(OSError):  # there is no journal, or it is too short to name anything
        _check_journal(f"{file}-journal")


_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def _check_journal(name: str) -> None:
    """Refuse a journal that ends as SQLite's ``readSuperJournal`` wants it, whatever its checksum.

    A transaction over several databases writes such an end, and agentkit makes none. Who rolls the
    journal back deletes the file that it names, which may be any.
    """
    with open_plain(name) as journal:
        journal.seek(-16, os.SEEK_END)  # the length of the name, its checksum, the magic bytes
        end = journal.read(16)
    if end[8:] == _JOURNAL_MAGIC and any(end[:4]):
        raise StoreError(
            f"{name} is a journal of SQLite that names another file, and SQLite would delete that "
            "file. agentkit writes no such journal: delete it, or, if a program of yours that "
            "writes several databases at once was killed here, open the store with that first"
        )


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
        StoreError: The file cannot be opened.
    """

    def __init__(
        self, path: Path, *, timeout_seconds: float, tracer: Tracer | None, read_only: bool = False
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
        check_plain(self._place)
        with self._translated():
            for reference in _OPEN.valuerefs():  # whole, whatever threads do
                if (one := reference()) is not None:
                    one.give_up_inherited(self._place)
            if not read_only and not self._place.exists():
                with suppress(OSError):  # SQLite says what is wrong with the folder
                    make_private(self._place)
            self._raw = sqlite3.connect(
                uri_to_read(self._place) if read_only else self._place,
                uri=read_only,
                timeout=timeout_seconds,
                isolation_level=None,  # transactions start where the code says so
                check_same_thread=False,  # the lock keeps threads apart
            )
        self._identity = identity_of(self._place)
        _OPEN[id(self)] = self
        self._log_bytes, self._writes = LOG_BYTES, 0  # of the log when it was last brought over
        if not read_only:
            self.execute("PRAGMA wal_autocheckpoint = 0")
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
            words = "SQLite cannot be carried across a fork, open the store again in this one"
            raise StoreError(f"{self.path} was opened by process {self._process}; {words}")
        if self._raw is None:
            raise StoreError(f"{self.path} is closed; open it again with open_store")
        return self._raw

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Run one statement and return all its rows."""
        raw = self.raw  # before the lock: a fork may have copied it while it was held
        with self._lock, self._translated():
            self._trace(sql, parameters)
            return raw.execute(sql, parameters).fetchall()

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
            raise StoreError(f"{self.path} was opened to be read only; open it with open_store")
        self.check_in_place()
        with self._lock, self._translated():
            self.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            try:
                self.execute("BEGIN IMMEDIATE")
                if self._log_is_long():
                    self._trace(CHECKPOINT, ())
                    self._bring_log_over()
                    self.execute("COMMIT")
                    self.execute("BEGIN IMMEDIATE")  # on the file alone: this write restarts it
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
            words = "put it back, or open the store again to use what is there now"
            raise StoreUnavailableError(f"{self.path} was moved away, deleted or replaced; {words}")

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        if self._process != os.getpid():
            return  # the file belongs to the process that opened it
        with self._lock:
            if self._raw is not None:
                self._raw.close()
                self._raw = None
                _OPEN.pop(id(self), None)

    def _log_is_long(self) -> bool:
        """Whether this write should bring the log over: it has grown, or was used for a while."""
        try:
            size = os.stat(f"{self._place}-wal").st_size  # noqa: PTH116 - on the way of each write
        except OSError:  # there is none
            return False
        if size < LOG_BYTES:
            return False
        self._writes += 1
        if size <= self._log_bytes and self._writes < _MOST_WRITES:
            return False
        self._log_bytes, self._writes = size, 0
        return True

    def _bring_log_over(self) -> None:
        """Bring the log into the file, over another connection, while this one locks it."""
        import sqlite3

        try:
            with closing(sqlite3.connect(self._place, timeout=0, isolation_level=None)) as beside:
                beside.execute("PRAGMA wal_autocheckpoint = 0")
                beside.execute(CHECKPOINT).fetchall()
        except sqlite3.Error as error:  # as SQLite itself does, which does not even tell
            logger.info(
                "the log of %s stays long for now: %s", self.path, episodes.error_line(error)
            )

    def give_up_inherited(self, path: Path) -> None:
        """Close this connection if it is one to ``path`` that the process inherited.

        Whose it is keeps its own.

        Raises:
            StoreError: The fork came while it was in use, so that it cannot be closed.
        """
        import sqlite3

        if self._process == os.getpid() or self._raw is None or self._identity is None:
            return
        if identity_of(path) != self._identity:
            return
        if not self._lock.acquire(blocking=False) or self._raw.in_transaction:
            raise StoreError(
                f"{path} was in use by another thread when process {os.getpid()} was forked; start "
                "processes with 'spawn' or 'forkserver', or fork before the store is opened"
            )
        # The last connection to close clears the log away, and this one knows no later log than its
        # own. Beside one that only reads it is not the last, and that one may clear nothing away.
        only_reads = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        with closing(only_reads):
            only_reads.execute("BEGIN")
            only_reads.execute("SELECT count(*) FROM sqlite_master")
            self._raw.close()
        self._raw = None
        _OPEN.pop(id(self), None)

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
        except OverflowError as error:
            words = f"it holds a number of more than 64 bits. {_SAVE}"
            raise StoreFormatError(f"{self.path} is damaged: {words}") from error
        except UnicodeDecodeError as error:  # the driver's, of a text or of its own message
            words = f"it holds text that is no UTF-8 ({error}). {_SAVE}"
            raise StoreFormatError(f"{self.path} is damaged: {words}") from error


_SAVE = "Restore a backup, or save what can be read with `sqlite3 FILE .recover`"

_OPEN: WeakValueDictionary[int, SQLiteConnection] = WeakValueDictionary()
"""Connections that SQLite has in the list of this process, or of the one it was forked from."""


def _in_our_words(error: sqlite3.Error, path: Path, timeout_seconds: float) -> StoreError:
    import sqlite3

    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            words = f"another program held it for more than {timeout_seconds:g} s; try again later"
            return StoreUnavailableError(f"{path} is locked: {words}")
        case sqlite3.SQLITE_READONLY:
            words = f"{error}; give this user the right to write both"
            return StoreError(f"{path} is read-only, or its folder is: {words}")
        case sqlite3.SQLITE_CANTOPEN:
            return StoreError(f"{path} cannot be opened: {_why_not(path)}")
        case sqlite3.SQLITE_FULL:
            return StoreError(f"{path} cannot grow, its disk is full: {error}; make room")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            words = f"is not a SQLite database, or is damaged: {error}. {_SAVE}"
            return StoreFormatError(f"{path} {words}")
        case _:
            return StoreError(f"{path}: SQLite says {type(error).__name__}: {error}")


def _why_not(path: Path) -> str:
    if path.is_dir():
        return "it is a folder; name a file in it"
    if not path.absolute().parent.is_dir():
        return f"the folder {path.absolute().parent} does not exist; make it first"
    return "this user may not write the file or its folder, where SQLite keeps its log"
