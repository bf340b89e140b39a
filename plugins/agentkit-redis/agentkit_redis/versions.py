"""The versions of a library: snapshots, histories and commits."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentkit.errors import (
    AgentKitError,
    StaleChainError,
    StaleVersionError,
    StoreFormatError,
    StoreUnavailableError,
    ToolNotFoundError,
)
from agentkit.library.changes import check_change, no_such_version
from agentkit.library.library import Library, nearest_names
from agentkit.library.store import AppliedChange, LibraryChange, ToolRevision
from agentkit.tools.definition import ToolDefinition
from agentkit_redis.connection import Command, Word
from agentkit_redis.reading import (
    FORMAT,
    Head,
    LibraryReader,
    Stored,
    VersionRecord,
    batches,
    definition_text,
    follows,
    raw,
    read_tool,
    read_version,
    refused,
    text_of,
    version_text,
)
from agentkit_redis.scripts import COMMIT

if TYPE_CHECKING:
    from redis import RedisError


from typing import TypeAlias

from agentkit.library.events import LibraryEvent
from agentkit.library.store import StoreFault
from agentkit.reading import read_json

_FEW = 16
"""So many versions are asked for along with the head; whoever is further behind reads all tools."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """A snapshot, and what proves that the server's version of that number is the same one.

    A server that was restored from a backup may give a number a second time.
    """

    library: Library = field(default_factory=Library)
    stamp: bytes = b""


class Snapshots:
    """Loads versions, for as many threads as there are."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        self._kept = _Kept()

    def load(self, version: int | None = None) -> Library:
        """See ``RedisStore.load``."""
        kept = self._kept
        head, records = self._look(kept)
        wanted = head.version if version is None else version
        if not 0 <= wanted <= head.version:
            raise no_such_version(wanted, range(1, head.version + 1))
        if wanted == 0:
            return Library()
        holds = _leads_on(kept, head, records)
        if holds and wanted == kept.library.version:
            return kept.library
        if wanted < head.version:
            return self._old(kept.library if holds else Library(), wanted)
        behind = head.version - kept.library.version
        if holds and behind <= len(records):
            return self._caught_up(kept, head, records[:behind])
        return self._whole(kept.library)

    def _look(self, kept: _Kept) -> tuple[Head, Sequence[bytes | None]]:
        """The head, and what made the few versions behind the kept one: one round trip."""
        first = kept.library.version
        if first == 0:
            return self._reader.head(), ()
        keys = self._reader.keys
        numbers: tuple[Word, ...] = tuple(range(first + 1, first + _FEW + 1))
        commands: list[Command] = [
            self._reader.head_command(),
            ("HMGET", keys.versions, *numbers),
        ]
        head, records = self._reader.connection.ask_all(commands)
        return self._reader.read_head(head), records

    def _caught_up(self, kept: _Kept, head: Head, texts: Sequence[bytes | None]) -> Library:
        base = kept.library
        records = [read_version(base.version + i, text) for i, text in enumerate(texts, start=1)]
        library = self._after(base, records, version=head.version)
        self._kept = _Kept(library=library, stamp=records[-1].stamp)
        return library

    def _old(self, base: Library, version: int) -> Library:
        """An earlier version, from one before it or from the beginning."""
        start = base if base.version < version else Library()
        records = self._reader.versions(range(start.version + 1, version + 1))
        library = self._after(start, records, version=version)
        return library if start is base else library.continuing(base)

    def _whole(self, known: Library) -> Library:
        """The newest version from all its tools; definitions that are known are not read again."""
        head, (held,) = self._reader.at_once(("HGETALL", self._reader.keys.tools))
        placed = sorted((read_tool(*one) for one in held.items()), key=lambda one: (one[0], one[1]))
        tools = self._reader.definitions([stored for _, _, stored in placed], known)
        library = Library(tools, version=head.version).continuing(known)
        self._kept = _Kept(library=library, stamp=head.stamp)
        return library

    def _after(self, base: Library, records: Iterable[VersionRecord], *, version: int) -> Library:
        """The snapshot at ``version``, from an earlier one and what came after it."""
        changed: dict[str, Stored] = {}
        gone: set[str] = set()
        for record in records:
            for name in record.removals:
                gone.add(name)  # one that comes again stands behind the others
                changed.pop(name, None)
            changed |= {stored.name: stored for stored in record.upserts}
        tools = self._reader.definitions(list(changed.values()), self._kept.library)
        rest = base.without(gone) if gone and len(base) else base
        return rest.with_tools(tools).at_version(version)


def _leads_on(kept: _Kept, head: Head, records: Sequence[bytes | None]) -> bool:
    """Whether the kept version is one that the server's newest came from."""
    if kept.library.version == head.version:
        return kept.stamp == head.stamp
    return bool(records) and follows(kept.stamp, records[0])


