"""Connections that threads share: a pool, errors in our words, one retry when the server left."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit_postgres.address import Address

_REFUSED = (
    ("password authentication failed", "Give the right user and password in the URL"),
    ("no password supplied", "Give the user's password in the URL, or in ~/.pgpass"),
    ("no pg_hba.conf entry", "Let the server's pg_hba.conf admit this user from this machine"),
    ("pg_hba.conf rejects", "Let the server's pg_hba.conf admit this user from this machine"),
    ("authentication failed", "Give the right user in the URL, or let pg_hba.conf admit it"),
    ("is not permitted to log in", "ALTER ROLE ... LOGIN, or give another user in the URL"),
    ('role ".*" does not exist', "CREATE ROLE it, or give another user in the URL"),
    (
        'database ".*" does not exist',
        "Make it with: createdb NAME, or give another one in the URL",
    ),
    ("permission denied for database", "GRANT CONNECT ON DATABASE ..., or give another user"),
    ("configuration parameter|invalid value for parameter|set parameter", "Mend ?options="),
    ("does not support SSL", "Turn ssl on in the server, or give another ?sslmode="),
    (
        'certificate verify failed|certificate file "|server certificate for "',
        "See ?sslrootcert= and ?sslmode= in libpq's documentation",
    ),
)
"""Ends of a connection that trying again does not mend, and what does. The code of such an error is
not to be had, and the server says it in English unless ``lc_messages`` says otherwise: then it
counts as one that may pass, with the server's words."""

_SPOKEN = re.compile(r": \S+:  \S")
"""What a server said stands behind its severity, a colon and two spaces, in every language."""

_ROLLED_BACK = (errors.DeadlockDetected, errors.SerializationFailure)

_PASSING = (
    *_ROLLED_BACK,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleSessionTimeout,
)


_BROKEN = (
    "the connection broke: {said}. Whether the server applied what was sent is not known; send it "
    "again, a known proposal_id or episode_id is applied once"
)


_COLLIDED = "two programs were in each other's way twice: {said}. Nothing was changed; try again"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Refusal:
    """How some errors of PostgreSQL are told."""

    errors: tuple[type[psycopg.Error], ...]
    kind: type[StoreError] = StoreError
    words: str


_REFUSALS = (
    _Refusal(
        errors=(errors.LockNotAvailable,),
        kind=StoreUnavailableError,
        words="another program held the schema {schema!r} for more than {timeout:g} s. Nothing was "
        "changed; try again, or raise ?timeout=",
    ),
    _Refusal(
        errors=(errors.QueryCanceled,),
        kind=StoreUnavailableError,
        words="a statement, which may take {statement_timeout:g} s, was given up: {said}. Nothing "
        "was changed; try again, or raise ?statement_timeout=",
    ),
    _Refusal(
        errors=(errors.DiskFull, errors.OutOfMemory, errors.InsufficientResources),
        words="the server cannot take more: {said}. Nothing was changed; make room there and try "
        "again",
    ),
    _Refusal(
        errors=(errors.InsufficientPrivilege,),
        words="the user lacks a right: {said}. Nothing was changed; GRANT it (the plugin's README "
        "lists the rights), or give another user in the URL",
    ),
    _Refusal(
        errors=(errors.ReadOnlySqlTransaction,),
        words="the server only reads, as a standby does: {said}. Nothing was changed; write to the "
        "primary server (libpq finds it with ?target_session_attrs=read-write)",
    ),
    _Refusal(
        errors=(errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction),
        kind=StoreFormatError,
        words="a part of the schema {schema!r} is gone: {said}. Somebody changed it by hand; "
        "restore a backup, or choose another with ?schema=",
    ),
    _Refusal(
        errors=(errors.DataCorrupted, errors.IndexCorrupted),
        kind=StoreFormatError,
        words="the database is damaged: {said}. Nothing was changed; restore a backup",
    ),
)


_OF_A_HOST = re.compile(r"^(- host: .*?, hostaddr: \S+: )?connection failed: ", re.MULTILINE)
"""What psycopg puts before libpq's words, which name the host themselves."""


class SilenceError(psycopg.OperationalError):
    """The server gave no answer for so long that the network must be gone."""


