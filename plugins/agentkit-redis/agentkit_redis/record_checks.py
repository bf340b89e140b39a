"""Looking for damage in the chain of events, and in episodes with their indexes."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.episodes.jsonl import decode_episode
from agentkit.errors import EpisodeFormatError, StoreFormatError
from agentkit.library.capabilities import StoreFault
from agentkit.library.chain_check import verify_chain
from agentkit.library.events import LibraryEvent
from agentkit_redis.connection import Command
from agentkit_redis.episode_terms import terms_of
from agentkit_redis.event_stream import EventStream
from agentkit_redis.keys import raw
from agentkit_redis.reading import LibraryReader

_PAGE = 100
_RESTORE = "somebody changed the keys by hand, or the server lost some: restore a backup"


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
