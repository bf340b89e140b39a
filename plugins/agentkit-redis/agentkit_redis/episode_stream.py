"""Episodes: a stream in the order in which they were kept, and sorted sets to find some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import decode_episode, encode_episode
from agentkit.library.changes import check_filter
from agentkit.library.store import EpisodeFilter
from agentkit_redis.connection import Command, Word
from agentkit_redis.episode_terms import began_at, matches, netstrings, terms_of, terms_wanted
from agentkit_redis.keys import FORMAT, raw
from agentkit_redis.marker import refused
from agentkit_redis.reading import LibraryReader
from agentkit_redis.scripts import KEEP_EPISODES

_PAGE = 64
"""Episodes read at a time."""

_DIGITS = 16

_Page: TypeAlias = "list[tuple[int, bytes | None]]"
"""Numbers of episodes with their texts."""


class EpisodeStream:
    """The methods of ``EpisodeStore`` and ``BatchAppending``, but ``close``."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        self._connection = reader.connection
        self._keys = reader.keys

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """See ``BatchAppending.append_many``."""
        self._connection.check_open()
        arguments: list[Word] = [FORMAT]
        for episode in episodes:
            body, began = encode_episode(episode), repr(began_at(episode))
            arguments += [raw(episode.episode_id), body, began, netstrings(terms_of(episode))]
        if not episodes:
            return
        answer = self._connection.run(KEEP_EPISODES, self._keys.of_episodes, arguments)
        if answer[0] != b"kept":
            raise refused(self._connection, self._keys, answer)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        head, number = self._connection.ask_all(
            [self._reader.head_command(), ("HGET", self._keys.ids, raw(episode_id))]
        )
        self._reader.read_head(head)
        for _, body in [] if number is None else self._read([int(number)]):
            return None if body is None else decode_episode(body)
        return None

    def select(self, matching: EpisodeFilter) -> Iterator[Episode]:
        """See ``RedisStore.select``."""
        check_filter(matching)
        head, newest = self._connection.ask_all(
            [self._reader.head_command(), ("HGET", self._keys.volume, "last")]
        )
        self._reader.read_head(head)
        return self._selected(matching, int(newest or 0))

    def _selected(self, matching: EpisodeFilter, newest: int) -> Iterator[Episode]:
        left = matching.limit
        if left == 0:
            return
        for body in self._bodies(matching, newest):
            episode = decode_episode(body)
            if matches(episode, matching):
                yield episode
                left = None if left is None else left - 1
                if left == 0:
                    return

    def _bodies(self, matching: EpisodeFilter, newest: int) -> Iterator[bytes]:
        """Texts of the episodes up to a number that may match, a page at a time."""
        term = self._rarest(terms_wanted(matching))
        first, last = 1, newest
        while first <= last:
            ends = (first, last) if matching.oldest_first else (last, first)
            page = self._next(*ends) if term is None else self._next_of(term, *ends)
            yield from (body for _, body in page if body is not None)
            if not page:
                return
            if matching.oldest_first:
                first = page[-1][0] + 1
            else:
                last = page[-1][0] - 1

    def _rarest(self, terms: Sequence[bytes]) -> bytes | None:
        """The term that the fewest episodes have; None for no term."""
        if len(terms) < 2:
            return terms[0] if terms else None
        most = 10**_DIGITS - 1
        counts = self._connection.ask_all(
            [
                ("ZLEXCOUNT", self._keys.index, _member(term, 0), _member(term, most))
                for term in terms
            ]
        )
        return min(zip(counts, terms, strict=True))[1]

    def _next(self, start: int, end: int) -> _Page:
        """The next episodes from one number to another, which may be the lower one."""
        command = "XRANGE" if start <= end else "XREVRANGE"
        page = self._connection.ask(command, self._keys.episodes, start, end, "COUNT", _PAGE)
        return [(int(entry.partition(b"-")[0]), fields[b"body"]) for entry, fields in page]

    def _next_of(self, term: bytes, start: int, end: int) -> _Page:
        """The next episodes that have a term, from one number to another."""
        command = "ZRANGEBYLEX" if start <= end else "ZREVRANGEBYLEX"
        ends = (_member(term, start), _member(term, end))
        fits = len(term) + 1 + _DIGITS  # longer ones are of a term that has ours and a NUL first
        offset = 0
        while page := self._connection.ask(
            command, self._keys.index, *ends, "LIMIT", offset, _PAGE
        ):
            numbers = [int(member[-_DIGITS:]) for member in page if len(member) == fits]
            if numbers:
                return self._read(numbers)
            offset += len(page)
        return []

    def _read(self, numbers: Sequence[int]) -> _Page:
        """Episodes by their numbers; no text for one that went in the meantime."""
        commands: list[Command] = [("XRANGE", self._keys.episodes, one, one) for one in numbers]
        found = self._connection.ask_all(commands)
        return [
            (number, entries[0][1][b"body"] if entries else None)
            for number, entries in zip(numbers, found, strict=True)
        ]


def _member(term: bytes, number: int) -> bytes:
    """An end of a term's part of the index."""
    return b"[%s\0%0*d" % (term, _DIGITS, number)
