"""``Address``: where a store is and how patient it is, read from a URL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentkit.errors import UsageError

_MOST_SCHEMA_BYTES = 63  # PostgreSQL cuts longer names off, and two would become one

_USER = re.compile(r"[^:/?]*://[^@/]*@")
"""Libpq takes a question mark before the @ for a part of the password."""

_PORTS = re.compile(r"[0-9]*(,[0-9]*)*")
"""What stands there instead is mostly a password with no user or no host around it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a store is, and how patient it is.

    Attributes:
        conninfo: What libpq connects with; it holds the password.
        shown: The URL without password and parameters, for messages.
        database: Name of the database; empty where the server chooses.
        schema: The schema that holds the tables.
        pool_size: Connections at most, beside those of watches.
        timeout: Seconds to wait for a connection, for a free one, and for another writer.
        statement_timeout: Seconds that one statement may take.

    Example:
        >>> address = Address.parse("postgresql://ada:secret@db.example/tools?schema=team")
        >>> address.shown, address.schema, "secret" in repr(address)
        ('postgresql://ada@db.example/tools', 'team', False)
    """

    conninfo: str = field(repr=False)
    shown: str
    database: str
    schema: str = "agentkit"
    pool_size: int = 4
    timeout: float = 10.0
    statement_timeout: float = 60.0

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME``.

        ``schema``, ``pool_size``, ``timeout`` and ``statement_timeout`` are ours; every other
        parameter is one of libpq, such as ``sslmode``.

        Raises:
            UsageError: This is no such URL, or a parameter of ours makes no sense.
        """
        user = _USER.match(url)
        start = user.end() if user else 0
        place, _, query = url[start:].partition("?")
        place = url[:start] + place
        parts = [part for part in query.split("&") if part]
        ours = {name: _value(part) for part in parts if (name := part.partition("=")[0]) in _OURS}
        theirs = [part for part in parts if part.partition("=")[0] not in _OURS]
        found = _of_libpq(f"{place}?{'&'.join(theirs)}" if theirs else place)
        own = {name: _OURS[name](name, text) for name, text in ours.items()}
        return cls(
            conninfo=make_conninfo("", **(_patience(own.get("timeout", 10.0)) | found)),
            shown=_shown(found),
            database=str(found.get("dbname", "")),
            **own,
        )


def _value(part: str) -> str:
    return unquote(part.partition("=")[2])


def _of_libpq(url: str) -> dict[str, Any]:
    try:
        found = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    except ProgrammingError:  # it quotes what it cannot read, and that may be a password
        found = None
    ports = "" if found is None else str(found.get("port", ""))
    if found is None or not _PORTS.fullmatch(ports):
        raise UsageError(
            "this is not the URL of a PostgreSQL database, or one of its parameters is not known; "
            "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME, special characters "
            "in a password as %XX"
        )
    return found


def _shown(found: Mapping[str, Any]) -> str:
    user = f"{found['user']}@" if found.get("user") else ""
    port = f":{found['port']}" if found.get("port") else ""
    return f"postgresql://{user}{found.get('host', '')}{port}/{found.get('dbname', '')}"


def _patience(timeout: float) -> dict[str, Any]:
    """How libpq finds out that nobody is there; whatever the URL says stands instead."""
    return {
        "connect_timeout": max(1, round(timeout)),
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": max(1000, round(timeout * 1000)),
        "application_name": "agentkit",
        "client_encoding": "UTF8",
    }


def _schema(name: str, text: str) -> str:
    if not 0 < len(text.encode("utf-8", "replace")) <= _MOST_SCHEMA_BYTES or "\0" in text:
        raise _makes_no_sense(name, text, f"a name of 1 to {_MOST_SCHEMA_BYTES} bytes")
    if text.startswith("pg_"):
        raise _makes_no_sense(name, text, "a name that does not start with pg_")
    return text


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1000):
        raise _makes_no_sense(name, text, "a whole number from 1 to 1000")
    return int(text)


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86_400:
        raise _makes_no_sense(name, text, "a number of seconds from 0.01 to 86400")
    return seconds


def _makes_no_sense(name: str, text: str, wanted: str) -> UsageError:
    return UsageError(f"the parameter {name}={text!r} of a store's URL is not {wanted}")


_OURS: Mapping[str, Callable[[str, str], Any]] = {
    "schema": _schema,
    "pool_size": _count,
    "timeout": _seconds,
    "statement_timeout": _seconds,
}