def is_passing(error: psycopg.Error) -> bool:
    """Whether the same statement may work at once on another connection."""
    if isinstance(error, SilenceError):
        return False  # the network is away; the next connection would wait as long
    return isinstance(error, _PASSING) or _is_broken(error)


def in_our_words(error: psycopg.Error, address: Address) -> StoreError:
    """The error of a statement."""
    kind, words = StoreError, f"PostgreSQL says {type(error).__name__}: {{said}}"
    for refusal in _REFUSALS:
        if isinstance(error, refusal.errors):
            kind, words = refusal.kind, refusal.words
    if isinstance(error, _ROLLED_BACK):
        kind, words = StoreUnavailableError, _COLLIDED
    elif isinstance(error, _PASSING) or _is_broken(error):
        kind, words = StoreUnavailableError, _BROKEN
    facts = {
        "said": _said(error),
        "schema": address.schema,
        "timeout": address.timeout,
        "statement_timeout": address.statement_timeout,
    }
    return kind(f"{address.shown}: {words.format(**facts)}")


def not_connected(error: psycopg.Error, address: Address) -> StoreError:
    """The error of a connection that was not made."""
    said = _said(error)
    for words, advice in _REFUSED:
        if re.search(words, said):
            return StoreError(f"{address.shown} refused the connection: {said}. {advice}")
    if _SPOKEN.search(str(error)):
        return StoreUnavailableError(
            f"{address.shown} takes no connection now: {said}. Nothing was changed; try again, or "
            "mend the URL or the server where it complains of a user, a password or a database"
        )
    return StoreUnavailableError(
        f"{address.shown} cannot be reached: {said}. Nothing was changed; see that the server "
        "runs and takes connections from here, then try again"
    )


def _is_broken(error: psycopg.Error) -> bool:
    """An error without a code of the server is one of the connection."""
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def _said(error: psycopg.Error) -> str:
    """The first line, which holds no values of rows; of a connection all, each host's once."""
    said = error.diag.message_primary
    if not said:  # where a URL names several hosts, the last one's failure is told twice
        said = _OF_A_HOST.sub("", str(error).rpartition("All failures were:")[2])
    return " ".join(said.split()).rstrip(".?!") or type(error).__name__


T = TypeVar("T")

_FIRST_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 2.0
"""The server ends a statement that takes too long; who hears nothing even then is alone."""

_SETTINGS = """
SELECT set_config('search_path', format('%%I, pg_temp', %s::text), false),
       set_config('statement_timeout', %s, false),
       set_config('lock_timeout', %s, false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
           WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""
"""An acknowledged commit is on the disk, whatever the server's default is."""


class Link(psycopg.Connection[TupleRow]):
    """A connection that does not wait for ever for an answer.

    Attributes:
        answer_seconds: How long the server may be silent within a statement; None for no bound.
        born: When it was made, by the monotonic clock.
    """

    answer_seconds: float | None = None
    born: float = 0.0

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """See ``psycopg.Connection.wait``; a silent server ends it with a ``SilenceError``."""
        if self.answer_seconds is not None and timeout is None:
            gen = _impatient(gen, self.answer_seconds)
        return super().wait(gen, interval, timeout)


