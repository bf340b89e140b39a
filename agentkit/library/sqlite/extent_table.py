"""The table of a SQLite file that says how big and how old episodes are, to let old ones go.

It stands beside the episodes: a column behind their bodies could only be read through them, and
these may be gigabytes. Episodes of older files are measured when somebody first asks, some at a
time, so that opening such a file stays quick.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import decode_episode
from agentkit.errors import EpisodeFormatError
from agentkit.library.abilities import EpisodeVolume, Retention
from agentkit.library.begun import begun_at, microseconds
from agentkit.library.sqlite.connection import SQLiteConnection

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
