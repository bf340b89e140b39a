"""The chain of events, looking for damage, and giving back room."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentkit.episodes.jsonl import decode_episode
from agentkit.errors import (
    DefinitionError,
    EpisodeFormatError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
)
from agentkit.library.capabilities import Compacted, StoreFault
from agentkit.library.chain_check import verify_chain
from agentkit.library.events import LibraryEvent
from agentkit.tools.definition import ToolDefinition
from agentkit_redis.connection import Command, RedisConnection
from agentkit_redis.episodes import terms_of
from agentkit_redis.reading import AT_A_TIME, LibraryReader, batches
from agentkit_redis.records import (
    Head,
    Stored,
    VersionRecord,
    follows,
    raw,
    read_tool,
    read_version,
    text_of,
)

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
        newest = self._reader.read_head(head).event
        return tuple(event for event, _ in self._entries(first, newest, page))

    def entries(self, last: int) -> Iterator[tuple[LibraryEvent, bytes]]:
        """The events up to a place, and the hash noted with each; a page is read at a time."""
        return self._entries(1, last, self._reader.connection.ask(*self._page(1, last)))

    def _entries(self, first: int, last: int, page: _Page) -> Iterator[tuple[LibraryEvent, bytes]]:
        while first <= last:
            if not page:
                raise _damaged(first, "it is absent")
            for place, (entry, fields) in enumerate(page[: last - first + 1], start=first):
                yield _event(place, entry, fields), fields.get(b"hash", b"")
            first += len(page)
            page = self._reader.connection.ask(*self._page(first, last)) if first <= last else []

    def _page(self, first: int, last: int) -> Command:
        """The command that reads the next events; more may come in between."""
        return ("XRANGE", self._reader.keys.events, first, last, "COUNT", _AT_A_TIME)


def _event(place: int, entry: bytes, fields: dict[bytes, bytes]) -> LibraryEvent:
    if entry != b"%d-0" % place:
        raise _damaged(place, f"{entry.decode()} stands in its place")
    try:
        event = LibraryEvent.from_json(json.loads(fields[b"body"]))
    except (ValueError, TypeError, KeyError, AttributeError, StoreFormatError) as error:
        raise _damaged(place, str(error)) from error
    if event.sequence != place:
        raise _damaged(place, f"event {event.sequence} stands in its place")
    return event


def _damaged(place: int, why: str) -> StoreFormatError:
    return StoreFormatError(
        f"event {place} can not be read: {why}; somebody changed the stream by hand: restore a "
        "backup"
    )


_RESTORE = "somebody changed the keys by hand, or the server lost some: restore a backup"


@dataclass(kw_only=True, slots=True)
class _Replayed:
    """What the changes up to a version come to."""

    stamp: bytes = b""
    tools: dict[str, Stored] = field(default_factory=dict)
    digests: set[str] = field(default_factory=set)


class LibraryCheck:
    """Checks everything of a library but its events and episodes. Others may go on committing."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        self._keys = reader.keys

    def faults(self) -> Iterator[StoreFault]:
        """What is damaged."""
        known, (tools, versions, events) = self._reader.at_once(
            ("HGETALL", self._keys.tools),
            ("HLEN", self._keys.versions),
            ("XLEN", self._keys.events),
        )
        yield from _counted(self._keys.versions, versions, known.version)
        yield from _counted(self._keys.events, events, known.event)
        replayed = _Replayed()
        yield from self._versions(known, replayed)
        yield from self._tools(tools, replayed)
        yield from self._definitions(replayed)

    def _versions(self, head: Head, replayed: _Replayed) -> Iterator[StoreFault]:
        for some in batches(range(1, head.version + 1), AT_A_TIME):
            records = []
            for version, data in zip(
                some, self._reader.connection.ask("HMGET", self._keys.versions, *some), strict=True
            ):
                try:
                    record = read_version(version, data)
                except StoreFormatError as error:
                    yield StoreFault(place=self._keys.versions, message=str(error))
                    continue
                if not follows(replayed.stamp, data):
                    words = f"version {version} was changed after it was written, or the one before"
                    yield StoreFault(place=self._keys.versions, message=f"{words}; {_RESTORE}")
                _replay(record, replayed)
                records.append(record)
            yield from self._indexed(records)
        if replayed.stamp != head.stamp:
            words = f"the newest version is not the one that {self._keys.versions} ends with"
            yield StoreFault(place=self._keys.head, message=f"{words}; {_RESTORE}")

    def _indexed(self, records: Sequence[VersionRecord]) -> Iterator[StoreFault]:
        """Whether versions are found by their proposals and by their tools."""
        ids = [raw(record.proposal_id) for record in records]
        commands: list[Command] = [("HMGET", self._keys.proposals, *ids)] if ids else []
        members = [
            (b"%s\0%016d" % (raw(name), record.version), name, record.version)
            for record in records
            for name in (*(stored.name for stored in record.upserts), *record.removals)
        ]
        commands += [("ZSCORE", self._keys.revisions, member) for member, _, _ in members]
        made, *scores = self._reader.connection.ask_all(commands) if commands else [[]]
        for record, version in zip(records, made, strict=True):
            if version != b"%d" % record.version:
                words = f"proposal {record.proposal_id!r} is not noted to have made version "
                message = f"{words}{record.version}: sent again, it would be applied again"
                yield StoreFault(place=self._keys.proposals, message=f"{message}; {_RESTORE}")
        for (_, name, version), score in zip(members, scores, strict=True):
            if score is None:
                words = f"the history of {name!r} lacks version {version}"
                yield StoreFault(place=self._keys.revisions, message=f"{words}; {_RESTORE}")

    def _tools(self, held: dict[bytes, bytes], replayed: _Replayed) -> Iterator[StoreFault]:
        found: dict[str, Stored] = {}
        order: list[tuple[int, int, str]] = []
        for tool, data in held.items():
            try:
                since, place, stored = read_tool(tool, data)
            except StoreFormatError as error:
                yield StoreFault(place=self._keys.tools, message=str(error))
                continue
            found[stored.name] = stored
            order.append((since, place, stored.name))
        for name in sorted({*found, *replayed.tools}):
            if found.get(name) != replayed.tools.get(name):
                words = f"{name!r} is not what the changes to it made"
                yield StoreFault(place=self._keys.tools, message=f"{words}; {_RESTORE}")
        if set(found) == set(replayed.tools) and [one[2] for one in sorted(order)] != list(
            replayed.tools
        ):
            words = "the tools are not in the order in which they were added"
            yield StoreFault(place=self._keys.tools, message=f"{words}; {_RESTORE}")

    def _definitions(self, replayed: _Replayed) -> Iterator[StoreFault]:
        missing = set(replayed.digests)
        cursor = 0
        while True:
            following, page = self._reader.connection.ask(
                "HSCAN", self._keys.definitions, cursor, "COUNT", AT_A_TIME
            )
            for digest, body in page.items():
                missing.discard(text_of(digest))
                why = _why_not(text_of(digest), body)
                if why:
                    words = f"definition {text_of(digest)} {why}; {_RESTORE}"
                    yield StoreFault(place=self._keys.definitions, message=words)
            cursor = int(following)
            if cursor == 0:
                break
        for digest in sorted(missing):
            words = f"definition {digest} is absent and a version holds it; {_RESTORE}"
            yield StoreFault(place=self._keys.definitions, message=words)


