"""What is known of a remote library: checked, caught up with, and kept on disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentkit.errors import AgentKitError, StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library.capabilities import AppliedChange
from agentkit.library.chain_check import bulk_of, told_digests, verify_chain
from agentkit.library.event_chain import ChainHead, Verifier
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.address import Address
from agentkit.library.remote.client import LibraryClient
from agentkit.library.remote.wire import Head, Ranges, decode, encode
from agentkit.library.sealing import is_sealed, seal
from agentkit.library.sqlite.connection import SQLiteConnection
from agentkit.library.store import ToolRevision
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

Outline = Callable[[int], Mapping[str, str]]
"""Gives name and digest of what one version brought, as the server says; it is checked here."""

_SHOWN = 3


def check_events(
    events: Sequence[LibraryEvent],
    *,
    before: LibraryEvent | None,
    verifier: Verifier | None,
    signed_from: int,
) -> None:
    """Refuse events that do not go on from those known, or that nobody with the key signed.

    Args:
        events: What is new.
        before: The last event that was checked earlier; None for none.
        verifier: Checks the signatures; None looks at the chain alone.
        signed_from: The first event that has to be signed.

    Raises:
        StoreFormatError: One is not as it was written.
    """
    faults = verify_chain(events, before=before, verifier=verifier, signed_from=signed_from)
    wrong = [fault for fault in faults if not fault.is_note]
    if wrong:
        more = f", and {len(wrong) - 1:,} more faults" if len(wrong) > 1 else ""
        raise StoreFormatError(f"the chain of events is not whole: {wrong[0].message}{more}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What the events up to one of them say that the library holds.

    Attributes:
        digests: The digest of each tool.
    """

    digests: Mapping[str, str] = field(default_factory=dict)

    def after(self, events: Iterable[LibraryEvent], outline: Outline) -> Told:
        """The same with further events.

        Raises:
            StoreFormatError: The outline of a large change is not what its event says.
        """
        digests = dict(self.digests)
        for event in events:
            _take(digests, told_by(event, outline))
        return Told(digests=digests)

    def check(self, library: Library) -> None:
        """Refuse a library that is not what the events say.

        Raises:
            StoreFormatError: It is not; names the first tools.
        """
        held = {tool.name: tool.definition.digest for tool in library}
        if held == self.digests:
            return
        untold = [name for name in held if name not in self.digests]
        missing = [name for name in self.digests if name not in held]
        other = [name for name in held if self.digests.get(name, held[name]) != held[name]]
        parts = [
            f"{words} {', '.join(map(repr, names[:_SHOWN]))}{' ...' * (len(names) > _SHOWN)}"
            for words, names in (
                ("it holds others than they say of", other),
                ("no event tells of", untold),
                ("it lacks", missing),
            )
            if names
        ]
        raise StoreFormatError(
            f"library version {library.version} is not what its signed events say: "
            f"{'; '.join(parts)}. Writers must tell of every change, as the Tool Manager and the "
            "commands of agentkit do"
        )


def told_by(event: LibraryEvent, outline: Outline) -> Mapping[str, str]:
    """The tools of which an event tells, with the digest of each; empty for one that is gone.

    Raises:
        StoreFormatError: The outline of a large change is not what its event says.
    """
    if not event.library_version:
        return {}
    told = dict(told_digests(event))
    bulk = bulk_of(event)
    if bulk is not None:
        brought = outline(event.library_version)
        if (len(brought), digest(dict(brought))) != bulk:
            raise StoreFormatError(
                f"event {event.sequence} says that library version {event.library_version} "
                f"brought {bulk[0]:,} definitions; what the server lists are others"
            )
        told |= brought
    return told