_DIGITS = 16
_PAGE = 100
"""Versions whose changes are read at a time."""


class History:
    """Looks back."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        return tuple(range(1, self._reader.head().version + 1))

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        self._reader.head()  # whether it is a library that we can read
        records = list(self._reader.versions(self._versions_of(tool_name)))
        steps = [_step(record, tool_name) for record in records]
        wanted = list(dict.fromkeys(step for step in steps if step is not None))
        read = dict(zip(wanted, self._reader.definitions(wanted, Library()), strict=True))
        return tuple(
            _revision(record, None if step is None else read[step])
            for record, step in zip(records, steps, strict=True)
        )

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """See ``ToolStore.changes``."""
        newest = self._reader.head().version
        return self._changes(range(max(after, 0) + 1, newest + 1))

    def _changes(self, numbers: range) -> Iterator[AppliedChange]:
        stamp = b"" if numbers.start == 1 else None
        for some in batches(numbers, _PAGE):
            records = list(self._reader.versions(some))
            wanted = list(dict.fromkeys(one for record in records for one in record.upserts))
            read = dict(zip(wanted, self._reader.definitions(wanted, Library()), strict=True))
            for record in records:
                if stamp is not None and not follows(stamp, record.data):
                    raise StoreFormatError(
                        f"version {record.version} was changed after it was written, or the one "
                        "before it: restore a backup"
                    )
                stamp = record.stamp
                change = LibraryChange(
                    proposal_id=record.proposal_id,
                    upserts=tuple(read[one] for one in record.upserts),
                    removals=record.removals,
                    author=record.author,
                    reason=record.reason,
                    evidence=record.evidence,
                    created_at=record.created_at,
                )
                yield AppliedChange(version=record.version, change=change)

    def _versions_of(self, tool_name: str) -> list[int]:
        """Versions that changed a tool, ascending."""
        start = raw(tool_name) + b"\0"
        found = self._reader.connection.ask(
            "ZRANGEBYLEX",
            self._reader.keys.revisions,
            b"[" + start + b"0" * _DIGITS,
            b"[" + start + b"9" * _DIGITS,
        )
        fits = len(start) + _DIGITS  # longer ones are of a name that has ours and a NUL before it
        return [int(member[-_DIGITS:]) for member in found if len(member) == fits]


def _step(record: VersionRecord, tool_name: str) -> Stored | None:
    """What a version made of a tool; None when it removed it."""
    return next((one for one in record.upserts if one.name == tool_name), None)


def _revision(record: VersionRecord, definition: ToolDefinition | None) -> ToolRevision:
    return ToolRevision(
        version=record.version,
        definition=definition,
        proposal_id=record.proposal_id,
        author=record.author,
        reason=record.reason,
        evidence=record.evidence,
        created_at=record.created_at,
    )


logger = logging.getLogger(__name__)


class Commits:
    """Applies changes.

    Args:
        reader: Of the library.
        snapshots: Tell which names there are, when one is unknown.
    """

    def __init__(self, reader: LibraryReader, snapshots: Snapshots) -> None:
        self._reader = reader
        self._snapshots = snapshots
        keys = reader.keys
        self._keys = (
            keys.head,
            keys.versions,
            keys.proposals,
            keys.definitions,
            keys.tools,
            keys.revisions,
            keys.events,
        )

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """See ``ToolStore.commit``."""
        check_change(change)
        connection = self._reader.connection
        wanted = connection.address.replicas
        arguments = _arguments(
            change, expected_version, channel=self._reader.keys.channel, is_waited_for=wanted > 0
        )
        reached: int | RedisError = 0
        if wanted:
            answer, reached = connection.run_and_wait(COMMIT, self._keys, arguments, wanted)
        else:
            answer = connection.run(COMMIT, self._keys, arguments)
        if answer[0] != b"made":
            raise self._refusal(change, expected_version, answer)
        if not isinstance(reached, int) or reached < wanted:
            raise self._too_few(reached)
        return int(answer[1])

    def _refusal(self, change: LibraryChange, expected: int, answer: list[bytes]) -> AgentKitError:
        match answer[0]:
            case b"stale":
                return StaleVersionError(expected=expected, actual=int(answer[1]))
            case b"chain":
                known = change.events[0].sequence - 1
                return StaleChainError(expected=known, actual=int(answer[1]))
            case b"absent":
                name = text_of(answer[1])
                nearest = nearest_names(name, self._snapshots.load().tools)
                return ToolNotFoundError(name, nearest=nearest, version=int(answer[2]))
            case _:
                return refused(self._reader.connection, self._reader.keys, answer)

    def _too_few(self, reached: int | RedisError) -> StoreUnavailableError:
        address = self._reader.connection.address
        wanted = address.replicas
        so_far = (
            f"{reached} of {wanted} replicas have it so far"
            if isinstance(reached, int)
            else f"nobody knows whether {wanted} replicas have it: WAIT answers {reached}"
        )
        return StoreUnavailableError(
            f"{address} has the change, but {so_far}. Send the same change again: it is not "
            "applied twice, and is waited for"
        )


def _arguments(
    change: LibraryChange, expected_version: int, *, channel: str, is_waited_for: bool
) -> list[Word]:
    """What the script wants, in its order."""
    tools = [definition_text(tool) for tool in change.upserts]
    first = change.events[0] if change.events else None
    arguments: list[Word] = [
        FORMAT,
        str(expected_version),
        raw(change.proposal_id),
        version_text(change, [stored for stored, _ in tools]) if change.makes_version else "",
        channel,
        str(first.sequence - 1 if first else 0),
        first.previous if first else "",
        len(tools),
        len(change.removals),
        len(change.events),
        int(is_waited_for),
    ]
    for stored, body in tools:
        arguments += [raw(stored.name), stored.digest, raw(body), raw(stored.origin)]
    arguments += map(raw, change.removals)
    for event in change.events:
        body = json.dumps(event.to_json(), ensure_ascii=False, separators=(",", ":"))
        arguments += [event.hash, raw(body)]
    return arguments


_AT_A_TIME = 500
_GREATEST = 2**64 - 1  # the largest number in the id of an entry

_Page: TypeAlias = "Sequence[tuple[bytes, dict[bytes, bytes]]]"


class EventStream:
    """Reads the chain. A commit's script writes it."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        first = max(after, 0) + 1
        if first > _GREATEST:
            return ()
        head, page = self._reader.connection.ask_all(
            [self._reader.head_command(), self._page(first, _GREATEST)]
        )
        return tuple(self._entries(first, self._reader.read_head(head).event, page))

    def _entries(self, first: int, last: int, page: _Page) -> Iterator[LibraryEvent]:
        while first <= last:
            if not page:
                raise _damaged(first, "it is absent")
            for place, (entry, fields) in enumerate(page[: last - first + 1], start=first):
                yield _event(place, entry, fields)
            first += len(page)
            page = self._reader.connection.ask(*self._page(first, last)) if first <= last else []

    def _page(self, first: int, last: int) -> Command:
        """The command that reads the next events; more may come in between."""
        return ("XRANGE", self._reader.keys.events, first, last, "COUNT", _AT_A_TIME)


