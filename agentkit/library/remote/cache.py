"""``LibraryCache``: what is known of a remote library, kept on disk for the next start."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentkit.errors import AgentKitError, StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.address import Address
from agentkit.library.remote.trust import Known
from agentkit.library.remote.wire import Head, decode, encode
from agentkit.library.sealing import is_sealed, seal
from agentkit.library.sqlite.connection import SQLiteConnection
from agentkit.tools.definition import ToolDefinition

_LOG = logging.getLogger(__name__)

FILE_NAME = "library.db"
_FORMAT = 1
_TIMEOUT_SECONDS = 5.0

# SQLite takes any type of value in any column, so a file that was changed may hold anything.
_DAMAGE = (StoreFormatError, AttributeError, TypeError, ValueError)

_TABLES = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS tools (name TEXT PRIMARY KEY, place INTEGER NOT NULL,
    digest TEXT NOT NULL, record TEXT NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS events (sequence INTEGER PRIMARY KEY, record TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS outlines (version INTEGER PRIMARY KEY, record TEXT NOT NULL)",
)
_KIND = "library cache"
_PUT_ABOUT = "INSERT OR REPLACE INTO about VALUES (?, ?)"
_PUT_TOOL = "INSERT OR REPLACE INTO tools VALUES (?, ?, ?, ?)"


class LibraryCache:
    """Keeps what is known of one library in a folder.

    Args:
        folder: Made when it is absent; None keeps nothing.
        address: Of the library; a folder that holds another one is left alone.
    """

    def __init__(self, folder: Path | None, address: Address) -> None:
        self.folder = folder
        self._base = address.base
        self._connection: SQLiteConnection | None = None
        self._same = Library()

    def read(self) -> Known | None:
        """What was known last; None where there is nothing that can be used."""
        found: list[Known] = []
        with self._logged("read"):
            connection = self._opened()
            if connection is not None:
                about = dict(connection.execute("SELECT name, value FROM about"))
                if "head" in about:
                    found.append(_known(connection, about))
                    self._same = found[0].library
        return found[0] if found else None

    def keep(self, known: Known) -> None:
        """Keep it for the next start, unless another process keeps something newer."""
        with self._logged("written"):
            connection = self._opened()
            if connection is None:
                return
            with connection.transaction():
                about = dict(connection.execute("SELECT name, value FROM about"))
                held = Head.from_json(decode(about["head"].encode())) if "head" in about else None
                if held is not None and _is_newer(held, known.head):
                    return
                _write(connection, known, self._same)
                self._same = known.library

    def put_aside(self) -> None:
        """Make room for a new one; what was damaged is kept beside it."""
        self.close()
        if self.folder is not None:
            path = self.folder / FILE_NAME
            try:
                path.replace(path.with_suffix(".damaged"))
                for name in (f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
                    (self.folder / name).unlink(missing_ok=True)
            except OSError as error:
                _LOG.warning("the cache %s can not be put aside: %s", self.folder, error)
                self.folder = None

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _opened(self) -> SQLiteConnection | None:
        if self._connection is not None or self.folder is None:
            return self._connection
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = SQLiteConnection(
            self.folder / FILE_NAME, timeout_seconds=_TIMEOUT_SECONDS, tracer=None
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: SQLiteConnection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        with connection.transaction():
            for table in _TABLES:
                connection.execute(table)
            about = dict(connection.execute("SELECT name, value FROM about"))
            if not about:
                rows = [("format", str(_FORMAT)), ("base", self._base)]
                connection.execute_many(_PUT_ABOUT, rows)
            elif about.get("base") != self._base:
                raise StoreError(
                    f"the cache {self.folder} is that of {about.get('base')}, not of {self._base}; "
                    "give each library a folder of its own (?cache=PATH)"
                )
            elif about.get("format") != str(_FORMAT):
                raise StoreError(
                    f"the cache {self.folder} was written by another agentkit (format "
                    f"{about.get('format')}); empty it, or give another (?cache=PATH)"
                )

    @contextmanager
    def _logged(self, what: str) -> Iterator[None]:
        """A cache is a help and no need: without it the library works on."""
        try:
            yield
        except _DAMAGE as error:
            _LOG.warning("the cache can not be %s, a new one is begun: %s", what, error)
            self.put_aside()
        except StoreUnavailableError as error:
            _LOG.warning("the cache is not %s this time: %s", what, error)
        except (StoreError, OSError) as error:
            _LOG.warning("the cache can not be %s, so nothing is kept there: %s", what, error)
            self.close()
            self.folder = None


def _known(connection: SQLiteConnection, about: Mapping[str, str]) -> Known:
    found = bytes.fromhex(about.get("seal", ""))
    if not is_sealed(_sealed_part(about), found, _KIND):
        raise StoreFormatError("it was changed, or another user or machine wrote it")
    head = Head.from_json(decode(about["head"].encode()))
    rows = connection.execute("SELECT digest, record FROM tools ORDER BY place")
    events = connection.execute("SELECT sequence, record FROM events ORDER BY sequence")
    outlines = connection.execute("SELECT version, record FROM outlines")
    library = Library((_definition(*row) for row in rows), version=head.version)
    if (library.digest, len(library)) != (head.digest, head.tools):
        raise StoreFormatError("the library that was kept is not the one that its head names")
    kept = tuple(LibraryEvent.from_json(decode(record.encode())) for _, record in events)
    if (kept[-1].hash if kept else "") != about.get("end"):
        raise StoreFormatError("the events that were kept do not end as they did")
    return Known(
        head=head,
        etag=about.get("etag", ""),
        library=library,
        events=kept,
        outlines={version: _outline(record) for version, record in outlines},
    )


def _outline(record: str) -> Mapping[str, str]:
    found = decode(record.encode())
    if not all(isinstance(value, str) for value in found.values()):
        raise StoreFormatError("what a large change brought was changed where it lay")
    return found


def _definition(digest: str, record: str) -> ToolDefinition:
    try:
        definition = ToolDefinition.from_json(json.loads(record))
        found = definition.digest
    except (AgentKitError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreFormatError(f"a definition that was kept can not be read: {error}") from error
    if found != digest:
        raise StoreFormatError(f"the definition of {definition.name!r} was changed where it lay")
    return definition


def _is_newer(held: Head, head: Head) -> bool:
    return (held.version, held.events.sequence) > (head.version, head.events.sequence)


def _write(connection: SQLiteConnection, known: Known, same: Library) -> None:
    """Write what differs from what lies there.

    Args:
        connection: To the file, in a transaction.
        known: What is to lie there.
        same: A library whose definitions were written or read here, so that those of them that
            lie there need not be made into JSON to see that they are the same.
    """
    held = {
        name: (place, digest)
        for name, place, digest in connection.execute("SELECT name, place, digest FROM tools")
    }
    rows, last = [], 0
    for tool in known.library:
        definition, earlier = tool.definition, same.get(tool.name)
        place, digest = held.pop(tool.name, (0, ""))
        kept = place if place > last else last + 1  # places only ever grow in the order
        is_same = earlier is not None and earlier.definition is definition
        if not is_same or (place, digest) != (kept, definition.digest):
            record = encode(definition.to_json()).decode()
            rows.append((tool.name, kept, definition.digest, record))
        last = kept
    connection.execute_many("DELETE FROM tools WHERE name = ?", [(name,) for name in held])
    connection.execute_many(_PUT_TOOL, rows)
    ((count,),) = connection.execute("SELECT coalesce(max(sequence), 0) FROM events")
    events = [(one.sequence, encode(one.to_json()).decode()) for one in known.events[count:]]
    connection.execute_many("INSERT OR REPLACE INTO events VALUES (?, ?)", events)
    outlines = [(version, json.dumps(dict(one))) for version, one in known.outlines.items()]
    connection.execute_many("INSERT OR REPLACE INTO outlines VALUES (?, ?)", outlines)
    about = dict(connection.execute("SELECT name, value FROM about"))
    about |= {"head": encode(known.head.to_json()).decode(), "etag": known.etag}
    about["end"] = known.events[-1].hash if known.events else ""
    about["seal"] = seal(_sealed_part(about), _KIND).hex()
    connection.execute_many(_PUT_ABOUT, list(about.items()))


def _sealed_part(about: Mapping[str, str]) -> bytes:
    """What the seal covers; the digests in the head cover the definitions and the events."""
    return json.dumps([about.get(name, "") for name in ("base", "head", "etag", "end")]).encode()
