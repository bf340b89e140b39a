"""The table of a SQLite file that says how big and how old episodes are, to let old ones go.

It stands beside the episodes: a column behind their bodies could only be read through them, and
these may be gigabytes. Episodes of older files are measured when somebody first asks, some at a
time, so that opening such a file stays quick.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import decode_episode, encode_episode
from agentkit.errors import EpisodeFormatError
from agentkit.library.capabilities import EpisodeVolume, Retention
from agentkit.library.changes import begun_at, check_filter, microseconds
from agentkit.library.sqlite.connection import SQLiteConnection, storable
from agentkit.library.store import EpisodeFilter
from agentkit.library.tables import paged_episodes

_AT_A_TIME = 200
"""Episodes deleted or measured in one transaction: another writer waits for milliseconds."""

_LONGEST_PAUSE = 0.1
"""Seconds between two transactions, in which other programs get the file."""

_WALKED_AT_A_TIME = 5_000

_VOLUME = "SELECT count(*), coalesce(sum(bytes), 0) FROM episode_extents"

_UNMEASURED = """
SELECT sequence, body FROM episodes WHERE sequence IN (
    SELECT sequence FROM episodes
    WHERE sequence > ? AND sequence NOT IN (SELECT sequence FROM episode_extents)
    ORDER BY sequence LIMIT ?
) ORDER BY sequence
"""

_INSERT = "INSERT OR IGNORE INTO episode_extents VALUES (?,?,?)"

_UP_TO = "(begun, sequence) <= (?, ?)"

_OLDEST = f"SELECT sequence FROM episode_extents WHERE {_UP_TO} ORDER BY begun, sequence LIMIT ?"  # noqa: S608 - a constant above


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class _Place:
    """Where an episode stands among all, the oldest first."""

    begun: int
    sequence: int


class ExtentTable:
    """How big and how old each episode is.

    Args:
        connection: The file.
    """

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    def add(self, rows: Iterable[tuple[int, Episode, str]]) -> None:
        """Note new episodes by sequence and body, in the transaction that keeps them."""
        kept = datetime.now(UTC)
        self._connection.execute_many(
            _INSERT,
            [
                (sequence, microseconds(begun_at(episode, kept=kept)), len(body))
                for sequence, episode, body in rows
            ],
        )

    def volume(self) -> EpisodeVolume:
        """How much is kept."""
        self._measure()
        ((count, size),) = self._connection.execute(_VOLUME)
        return EpisodeVolume(count=count, bytes=size)

    def prunable(self, retention: Retention) -> EpisodeVolume:
        """How much of it breaks ``retention``."""
        last = self._last_to_go(retention)
        if last is None:
            return EpisodeVolume(count=0, bytes=0)
        sql = f"{_VOLUME} WHERE {_UP_TO}"
        ((count, size),) = self._connection.execute(sql, (last.begun, last.sequence))
        return EpisodeVolume(count=count, bytes=size)

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete what breaks ``retention``, the oldest first, in many small transactions.

        Which one is the last to go is settled before: two programs that prune at a time delete
        what one of them would have.
        """
        last = self._last_to_go(retention)
        count = size = 0
        while last is not None:
            began = time.monotonic()
            with self._connection.transaction():
                gone = self._delete(last)
            count, size = count + gone.count, size + gone.bytes
            if gone.count < _AT_A_TIME:
                break
            time.sleep(min(time.monotonic() - began, _LONGEST_PAUSE))
        return EpisodeVolume(count=count, bytes=size)

    def _delete(self, last: _Place) -> EpisodeVolume:
        rows = self._connection.execute(_OLDEST, (last.begun, last.sequence, _AT_A_TIME))
        going = ",".join(str(int(sequence)) for (sequence,) in rows)
        among = f"WHERE sequence IN ({going})"
        ((count, size),) = self._connection.execute(f"{_VOLUME} {among}")
        self._connection.execute(f"DELETE FROM episode_tools {among}")  # noqa: S608 - integers
        self._connection.execute(f"DELETE FROM episode_extents {among}")  # noqa: S608 - integers
        self._connection.execute(f"DELETE FROM episodes {among}")  # noqa: S608 - integers
        return EpisodeVolume(count=count, bytes=size)

    def _last_to_go(self, retention: Retention) -> _Place | None:
        """The youngest episode that has to go; None when all may stay."""
        kept = self.volume()
        found = [
            self._last_too_old(retention),
            self._last_beyond_count(kept, retention),
            self._last_beyond_bytes(kept, retention),
        ]
        return max((place for place in found if place is not None), default=None)

    def _last_too_old(self, retention: Retention) -> _Place | None:
        if retention.max_age is None:
            return None
        try:
            oldest = microseconds(datetime.now(UTC) - retention.max_age)
        except OverflowError:  # older than the calendar
            return None
        return self._place("WHERE begun < ? ORDER BY begun DESC, sequence DESC LIMIT 1", (oldest,))

    def _last_beyond_count(self, kept: EpisodeVolume, retention: Retention) -> _Place | None:
        if retention.max_count is None or kept.count <= retention.max_count:
            return None
        skipped = kept.count - retention.max_count - 1
        return self._place("ORDER BY begun, sequence LIMIT 1 OFFSET ?", (skipped,))

    def _last_beyond_bytes(self, kept: EpisodeVolume, retention: Retention) -> _Place | None:
        if retention.max_bytes is None:
            return None
        left, last = kept.bytes, None
        for place, size in self._walk():
            if left <= retention.max_bytes:
                break
            left, last = left - size, place
        return last

    def _walk(self) -> Iterator[tuple[_Place, int]]:
        """All episodes with their sizes, the oldest first; a page is held at a time."""
        sql = (
            "SELECT begun, sequence, bytes FROM episode_extents WHERE (begun, sequence) > (?, ?) "
            "ORDER BY begun, sequence LIMIT ?"
        )
        begun, sequence = -(2**63), 0
        while rows := self._connection.execute(sql, (begun, sequence, _WALKED_AT_A_TIME)):
            for begun, sequence, size in rows:  # the last one begins the next page
                yield _Place(begun=begun, sequence=sequence), size

    def _place(self, which: str, parameters: Sequence[object]) -> _Place | None:
        sql = f"SELECT begun, sequence FROM episode_extents {which}"  # noqa: S608 - literals above
        for begun, sequence in self._connection.execute(sql, parameters):
            return _Place(begun=begun, sequence=sequence)
        return None

    def _measure(self) -> None:
        """Measure the episodes that an older agentkit kept; what is done stays done."""
        if not self._are_missing():
            return
        position, kept = 0, microseconds(datetime.now(UTC))
        while rows := self._connection.execute(_UNMEASURED, (position, _AT_A_TIME)):
            with self._connection.transaction():
                self._connection.execute_many(
                    "INSERT OR IGNORE INTO episode_extents "
                    "SELECT sequence, ?, ? FROM episodes WHERE sequence = ?",  # may be gone by now
                    [(_begun(body, kept), len(body), sequence) for sequence, body in rows],
                )
            position = rows[-1][0]

    def _are_missing(self) -> bool:
        counts = "SELECT (SELECT count(*) FROM episodes) > (SELECT count(*) FROM episode_extents)"
        ((are_missing,),) = self._connection.execute(counts)
        return bool(are_missing)