def _event(place: int, entry: bytes, fields: dict[bytes, bytes]) -> LibraryEvent:
    if entry != b"%d-0" % place:
        raise _damaged(place, f"{entry.decode()} stands in its place")
    try:
        event = LibraryEvent.from_json(read_json(fields[b"body"]))
    except (ValueError, TypeError, KeyError, AttributeError, StoreFormatError) as error:
        raise _damaged(place, str(error)) from error
    if event.sequence != place:
        raise _damaged(place, f"event {event.sequence} stands in its place")
    return event


def _damaged(place: int, why: str) -> StoreFormatError:
    return StoreFormatError(
        f"event {place} cannot be read: {why}; somebody changed the stream by hand: restore a "
        "backup"
    )


_RESTORE = "somebody changed the keys by hand, or the server lost some: restore a backup"


def key_faults(reader: LibraryReader) -> Iterator[StoreFault]:
    """Keys that do not hold as much as others say; see ``Checkable.check``."""
    keys = reader.keys
    counted = {
        keys.versions: ("HLEN", keys.versions),
        keys.proposals: ("HLEN", keys.proposals),
        keys.events: ("XLEN", keys.events),
        keys.episodes: ("XLEN", keys.episodes),
        keys.ids: ("HLEN", keys.ids),
        keys.ages: ("ZCARD", keys.ages),
    }
    head, (volume, last, *counts) = reader.at_once(
        ("HGET", keys.volume, "count"),
        ("XREVRANGE", keys.events, "+", "-", "COUNT", 1),
        *counted.values(),
    )
    episodes = int(volume or 0)
    expected = [head.version, head.version, head.event, episodes, episodes, episodes]
    for key, found, wanted in zip(counted, counts, expected, strict=True):
        if found != wanted:
            words = f"it holds {found} entries, and there should be {wanted}"
            yield StoreFault(place=key, message=f"{words}; {_RESTORE}")
    if head.hash != (last[0][1].get(b"hash") if last else b""):
        words = "the chain does not end with the event that the head names"
        yield StoreFault(place=keys.head, message=f"{words}; {_RESTORE}")
