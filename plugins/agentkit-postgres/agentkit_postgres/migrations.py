"""What is looked at before a database is used, and giving it the newest shape, once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from psycopg import errors, sql

from agentkit.errors import StoreError, StoreFormatError
from agentkit.library.store import StoreFault
from agentkit_postgres._version import __version__
from agentkit_postgres.connection import Connections, Link, fetch
from agentkit_postgres.steps import STEPS

LEDGER = "agentkit_migrations"

_LEDGER_TABLE = f"""
CREATE TABLE {LEDGER} (
    position   integer PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    applied_at timestamptz NOT NULL DEFAULT now(),
    applied_by text NOT NULL  -- version of agentkit-postgres
)
"""

_OURS = ("definitions", "versions", "revisions", "events", "episodes", "episode_tools")
_OUR_NAMES = (*_OURS, "documents", "tools", "derived", LEDGER)

_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('agentkit ' || %s, 0))"

_APPLIED = f"SELECT name FROM {LEDGER} ORDER BY position"  # noqa: S608 - a constant above

_NOTE = f"INSERT INTO {LEDGER} VALUES (%s, %s, now(), %s)"  # noqa: S608 - a constant above

_TAKEN = """
SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(%s))
AND relname = ANY (%s) ORDER BY relname
"""

_NEWER = (
    "{where} was written by a newer agentkit: it went through {names}, which agentkit-postgres "
    "{version} does not know. Nothing was changed; run: pip install --upgrade agentkit-postgres"
)


def bring_up_to_date(connections: Connections) -> None:
    """Give a database the newest shape; one that has it already is only looked at.

    All steps that are missing run in one transaction under a lock, so that a database never stays
    half-way, and two programs that open the same new one do not both run them.

    Raises:
        StoreFormatError: The schema was written by a newer agentkit, or holds tables of another
            program. It is left as it was.
        StoreError: The schema cannot be made or changed.
    """
    applied = connections.run(_applied)
    _check_not_newer(connections, applied)
    if len(applied) < len(STEPS):
        connections.run(lambda link: _apply_missing(link, connections))


def newer(connections: Connections) -> StoreFormatError:
    """The error of a write into a database that a newer agentkit took over meanwhile."""
    applied = connections.run(_applied)
    return _newer(connections, [name for name in applied if name not in STEPS])


def _applied(link: Link) -> tuple[str, ...]:
    try:
        return tuple(name for (name,) in fetch(link, _APPLIED))
    except errors.UndefinedTable:
        return ()


def _check_not_newer(connections: Connections, applied: Sequence[str]) -> None:
    unknown = [name for name in applied if name not in STEPS]
    if unknown:
        raise _newer(connections, unknown)


def _newer(connections: Connections, unknown: Sequence[str]) -> StoreFormatError:
    address = connections.address
    names = ", ".join(unknown) or "steps"
    where = f"the schema {address.schema!r} of {address.shown}"
    return StoreFormatError(_NEWER.format(where=where, names=names, version=__version__))


def _apply_missing(link: Link, connections: Connections) -> None:
    schema = connections.address.schema
    with link.transaction():
        fetch(link, _ONE_AT_A_TIME, (schema,))
        has_ledger = bool(fetch(link, _TAKEN, (schema, [LEDGER])))
        if not has_ledger:
            _check_not_foreign(link, connections)
            if not fetch(link, "SELECT FROM pg_namespace WHERE nspname = %s", (schema,)):
                link.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            fetch(link, _LEDGER_TABLE)
        applied = _applied(link)  # again, now that nobody else can be at it
        _check_not_newer(connections, applied)
        for position, (name, step) in enumerate(STEPS.items(), start=1):
            if name not in applied:
                link.execute(step.encode())
                fetch(link, _NOTE, (position, name, __version__))


def _check_not_foreign(link: Link, connections: Connections) -> None:
    address = connections.address
    taken = [name for (name,) in fetch(link, _TAKEN, (address.schema, list(_OUR_NAMES)))]
    if taken:
        raise StoreFormatError(
            f"the schema {address.schema!r} of {address.shown} belongs to another program: it "
            f"holds {', '.join(taken)}, which agentkit did not make. Nothing was changed; choose "
            "another with ?schema="
        )


_TRIGGER = """
SELECT 1 FROM pg_trigger WHERE tgname = 'events_stay' AND tgrelid = 'events'::regclass
AND tgenabled <> 'D'
"""


def check_schema(connections: Connections) -> Iterator[StoreFault]:
    """Whether the schema is as its steps made it; see ``Checkable.check``."""
    rows = connections.execute(f"SELECT position, name FROM {LEDGER} ORDER BY position")  # noqa: S608 - a constant
    expected = list(enumerate(STEPS, start=1))
    if rows != expected:
        message = f"the schema went through {rows}, and not through {expected}; restore a backup"
        yield StoreFault(place=LEDGER, message=message)
    if not connections.execute(_TRIGGER):
        message = (
            "the trigger events_stay, which keeps events from being changed, was taken away or "
            "disabled; restore a backup"
        )
        yield StoreFault(place="events", message=message)


logger = logging.getLogger(__name__)

_OLDEST = 120000
"""PostgreSQL 12; an older one is not maintained and was not tried."""

_FACTS = """
SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'),
       current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on'
"""


def make_ready(connections: Connections) -> None:
    """See that the server can hold a library, and give its schema the newest shape.

    A server that does not flush to its disk is used, with a warning in the log.

    Raises:
        StoreError: The server cannot hold a library.
    """
    shown = connections.address.shown
    connections.connected().close()  # the pool would try several times, and log each failure
    ((version, encoding, is_durable),) = connections.execute(_FACTS)
    if version < _OLDEST:
        raise StoreError(f"{shown} runs PostgreSQL {version // 10000}; agentkit needs 12 or newer")
    if encoding != "UTF8":
        raise StoreError(
            f"the database of {shown} holds text as {encoding}, which lacks most characters; make "
            "one with: createdb --encoding=UTF8 --template=template0 NAME"
        )
    if not is_durable:
        logger.warning(
            "%s runs with fsync=off or full_page_writes=off: a crash of its machine may lose "
            "committed versions or the whole database; set both to on in postgresql.conf",
            shown,
        )
    bring_up_to_date(connections)