def check_history(
    tool_name: str,
    revisions: Sequence[ToolRevision],
    events: Iterable[LibraryEvent],
    outline: Outline,
) -> None:
    """Refuse a history of a tool that is not what the events say of it.

    Raises:
        StoreFormatError: A revision is another one, or one is missing or too much.
    """
    told: dict[int, set[str]] = {}
    for event in events:
        named = told_by(event, outline)
        if tool_name in named:
            told.setdefault(event.library_version, set()).add(named[tool_name])
    for version, digests in told.items():
        earlier = [one for one in revisions if one.version <= version]
        if digests != {_digest(earlier[-1]) if earlier else ""}:
            _not_told(tool_name, version)
    for revision in revisions:
        if revision.version not in told:
            _not_told(tool_name, revision.version)


def check_change(applied: AppliedChange, before: Told, told: Iterable[Mapping[str, str]]) -> None:
    """Refuse a change that is not what the events of its version say.

    Args:
        applied: The change.
        before: What the library held before.
        told: What each event of its version tells.

    Raises:
        StoreFormatError: It does something else.
    """
    change = applied.change
    done = dict.fromkeys(change.removals, "") | {one.name: one.digest for one in change.upserts}
    said: dict[str, str] = {}
    for one in told:
        said |= one
    for name in done.keys() | said.keys():
        if said.get(name) != done.get(name, before.digests.get(name, "")):
            _not_told(name, applied.version)


def _take(digests: dict[str, str], told: Mapping[str, str]) -> None:
    for name, found in told.items():
        if found:
            digests[name] = found
        else:
            digests.pop(name, None)


def _digest(revision: ToolRevision) -> str:
    return "" if revision.definition is None else revision.definition.digest


def _not_told(tool_name: str, version: int) -> None:
    raise StoreFormatError(
        f"what the server says that library version {version} did to {tool_name!r} is not what "
        "the signed events say"
    )


_FEW_VERSIONS = 16

NOTHING = Head(
    version=0, digest=Library().digest, tools=0, versions=(), events=ChainHead(sequence=0, hash="")
)
"""The head of a library of which nothing was heard yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known of a library, all of it checked.

    Attributes:
        head: What the server said last.
        etag: The ETag of that; empty where nothing was heard.
        library: The snapshot at the head's version.
        events: The chain, perhaps not to its end: without a key it is read when asked for.
        told: What the events say that the library holds; with a key alone.
        outlines: What very large changes brought, of which events have one digest alone.
    """

    head: Head = NOTHING
    etag: str = ""
    library: Library = field(default_factory=Library)
    events: tuple[LibraryEvent, ...] = ()
    told: Told = field(default_factory=Told)
    outlines: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def is_heard(self) -> bool:
        """Whether anything is known."""
        return self.head is not NOTHING

    @property
    def has_all_events(self) -> bool:
        """Whether the chain is known to its end."""
        return len(self.events) == self.head.events.sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """What has to be shown before something is taken up.

    Attributes:
        verifier: Checks signatures; None believes the server.
        signed_from: The first event that has to be signed.
    """

    verifier: Verifier | None = None
    signed_from: int = 1


