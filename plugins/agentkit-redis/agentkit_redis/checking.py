"""The chain of events, looking for damage, and giving back room."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from agentkit.errors import StoreFormatError
from agentkit.library.events import LibraryEvent
from agentkit.library.store import StoreFault
from agentkit_redis.connection import Command
from agentkit_redis.reading import LibraryReader

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
