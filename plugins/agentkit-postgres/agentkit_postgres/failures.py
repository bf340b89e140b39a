"""What PostgreSQL refuses, in our words: what happened, why, and what to do. Never the password."""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from psycopg import errors

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
        words="the server can not take more: {said}. Nothing was changed; make room there and try "
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
        f"{address.shown} can not be reached: {said}. Nothing was changed; see that the server "
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