def _replay(record: VersionRecord, replayed: _Replayed) -> None:
    replayed.stamp = record.stamp
    for name in record.removals:
        replayed.tools.pop(name, None)
    replayed.tools |= {stored.name: stored for stored in record.upserts}
    replayed.digests |= {stored.digest for stored in record.upserts}


def _counted(key: str, found: int, expected: int) -> Iterator[StoreFault]:
    if found != expected:
        words = f"it holds {found} entries, the head says {expected}"
        yield StoreFault(place=key, message=f"{words}; {_RESTORE}")


def _why_not(digest: str, body: bytes) -> str:
    """What is wrong with a definition; empty for nothing."""
    try:
        actual = ToolDefinition.from_json(json.loads(body)).digest
    except (ValueError, TypeError, AttributeError, DefinitionError) as error:
        return f"can not be read ({error})"
    return "" if actual == digest else f"holds another one, of digest {actual}"


_PAGE = 100


def event_faults(reader: LibraryReader, stream: EventStream) -> Iterator[StoreFault]:
    """What is damaged in the chain of events."""
    head = reader.head()
    place = reader.keys.events
    found: list[StoreFault] = []
    end = [b""]

    def events() -> Iterator[LibraryEvent]:
        try:
            for event, noted in stream.entries(head.event):
                end[0] = event.hash.encode()
                if noted != end[0]:
                    words = f"event {event.sequence} is not the one that was written"
                    found.append(StoreFault(place=place, message=f"{words}; {_RESTORE}"))
                yield event
        except StoreFormatError as error:
            found.append(StoreFault(place=place, message=str(error)))

    faults = [fault for fault in verify_chain(events()) if not fault.is_note]
    yield from (StoreFault(place=place, message=fault.message) for fault in faults)
    yield from found
    if not found and end[0] != head.hash:
        words = "the chain does not end with the event that the head names"
        yield StoreFault(place=reader.keys.head, message=f"{words}; {_RESTORE}")