def _begun(body: str, kept: int) -> int:
    """When an episode of an older file began; one that can not be read is as if kept now."""
    try:
        now = datetime.fromtimestamp(kept / 1_000_000, tz=UTC)
        return microseconds(begun_at(decode_episode(body), kept=now))
    except EpisodeFormatError:
        return kept


_PAGE = 64
"""Episodes read at a time: the lock is free while the caller looks at them."""

_INSERT_EPISODE_TABLES = """
INSERT OR IGNORE INTO episodes (episode_id, session_id, stop_reason, body) VALUES (?,?,?,?)
"""

_NEWEST = "SELECT coalesce(max(sequence), 0) FROM episodes"

_ADDED = "SELECT sequence, episode_id FROM episodes WHERE sequence > ?"

_HAS_LABEL = """
CASE WHEN json_valid(body) THEN EXISTS (
    SELECT 1 FROM json_each(body, '$.metadata')
    WHERE key = json_extract(?, '$') AND atom = json_extract(?, '$')
) ELSE TRUE END
"""
"""Python writes and reads NaN, where SQLite says "malformed JSON" and ends the query. What it can
not read is looked at when it has been decoded."""


class EpisodeTables:
    """The methods of ``EpisodeStore`` over a connection, but ``close``.

    Args:
        connection: The file.
        extents: Notes how big and how old each episode is.
    """

    def __init__(self, connection: SQLiteConnection, extents: ExtentTable) -> None:
        self._connection = connection
        self._extents = extents

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """See ``SQLiteStore.append_many``."""
        rows: dict[str, Episode] = {}
        for episode in episodes:
            rows.setdefault(storable(episode.episode_id), episode)
        bodies = {
            key: encode_episode(one) for key, one in rows.items()
        }  # before the file is locked
        with self._connection.transaction():
            ((newest,),) = self._connection.execute(_NEWEST)
            self._connection.execute_many(
                _INSERT_EPISODE_TABLES, [_row(key, rows[key], body) for key, body in bodies.items()]
            )
            added = self._connection.execute(_ADDED, (newest,))
            called = [(name, sequence) for sequence, key in added for name in _called(rows[key])]
            if called:
                self._connection.execute_many("INSERT INTO episode_tools VALUES (?,?)", called)
            self._extents.add((sequence, rows[key], bodies[key]) for sequence, key in added)

    def get(self, episode_id: str) -> Episode | None:
        """See ``EpisodeStore.get``."""
        by_id = "SELECT body FROM episodes WHERE episode_id = ?"
        for (body,) in self._connection.execute(by_id, (storable(episode_id),)):
            return decode_episode(body)
        return None

    def select(self, matching: EpisodeFilter) -> Iterator[Episode]:
        """See ``SQLiteStore.select``."""
        check_filter(matching)
        ((newest,),) = self._connection.execute(_NEWEST)

        def read(position: int, size: int) -> list[Any]:
            return self._connection.execute(
                *_page(matching, position=position, newest=newest, size=size)
            )

        return paged_episodes(matching, read, newest=newest, first_page=_PAGE, largest_page=_PAGE)