def _impatient(gen: PQGen[T], seconds: float) -> PQGen[T]:
    deadline = monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                deadline = monotonic() + seconds
            elif monotonic() > deadline:
                raise SilenceError(f"no answer for {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


class Connections:
    """The connections of one store, for any number of threads.

    A connection that the server or the network broke is replaced, and what ran on it runs once
    more: everything that this package sends may be sent twice. When one that was made since breaks
    too, the store is unavailable.

    Args:
        address: The database.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._process = os.getpid()
        self._closed = False
        self._failures = 0
        self._renewed = 0.0
        self._pool = ConnectionPool(
            address.conninfo,
            connection_class=Link,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=address.pool_size,
            name="agentkit",
            configure=self.configure,
            reconnect_timeout=0,  # whoever needs a connection tries anew, and hears why it failed
            reconnect_failed=self._note_failure,
            open=True,
        )

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[TupleRow]:
        """Run one statement in a transaction of its own and return all its rows."""
        return self.run(lambda link: fetch(link, sql, parameters))

    def run(self, work: Callable[[Link], T]) -> T:
        """Do work on a connection that nobody else uses meanwhile.

        Args:
            work: Runs statements; each is a transaction unless it opens one. It may be done twice.

        Raises:
            StoreUnavailableError: There is no connection, or a new one broke too.
            StoreError: The store is closed or was opened by another process, or PostgreSQL
                refused the work.
        """
        self.check_usable()
        broke_at: float | None = None
        while True:
            link = self._taken()
            try:
                return self._on(link, work)
            except psycopg.Error as error:
                is_second = broke_at is not None and (link.born > broke_at or not link.closed)
                if is_second or not is_passing(error):
                    raise in_our_words(error, self.address) from error
                broke_at = broke_at or monotonic()

    @property
    def is_ours(self) -> bool:
        """Whether this process opened them; a fork leaves them alone."""
        return self._process == os.getpid()

    def check_usable(self) -> None:
        """Refuse a closed store, and one that was carried across a fork."""
        if not self.is_ours:
            raise StoreError(
                f"{self.address.shown} was opened by process {self._process} and is used by its "
                f"fork {os.getpid()}; connections cannot be carried across a fork, open the "
                "store again in the new process"
            )
        if self._closed:
            raise StoreError(f"{self.address.shown} is closed; open it again with open_store")

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        if self.is_ours and not self._closed:  # they belong to who opened them
            self._closed = True
            self._pool.close(self.address.timeout)

    def configure(self, link: Link) -> None:
        """Make a new connection one of this store."""
        address = self.address
        link.born = monotonic()
        link.answer_seconds = address.statement_timeout + _GRACE_SECONDS
        milliseconds = (address.statement_timeout, address.timeout)
        fetch(link, _SETTINGS, (address.schema, *(str(round(s * 1000)) for s in milliseconds)))

    @contextmanager
    def own(self) -> Iterator[Link]:
        """A connection outside of the pool, which takes as long as it takes."""
        with self.connected() as link:
            fetch(link, "SELECT set_config('statement_timeout', '0', false)")
            link.answer_seconds = None
            try:
                yield link
            except psycopg.Error as error:
                raise in_our_words(error, self.address) from error

    def connected(self) -> Link:
        """A new connection outside of the pool; the caller closes it."""
        self.check_usable()
        try:
            link = Link.connect(self.address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise not_connected(error, self.address) from error
        try:
            self.configure(link)
        except psycopg.Error as error:
            link.close()
            raise in_our_words(error, self.address) from error
        return link

    def _on(self, link: Link, work: Callable[[Link], T]) -> T:
        taken = monotonic()
        try:
            return work(link)
        except BaseException as error:
            if isinstance(error, SilenceError):
                link.close()  # its answer may still come
            if link.closed:
                self._renew(taken)
            raise
        finally:
            self._pool.putconn(link)

    def _renew(self, taken: float) -> None:
        """Drop the others too, once: what broke one connection has mostly broken all."""
        if self._renewed < taken:
            self._renewed = monotonic()
            self._pool.drain()

    def _taken(self) -> Link:
        deadline = monotonic() + self.address.timeout
        look, failures = _FIRST_LOOK_SECONDS, self._failures
        while True:
            left = deadline - monotonic()
            try:
                return self._pool.getconn(min(look, left))
            except PoolClosed:
                self.check_usable()
                raise
            except PoolTimeout as error:
                if self._failures != failures:
                    self.connected().close()  # says what is the matter, or that all is well again
                    failures = self._failures
                if left <= 0:
                    raise self._none_free() from error
            look *= 2

    def _none_free(self) -> StoreUnavailableError:
        address = self.address
        return StoreUnavailableError(
            f"no connection to {address.shown} became free in {address.timeout:g} s: "
            f"{address.pool_size} may be in use at a time. Nothing was changed; try again, or "
            "raise ?pool_size= or ?timeout="
        )

    def _note_failure(self, pool: ConnectionPool[Any]) -> None:
        self._failures += 1


def fetch(link: Link, sql: str, parameters: Sequence[object] = ()) -> list[TupleRow]:
    """Run one statement and return its rows; none for one that has no rows."""
    cursor = link.execute(sql.encode(), parameters)
    return cursor.fetchall() if cursor.description is not None else []
