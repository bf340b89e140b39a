"""Looking for damage in definitions and versions: what was committed is done again and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agentkit.errors import DefinitionError, StoreFormatError
from agentkit.library.capabilities import StoreFault
from agentkit.tools.definition import ToolDefinition
from agentkit_redis.connection import Command
from agentkit_redis.keys import raw, text_of
from agentkit_redis.reading import AT_A_TIME, LibraryReader, batches
from agentkit_redis.records import Head, Stored, VersionRecord, follows, read_tool, read_version

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