def _row(key: str, episode: Episode, body: str) -> tuple[object, ...]:
    session = None if episode.session_id is None else storable(episode.session_id)
    return (key, session, episode.stop_reason, body)


def _called(episode: Episode) -> Sequence[str]:
    """The tools that an episode called, each once."""
    return tuple(dict.fromkeys(storable(call.name) for call in episode.calls))


def _page(
    matching: EpisodeFilter, *, position: int, newest: int, size: int
) -> tuple[str, list[object]]:
    """SQL and parameters of one page of episodes beyond ``position``."""
    source = "episodes"
    # Newest first one bound is enough: given two, SQLite goes down from the wrong one, and each
    # page walks over all those before it.
    conditions = ["sequence <= ?", "sequence > ?"] if matching.oldest_first else ["sequence < ?"]
    parameters: list[object] = [newest, position] if matching.oldest_first else [position]
    if matching.session_id is not None:
        conditions.append("session_id = ?")
        parameters.append(storable(matching.session_id))
    if matching.stop_reason is not None:
        conditions.append("stop_reason = ?")
        parameters.append(storable(matching.stop_reason))
    if matching.tool_name is not None:
        source = "episode_tools JOIN episodes USING (sequence)"
        conditions.append("tool_name = ?")
        parameters.append(storable(matching.tool_name))
    for label in matching.labels.items():
        # As JSON, in which half a surrogate pair is plain ASCII; SQLite reads both sides alike.
        conditions.append(_HAS_LABEL)
        parameters += map(json.dumps, label)
    order = "ASC" if matching.oldest_first else "DESC"
    sql = (
        f"SELECT sequence, body FROM {source} WHERE {' AND '.join(conditions)} "  # noqa: S608 - the literals above
        f"ORDER BY sequence {order} LIMIT ?"
    )
    return sql, [*parameters, size]