class EpisodeCheck:
    """Checks episodes. What is kept or let go while it runs may be told as a fault."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        self._keys = reader.keys

    def faults(self) -> Iterator[StoreFault]:
        """What is damaged."""
        keys = self._keys
        volume, *counts = self._reader.connection.ask_all(
            [
                ("HMGET", keys.volume, "count", "bytes"),
                ("XLEN", keys.episodes),
                ("HLEN", keys.ids),
                ("ZCARD", keys.ages),
                ("ZCARD", keys.index),
            ]
        )
        count, size = (int(one or 0) for one in volume)
        for key, found in zip((keys.episodes, keys.ids, keys.ages), counts, strict=False):
            if found != count:
                words = f"it holds {found} episodes, {keys.volume} says {count}"
                yield StoreFault(place=key, message=f"{words}; {_RESTORE}")
        totals = [0, 0]
        yield from self._episodes(totals)
        if totals != [size, counts[3]]:
            words = (
                f"the episodes have {totals[0]} bytes and {totals[1]} terms, noted are {size} and "
                f"{counts[3]}"
            )
            yield StoreFault(place=keys.volume, message=f"{words}; {_RESTORE}")

    def _episodes(self, totals: list[int]) -> Iterator[StoreFault]:
        start = 1
        while page := self._reader.connection.ask(
            "XRANGE", self._keys.episodes, start, "+", "COUNT", _PAGE
        ):
            for entry, fields in page:
                start = int(entry.partition(b"-")[0]) + 1
                yield from self._episode(start - 1, fields, totals)

    def _episode(
        self, number: int, fields: dict[bytes, bytes], totals: list[int]
    ) -> Iterator[StoreFault]:
        body = fields.get(b"body", b"")
        try:
            episode = decode_episode(body)
        except EpisodeFormatError as error:
            words = f"episode {number} can not be read: {error}; {_RESTORE}"
            yield StoreFault(place=self._keys.episodes, message=words)
            return
        terms = terms_of(episode)
        totals[0] += len(body)
        totals[1] += len(terms)
        padded = b"%016d" % number
        commands: list[Command] = [
            ("HGET", self._keys.ids, raw(episode.episode_id)),
            ("ZSCORE", self._keys.ages, padded),
            *(("ZSCORE", self._keys.index, term + b"\0" + padded) for term in terms),
        ]
        noted, *found = self._reader.connection.ask_all(commands)
        if noted != b"%d" % number or None in found:
            words = f"episode {episode.episode_id!r} is not found by its id, age, session or tools"
            yield StoreFault(place=self._keys.index, message=f"{words}; {_RESTORE}")


logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 0.05


def compact(connection: RedisConnection) -> Compacted:
    """See ``Compactable.compact``; this is about the whole server.

    Raises:
        StoreError: The user may not ask for it, or the server could not write its file.
        StoreUnavailableError: It takes longer than ten minutes.
    """
    before = _sizes(connection)
    if before["aof_enabled"]:
        _rewrite(connection)
    try:
        connection.ask("MEMORY PURGE")
    except StoreError as error:
        logger.info("%s returns no free memory: %s", connection.address, error)
    name = "aof_current_size" if before["aof_enabled"] else "used_memory_rss"
    return Compacted(bytes_before=before[name], bytes_after=_sizes(connection)[name])


def _rewrite(connection: RedisConnection) -> None:
    if not _is_rewriting(connection):
        connection.ask("BGREWRITEAOF")
    end = time.monotonic() + _PATIENCE_SECONDS
    while _is_rewriting(connection):
        if time.monotonic() > end:
            raise StoreUnavailableError(
                f"{connection.address} has been writing its append-only file for "
                f"{_PATIENCE_SECONDS:.0f} s; it goes on by itself, nothing is lost"
            )
        time.sleep(_LOOK_SECONDS)
    if connection.ask("INFO", "persistence").get("aof_last_bgrewrite_status") != "ok":
        raise StoreError(
            f"{connection.address} could not write its append-only file anew; the old one stays "
            "in use and nothing is lost. See the log of the server; its disk may be full"
        )


def _is_rewriting(connection: RedisConnection) -> bool:
    told = connection.ask("INFO", "persistence")
    return bool(told["aof_rewrite_in_progress"] or told["aof_rewrite_scheduled"])


def _sizes(connection: RedisConnection) -> dict[str, Any]:
    told = connection.ask("INFO", "persistence")
    return {
        "aof_enabled": told["aof_enabled"],
        "aof_current_size": told.get("aof_current_size", 0),
        "used_memory_rss": connection.ask("INFO", "memory")["used_memory_rss"],
    }
