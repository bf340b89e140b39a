"""``LibraryClient``: what a library server says, as our own values, each checked by its digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from agentkit.errors import StoreFormatError
from agentkit.library.abilities import AppliedChange
from agentkit.library.events import LibraryEvent
from agentkit.library.remote.bodies import Bounds
from agentkit.library.remote.connection import Connection
from agentkit.library.remote.wire import (
    CHANGES_PATH,
    EVENTS_PATH,
    HEAD_PATH,
    HISTORY_PATH,
    TOOLS_PATH,
    ChangeOutline,
    Head,
    decode,
    definition_from_json,
    revision_from_json,
)
from agentkit.library.store import LibraryChange, ToolRevision
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

_BYTES_OF_A_LINE = 40
"""What a line takes in memory beside its text; without counting that, empty ones would be free."""


class LibraryClient:
    """Reads the resources of one server.

    Args:
        connection: To the server.
        bounds: How much is taken.
        is_fresh: Whether no cache on the way may answer.
    """

    def __init__(self, connection: Connection, *, bounds: Bounds, is_fresh: bool = False) -> None:
        self._connection = connection
        self._bounds = bounds
        self._is_fresh = is_fresh

    def head(self, *, etag: str = "", wait_seconds: float = 0.0) -> tuple[Head, str] | None:
        """What is newest, with its ETag; None where it is what ``etag`` names.

        Raises:
            StoreError: See ``Connection.get``.
        """
        query = {"wait": f"{wait_seconds:.3f}"} if wait_seconds else {}
        with self._connection.get(
            HEAD_PATH, query, etag=etag, wait_seconds=wait_seconds, is_fresh=self._is_fresh
        ) as answer:
            if answer is None:
                return None
            return Head.from_json(decode(b"".join(answer.lines))), answer.etag

    def tools(self, version: int, *, most: int) -> list[ToolDefinition]:
        """The definitions of a snapshot, in its order.

        Args:
            version: Of the library.
            most: How many there are to be.
        """
        found: list[ToolDefinition] = []
        for record in self._records(TOOLS_PATH, {"version": version}):
            found.append(definition_from_json(record))
            if len(found) > most:
                raise StoreFormatError(
                    f"library version {version} brings more than the {most:,} tools that it has"
                )
        return found

    def changes(self, *, after: int, upto: int) -> Iterator[AppliedChange]:
        """The changes that made the versions behind ``after``, without events."""
        records = self._records(CHANGES_PATH, {"upto": upto}, after=after)
        for record in records:
            outline = ChangeOutline.from_json(record)
            if not after < outline.version <= upto:
                raise StoreFormatError(f"a change of version {outline.version} was not asked for")
            after = outline.version
            upserts = tuple(
                definition_from_json(one) for one in islice(records, len(outline.upserts))
            )
            if tuple((one.name, one.digest) for one in upserts) != outline.upserts:
                raise StoreFormatError(f"the change of version {after} lacks what it lists")
            yield AppliedChange(version=after, change=_with(outline.change, upserts))

    def outline(self, version: int) -> Mapping[str, str]:
        """Name and digest of the definitions that one version brought."""
        query = {"upto": version, "outline": 1}
        for record in self._records(CHANGES_PATH, query, after=version - 1):
            outline = ChangeOutline.from_json(record)
            if outline.version == version:
                return dict(outline.upserts)
        raise StoreFormatError(f"the server tells nothing of the change that made {version}")

    def events(self, *, after: int, upto: int) -> Sequence[LibraryEvent]:
        """The events behind ``after``, up to ``upto``."""
        records = self._records(EVENTS_PATH, {"upto": upto}, after=after)
        found = []
        for place, record in enumerate(records, start=after + 1):
            event = LibraryEvent.from_json(record)
            if event.sequence != place or place > upto:
                raise StoreFormatError(
                    f"event {event.sequence} stands where event {place} was expected"
                )
            found.append(event)
        if len(found) != max(upto - after, 0):
            raise StoreFormatError(f"events {after + len(found) + 1} to {upto} are missing")
        return found

    def history(self, tool_name: str, *, upto: int) -> Sequence[ToolRevision]:
        """The revisions of one tool, ascending."""
        query: dict[str, str | int] = {"tool": tool_name, "upto": upto}
        found = [revision_from_json(one) for one in self._records(HISTORY_PATH, query)]
        versions = [one.version for one in found]
        if versions != sorted(set(versions)) or any(one > upto for one in versions):
            raise StoreFormatError(f"the revisions of {tool_name!r} are in no order")
        names = {one.definition.name for one in found if one.definition is not None}
        if names - {tool_name}:
            raise StoreFormatError(f"the history of {tool_name!r} tells of another tool")
        return found

    def _records(
        self, path: str, query: Mapping[str, str | int], *, after: int = 0
    ) -> Iterator[JsonObject]:
        """The records of all pages, a page at a time; the connection is free in between.

        A page is held as it came: JSON takes up to fifty times its length once it is read.
        """
        room = self._bounds.library_bytes
        while True:
            page: list[bytes] = []
            asked = {**query, "after": after}
            with self._connection.get(path, asked, is_fresh=self._is_fresh) as answer:
                assert answer is not None  # no ETag was given
                for line in answer.lines:
                    page.append(line)
                    room -= len(line) + _BYTES_OF_A_LINE
                    if room < 0:
                        most = self._bounds.library_bytes
                        raise StoreFormatError(f"the library has more than {most:,} bytes")
            last = decode(page.pop()) if page else {}
            if last.keys() != {"end"}:
                raise StoreFormatError("the answer breaks off: its last line is missing")
            following = _following(last, after)
            for record in map(decode, page):
                if record.keys() == {"end"}:
                    raise StoreFormatError("the answer goes on behind its last line")
                yield record
            if following is None:
                return
            after = following


def _following(record: JsonObject, after: int) -> int | None:
    """Where the next page begins; a server can not send a client in circles."""
    following = record["end"].get("next") if isinstance(record["end"], dict) else after
    if following is None:
        return None
    if type(following) is not int or following <= after:
        raise StoreFormatError(f"a page behind {after} says that the next is behind {following!r}")
    return following


def _with(change: LibraryChange, upserts: tuple[ToolDefinition, ...]) -> LibraryChange:
    return LibraryChange(
        proposal_id=change.proposal_id,
        upserts=upserts,
        removals=change.removals,
        author=change.author,
        reason=change.reason,
        evidence=change.evidence,
        created_at=change.created_at,
    )
