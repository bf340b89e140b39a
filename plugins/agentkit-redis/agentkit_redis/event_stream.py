"""The chain of events: a stream, whose ids are the places of the events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agentkit.errors import StoreFormatError
from agentkit.library.events import LibraryEvent
from agentkit_redis.reading import LibraryReader

_PAGE = 500


class EventStream:
    """Reads the chain. A commit's script writes it."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        newest = self._reader.head().event
        return tuple(event for event, _ in self.entries(max(after, 0) + 1, newest))

    def entries(self, first: int, last: int) -> Iterator[tuple[LibraryEvent, bytes]]:
        """Events from one place to another, both included, and the hash noted with each.

        A page is read at a time.
        """
        while first <= last:
            page = self._reader.connection.ask(
                "XRANGE", self._reader.keys.events, first, last, "COUNT", _PAGE
            )
            for place, (entry, fields) in enumerate(page, start=first):
                yield _event(place, entry, fields), fields.get(b"hash", b"")
            if not page:
                raise _damaged(first, "it is absent")
            first += len(page)


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
