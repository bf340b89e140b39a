"""Shared code of SQL stores: reading versions, events and episodes, and pruning."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

from agentkit.episodes import Episode
from agentkit.episodes.files import decode_episode, read_episode
from agentkit.errors import StoreFormatError
from agentkit.library.changes import (
    changed_definition,
    check_filter,
    no_such_version,
    stored_definition,
)
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    EpisodeVolume,
    LibraryChange,
    Retention,
    ToolRevision,
)
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

_GREATEST = 2**63 - 1
_MOST_EPISODES = 2**62
"""The largest number that a database compares."""

_PAGE = "SELECT version FROM versions WHERE version > ? ORDER BY version LIMIT ?"
_CHANGES = """
SELECT v.version, v.proposal_id, v.author, v.reason, v.evidence, v.created_at,
       r.tool_name, r.digest, r.origin, d.body
FROM versions AS v
LEFT JOIN revisions AS r ON r.version = v.version
LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE v.version > ? AND v.version <= ?
ORDER BY v.version, r.since, r.place
"""
"""New tools of a version have the greatest ``since`` and come last."""

_HISTORY = """
SELECT v.version, v.proposal_id, v.author, v.reason, v.evidence, v.created_at,
       r.digest, r.origin, d.body
FROM revisions AS r
JOIN versions AS v ON v.version = r.version
LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE r.tool_name = ?
ORDER BY r.version
"""


class SQLStore(ABC):
    """Reads the tables of a store; a subclass brings the database, and writes.

    Statements here have ``?`` where a parameter goes.

    Attributes:
        events_table: Holds the chain of events.
        extents_table: Holds the time at which each episode began, and its bytes.
        begun: The column of that time.
        page: Versions or episodes that are read at a time: nothing is held in the database while
            the caller looks at them.
        pruned_at_a_time: Episodes deleted in one transaction, so that none is long.
        longest_pause: Seconds between two of these at most, in which others may write.

    Args:
        place: The store in messages, without secrets.
    """

    events_table: ClassVar[str] = "events"
    extents_table: ClassVar[str] = "episodes"
    begun: ClassVar[str] = "began"
    page: ClassVar[int] = 256
    pruned_at_a_time: ClassVar[int] = 1_000
    longest_pause: ClassVar[float] = 0.0

    def __init__(self, place: object) -> None:
        self._place = place
        self._newest = Library()

    # What a database brings.

    @abstractmethod
    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[Any]:
        """All rows of one statement, in a transaction of its own."""

    @abstractmethod
    def _rows_between(self, after: int, version: int) -> Sequence[Any]:
        """Name, digest, origin, since and body of each tool that changed, in the library's order.

        One that was removed has no digest.
        """

    @abstractmethod
    def _delete_up_to(self, begun: Any, sequence: int) -> EpisodeVolume:
        """Delete some of the oldest episodes up to one, in a transaction."""

    @abstractmethod
    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes in this order, all of them or none; known ids are ignored."""

    @abstractmethod
    def _having_labels(self, labels: Mapping[str, str]) -> tuple[list[str], list[object]]:
        """Conditions that hold for the episodes of these labels, at least, and parameters."""

    def _key(self, text: str) -> str:
        """A text as an index holds it."""
        return text

    def _restored(self, text: str) -> str:
        """A text from how the tables hold it."""
        return text

    def _tool_name(self, stored: str) -> str:
        """The name of a tool from what an index holds of it."""
        return stored

    def _newest_version(self) -> int:
        ((version,),) = self._rows("SELECT coalesce(max(version), 0) FROM versions")
        return int(version)

    def _newest_episode(self, matching: EpisodeFilter) -> int:
        """The last place of an episode to look at."""
        ((newest,),) = self._rows("SELECT coalesce(max(sequence), 0) FROM episodes")
        if newest >= _MOST_EPISODES:
            words = f"it holds an episode at place {newest}; delete that row, or restore a backup"
            raise StoreFormatError(f"{self._place} is damaged: {words}")
        return int(newest)

    def _moment(self, time: datetime) -> Any:
        """A time as the column of times holds it."""
        return time

    # Versions.

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        The newest snapshot is kept: asking again costs one question and gives the same object until
        somebody commits, and then only what changed is read.
        """
        newest = self._newest_version()
        target = newest if version is None else version
        if not 0 <= target <= newest:
            raise no_such_version(target, range(1, newest + 1))
        known = self._newest
        if target == known.version:
            return known
        base = known if 0 < known.version < target else Library()
        library = self._caught_up(base, target)
        if target == newest:
            self._newest = library
        return library

    def _caught_up(self, base: Library, version: int) -> Library:
        gone: list[str] = []  # removed, perhaps to come again behind the others
        tools: list[ToolDefinition] = []
        for stored, digest, origin, since, body in self._rows_between(base.version, version):
            if digest is not None:
                tools.append(self._definition(stored, digest, origin, body))
            if base.version and (digest is None or since > base.version):
                gone.append(tools[-1].name if digest is not None else self._tool_name(stored))
        if not len(base):
            return Library(tools, version=version)
        rest = base.without(gone) if gone else base
        return rest.with_tools(tools).at_version(version)

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        rows = self._rows("SELECT version FROM versions ORDER BY version")
        return tuple(version for (version,) in rows)

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        found = []
        for row in self._rows(_HISTORY, (self._key(tool_name),)):
            kept = (self._key(tool_name), *row[6:])
            definition = None if row[6] is None else self._definition(*kept)
            found.append(ToolRevision(version=row[0], definition=definition, **self._words(row)))
        return tuple(found)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind the version ``after``, ascending; some are read at a time."""
        behind = min(max(after, 0), _GREATEST)
        while page := self._rows(_PAGE, (behind, self.page)):  # a damaged number is not counted to
            rows = self._rows(_CHANGES, (behind, page[-1][0]))
            behind = page[-1][0]
            for version, of_one in groupby(rows, key=itemgetter(0)):
                try:
                    change = self._change(list(of_one))
                except (ValueError, TypeError) as error:
                    words = f"holds a version that cannot be read ({version}): {error}"
                    raise StoreFormatError(f"{self._place} {words}") from error
                yield AppliedChange(version=version, change=change)

    def _change(self, rows: Sequence[Any]) -> LibraryChange:
        kept = [row[6:] for row in rows if row[6] is not None]
        return LibraryChange(
            upserts=tuple(self._definition(*one) for one in kept if one[1] is not None),
            removals=tuple(self._tool_name(name) for name, digest, *_ in kept if digest is None),
            **self._words(rows[0]),
        )

    def _definition(self, stored: str, digest: str, origin: str, body: str) -> ToolDefinition:
        """A definition of a row, which is that of its digest and of its name."""
        definition = stored_definition(digest, origin, body, place=self._place)
        if self._key(definition.name) != stored:
            raise changed_definition(definition, f"a row gives it to {stored!r}", self._place)
        return definition

    def _words(self, row: Sequence[Any]) -> dict[str, Any]:
        version, proposal_id, author, reason, evidence, created_at = row[:6]
        return {
            "proposal_id": self._restored(proposal_id),
            "author": self._restored(author),
            "reason": self._restored(reason),
            "evidence": self._evidence(evidence, version),
            "created_at": created_at,
        }

    def _evidence(self, text: str, version: int) -> tuple[str, ...]:
        try:
            found = read_json(text)
        except (ValueError, TypeError):
            found = None
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            words = f"({version}): its evidence is not a JSON array of texts: {str(text)[:80]!r}"
            raise StoreFormatError(f"{self._place} holds a version that cannot be read {words}")
        return tuple(found)

    # Events.

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending."""
        sql = f"SELECT sequence, body FROM {self.events_table} WHERE sequence > ? ORDER BY sequence"  # noqa: S608 - a name of ours
        rows = self._rows(sql, (min(max(after, 0), _GREATEST),))
        return tuple(self._event(*row) for row in rows)

    def _event(self, sequence: int, body: str) -> LibraryEvent:
        try:
            event = LibraryEvent.from_json(read_json(body))
        except (ValueError, TypeError, AttributeError, StoreFormatError) as error:
            words = f"holds an event that cannot be read ({sequence}): {error}"
            raise StoreFormatError(f"{self._place} {words}") from error
        if event.sequence != sequence:
            words = f"holds event {event.sequence} in the place of event {sequence}"
            raise StoreFormatError(f"{self._place} {words}; it was changed by hand")
        return event

    # Episodes.

    def append(self, episode: Episode) -> None:
        """Keep one episode; one with a known id is ignored.

        Raises:
            EpisodeFormatError: The episode holds a value that JSON cannot.
        """
        self.append_many((episode,))

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        sql = "SELECT body FROM episodes WHERE episode_id = ?"
        for (body,) in self._rows(sql, (self._key(episode_id),)):
            return decode_episode(body)
        return None

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, of those kept before the call; a page is read at a time."""
        check_filter(matching)
        return self._pages(matching, self._newest_episode(matching))

    def _pages(self, matching: EpisodeFilter, newest: int) -> Iterator[Episode]:
        """The episodes that match, up to the newest.

        Labels are compared once more here, for a database may not be able to read every text.
        """
        sql, parameters = self._query(matching)
        left, position = matching.limit, 0 if matching.oldest_first else newest + 1
        bounds = [newest] if matching.oldest_first else []
        while left is None or left > 0:
            size = self.page if left is None else min(self.page, left)
            rows = self._rows(sql, [*bounds, position, *parameters, size])
            for _, key, body in rows:
                episode = read_episode(self._restored(key), body)
                if episode is not None and matching.labels.items() <= episode.metadata.items():
                    left = None if left is None else left - 1
                    yield episode
            if len(rows) < size:
                return
            position = rows[-1][0]

    def _query(self, matching: EpisodeFilter) -> tuple[str, list[object]]:
        """SQL of one page of episodes, with its parameters but for bounds, position and size."""
        source, order = "episodes", "ASC" if matching.oldest_first else "DESC"
        # Newest first one bound is enough: given two, SQLite goes down from the wrong one, and
        # each page walks over all those before it.
        conditions = ["sequence < ?"]
        if matching.oldest_first:
            conditions = ["sequence <= ?", "sequence > ?"]
        parameters: list[object] = []
        for column in ("session_id", "stop_reason", "tool_name"):
            value = getattr(matching, column)
            if value is not None:
                conditions.append(f"{column} = ?")
                parameters.append(self._key(value))
        if matching.tool_name is not None:
            source = "episode_tools JOIN episodes USING (sequence)"
        if matching.labels:
            more, values = self._having_labels(matching.labels)
            conditions += more
            parameters += values
        sql = (
            f"SELECT sequence, episode_id, body FROM {source} WHERE {' AND '.join(conditions)} "  # noqa: S608 - the literals above
            f"ORDER BY sequence {order} LIMIT ?"
        )
        return sql, parameters

    def volume(self) -> EpisodeVolume:
        """The size of the stored episodes."""
        return self._volume("", ())

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete the episodes that break ``retention``, some at a time; see ``Pruning.prune``.

        Which one is the last to go is settled before any goes: two programs that prune at a time
        delete what one of them would have. Others may read and write meanwhile. What was deleted
        leaves room that is used again.
        """
        last = self._last_to_go(retention)
        count = size = 0
        while last is not None:
            began = time.monotonic()
            gone = self._delete_up_to(*last)
            count, size = count + gone.count, size + gone.bytes
            if gone.count < self.pruned_at_a_time:
                break
            time.sleep(min(time.monotonic() - began, self.longest_pause))
        return EpisodeVolume(count=count, bytes=size)

    def _volume(self, which: str, parameters: Sequence[object]) -> EpisodeVolume:
        size_of_all = "CAST(coalesce(sum(bytes), 0) AS bigint)"
        sql = f"SELECT count(*), {size_of_all} FROM {self.extents_table} {which}"  # noqa: S608 - ours
        ((count, size),) = self._rows(sql, parameters)
        return EpisodeVolume(count=count, bytes=size)

    def _last_to_go(self, retention: Retention) -> tuple[Any, int] | None:
        """Time and place of the youngest episode that has to go; None when all may stay."""
        order = f"ORDER BY {self.begun} DESC, sequence DESC"
        place = f"SELECT {self.begun}, sequence FROM"
        oldest = None
        if retention.max_age is not None:
            try:
                oldest = self._moment(datetime.now(UTC) - retention.max_age)
            except OverflowError:  # older than the calendar
                oldest = None
        count = None if retention.max_count is None else min(retention.max_count, 2**62)
        found: list[tuple[Any, int]] = []
        for query, bound in (
            (f"{place} {self.extents_table} WHERE {self.begun} < ? {order} LIMIT 1", oldest),
            (f"{place} {self.extents_table} {order} LIMIT 1 OFFSET ?", count),
        ):
            if bound is not None:
                found += [(begun, sequence) for begun, sequence in self._rows(query, (bound,))]
        return max(found, default=None)
