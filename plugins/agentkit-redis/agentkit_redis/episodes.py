"""The episodes of a library, found by terms, and let go when old."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.files import decode_episode, encode_episode, read_episode
from agentkit.library.changes import begun_at, check_filter
from agentkit.library.store import EpisodeFilter, EpisodeVolume, Retention
from agentkit_redis.connection import Command, Word
from agentkit_redis.reading import FORMAT, LibraryReader, raw, refused
from agentkit_redis.scripts import DROP_EPISODES, KEEP_EPISODES

_SESSION, _TOOL, _STOP = b"s", b"t", b"r"


def terms_of(episode: Episode) -> list[bytes]:
    """Every term of an episode."""
    tools = dict.fromkeys(call.name for call in episode.calls)
    sessions = [] if episode.session_id is None else [_SESSION + raw(episode.session_id)]
    return [*sessions, _STOP + raw(episode.stop_reason), *(_TOOL + raw(name) for name in tools)]


def terms_wanted(matching: EpisodeFilter) -> list[bytes]:
    """The terms that a filter asks for; an index serves each."""
    wanted = (
        (_SESSION, matching.session_id),
        (_TOOL, matching.tool_name),
        (_STOP, matching.stop_reason),
    )
    return [letter + raw(text) for letter, text in wanted if text is not None]


def matches(episode: Episode, matching: EpisodeFilter) -> bool:
    """Whether an episode is what a filter asks for."""
    has_terms = set(terms_wanted(matching)) <= set(terms_of(episode))
    return has_terms and matching.labels.items() <= episode.metadata.items()


def netstrings(terms: list[bytes]) -> bytes:
    """Terms as one text that a script takes apart again, whatever they hold."""
    return b"".join(b"%d:%s" % (len(term), term) for term in terms)


def began_at(episode: Episode) -> float:
    """Seconds since 1970 when an episode began, as every store reckons it."""
    return begun_at(episode, kept=datetime.now(UTC)).timestamp()


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
        for number, body in self._bodies(matching, newest):
            episode = read_episode(f"at place {number}", body)
            if episode is not None and matches(episode, matching):
                yield episode
                left = None if left is None else left - 1
                if left == 0:
                    return

    def _bodies(self, matching: EpisodeFilter, newest: int) -> Iterator[tuple[int, bytes]]:
        """Episodes up to a number that may match, with their numbers, a page at a time."""
        term = self._rarest(terms_wanted(matching))
        first, last = 1, newest
        while first <= last:
            ends = (first, last) if matching.oldest_first else (last, first)
            page = self._next(*ends) if term is None else self._next_of(term, *ends)
            yield from ((number, body) for number, body in page if body is not None)
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


_AT_A_TIME = 200
"""Episodes that go in one step: others wait some milliseconds at most."""


class EpisodeRetention:
    """The methods of ``Pruning``."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader

    def volume(self) -> EpisodeVolume:
        """See ``Pruning.volume``."""
        self._reader.head()
        keys = self._reader.keys
        count, size = self._reader.connection.ask("HMGET", keys.volume, "count", "bytes")
        return EpisodeVolume(count=int(count or 0), bytes=int(size or 0))

    def prune(self, retention: Retention) -> EpisodeVolume:
        """See ``Pruning.prune``."""
        count = size = 0
        bounds = _bounds(retention)
        while True:
            gone, freed = self._drop(bounds)
            count, size = count + gone, size + freed
            if gone < _AT_A_TIME:
                return EpisodeVolume(count=count, bytes=size)

    def _drop(self, bounds: list[Word]) -> tuple[int, int]:
        keys, connection = self._reader.keys, self._reader.connection
        arguments = [FORMAT, _AT_A_TIME, *bounds]
        answer = connection.run(DROP_EPISODES, keys.of_episodes, arguments)
        if answer[0] != b"dropped":
            raise refused(connection, keys, answer)
        return int(answer[1]), int(answer[2])


def _bounds(retention: Retention) -> list[Word]:
    """The bounds as the script wants them, empty for none."""
    oldest = ""
    if retention.max_age is not None:
        oldest = repr(datetime.now(UTC).timestamp() - retention.max_age.total_seconds())
    return [oldest, "" if retention.max_count is None else retention.max_count]