class CatchingUp:
    """One step from what is known to what is newest.

    Args:
        client: Asks the server.
        trust: What has to be shown.
    """

    def __init__(self, client: LibraryClient, trust: Trust) -> None:
        self._client = client
        self._trust = trust
        self._outlines: dict[int, Mapping[str, str]] = {}

    def after(self, known: Known, *, with_events: bool) -> Known:
        """What is known then.

        Args:
            known: What is known already; it stays as it is.
            with_events: Whether the chain is wanted to its end.

        Raises:
            StoreUnavailableError: The server can not be reached.
            StoreFormatError: Something is not what it should be.
        """
        answer = self._client.head(etag=known.etag)
        head, etag = (known.head, known.etag) if answer is None else answer
        wants_events = with_events or self._trust.verifier is not None
        if head == known.head and (known.has_all_events or not wants_events):
            return replace(known, etag=etag)
        if known.is_heard:
            check_not_back(known.head, head)
        events = self._events(known, head) if wants_events else known.events
        found = replace(
            known, head=head, etag=etag, events=events, library=self._library(known, head)
        )
        if self._trust.verifier is None:
            return found
        self._outlines = dict(known.outlines)
        told = known.told.after(events[len(known.events) :], self._outline)
        told.check(found.library)
        return replace(found, told=told, outlines=self._outlines)

    def checked(self, known: Known) -> Known:
        """What was kept on disk, looked at as if it had just come.

        Raises:
            StoreFormatError: Something is not what it should be.
        """
        self._check_events(known.events, None, known.head)
        if self._trust.verifier is None:
            return known
        self._outlines = dict(known.outlines)
        told = Told().after(known.events, self._outline)
        told.check(known.library)
        return replace(known, told=told, outlines=self._outlines)

    def _events(self, known: Known, head: Head) -> tuple[LibraryEvent, ...]:
        held = known.events
        new = tuple(self._client.events(after=len(held), upto=head.events.sequence))
        self._check_events(new, held[-1] if held else None, head)
        seen = known.head.events.sequence
        if seen and ChainHead.of((*held, *new)[seen - 1]) != known.head.events:
            raise went_back(known.head, head)
        return (*held, *new)

    def _check_events(
        self, events: tuple[LibraryEvent, ...], before: LibraryEvent | None, head: Head
    ) -> None:
        check_events(
            events,
            before=before,
            verifier=self._trust.verifier,
            signed_from=self._trust.signed_from,
        )
        last = events[-1] if events else before
        if last is None or last.sequence != head.events.sequence:
            return  # the chain is not known to its end
        if ChainHead.of(last) != head.events:
            raise StoreFormatError(
                f"event {last.sequence} is another one than the server's head names"
            )

    def _library(self, known: Known, head: Head) -> Library:
        """The newest snapshot: by what changed, or whole where that is less."""
        gap = head.version - known.head.version
        if not gap and (known.is_heard or not head.tools):
            return known.library
        if known.head.version and gap <= max(_FEW_VERSIONS, len(known.library)):
            library = known.library
            for applied in self._client.changes(after=known.head.version, upto=head.version):
                library = library.without(applied.change.removals)
                library = library.with_tools(applied.change.upserts)
        else:
            found = self._client.tools(head.version, most=head.tools)
            library = Library(found).continuing(known.library)
        if (library.digest, len(library)) != (head.digest, head.tools):
            raise StoreFormatError(
                f"library version {head.version} should have {head.tools:,} tools and digest "
                f"{head.digest[:12]}; what came has {len(library):,} and {library.digest[:12]}"
            )
        return library.at_version(head.version)

    def _outline(self, version: int) -> Mapping[str, str]:
        if version not in self._outlines:
            self._outlines[version] = self._client.outline(version)
        return self._outlines[version]


def check_not_back(seen: Head, head: Head) -> None:
    """Refuse a head that is older than one that was seen, or of another history.

    Raises:
        StoreFormatError: The server went back.
    """
    if head.version < seen.version or head.events.sequence < seen.events.sequence:
        raise went_back(seen, head)
    if head.version == seen.version and (head.digest, head.tools) != (seen.digest, seen.tools):
        raise went_back(seen, head)
    if head.events.sequence == seen.events.sequence and head.events != seen.events:
        raise went_back(seen, head)
    if seen.version and not _covers(head.versions, seen.versions):
        raise went_back(seen, head)


def went_back(seen: Head, head: Head) -> StoreFormatError:
    """The error for a server whose history is no longer the one that was seen."""
    if (head.version, head.events.sequence) < (seen.version, seen.events.sequence):
        what = "went back"
    else:
        what = "has another history than the one that was seen before"
    return StoreFormatError(
        f"the server {what}: it is at library version {head.version} and event "
        f"{head.events.sequence}, and was seen at {seen.version} and {seen.events.sequence}. "
        "Somebody plays an old state, or the store behind it was restored or is another one. If "
        "that is right, empty this library's cache (?cache=, or its folder in the libraries of "
        "$AGENTKIT_CACHE) and start again"
    )


def _covers(rows: Ranges, seen: Ranges) -> bool:
    """Whether all versions that were seen are still there."""
    return all(any(a <= first and last <= b for a, b in rows) for first, last in seen)


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
