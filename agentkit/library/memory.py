"""``MemoryStore``: all parts of a store in this process's memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice

from agentkit.episodes import Episode
from agentkit.episodes.files import encode_episode
from agentkit.errors import EpisodeFormatError, StaleVersionError, StoreError
from agentkit.library.changes import (
    are_held,
    begun_at,
    check_change,
    check_filter,
    check_follows,
    matches,
    missing_tool,
    no_such_version,
    now,
    revisions_of,
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
from agentkit.tools.definition import ToolDefinition

_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """An episode, and when the store got it."""

    episode: Episode
    at: datetime

    @cached_property
    def begun(self) -> datetime:
        return begun_at(self.episode, kept=self.at)

    @cached_property
    def bytes(self) -> int:
        """Its size as JSON; of one that is no JSON, which only this store takes, as Python."""
        try:
            return len(encode_episode(self.episode))
        except EpisodeFormatError:
            return len(repr(self.episode))


class MemoryStore:
    """All parts of a store in this process's memory; what it holds ends with it.

    The log of changes is the only truth: an old version is made again by replaying it. Safe to
    use from several threads.

    Example:
        >>> from agentkit import ToolDefinition
        >>> from agentkit.library import LibraryChange
        >>> store = MemoryStore()
        >>> change = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(change, expected_version=0)
        1
        >>> store.load()
        Library(1 tools, version=1)
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._log: list[LibraryChange] = []  # entry i made version i + 1
        self._made_by: dict[str, int] = {}
        self._events: list[LibraryEvent] = []  # entry i is event i + 1
        self._newest = Library()
        self._episodes: dict[str, _Kept] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._log)} versions, {len(self._episodes)} episodes)"

    def load(self, version: int | None = None) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``."""
        with self._lock:
            self._check_open()
            if version is None or version == self._newest.version:
                return self._newest
            if not 0 <= version <= len(self._log):
                raise no_such_version(version, self._versions())
            log = self._log[:version]
        tools: dict[str, ToolDefinition] = {}
        for change in log:
            for name in change.removals:
                del tools[name]
            tools |= {definition.name: definition for definition in change.upserts}
        return Library(tools.values(), version=version).continuing(self._newest)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Apply ``change``; see ``ToolStore.commit``."""
        check_change(change)
        with self._lock:
            known = self.answer(change, expected_version)
            if known is not None:
                return known
            if change.makes_version:
                actual = len(self._log)
                rest = self._newest.without(change.removals)
                self._newest = rest.with_tools(change.upserts).at_version(actual + 1)
                made = replace(change, events=(), created_at=change.created_at or now())
                self._log.append(made)
                self._made_by[change.proposal_id] = actual + 1
            self._events.extend(change.events)
            return len(self._log)

    def answer(self, change: LibraryChange, expected_version: int) -> int | None:
        """What ``commit`` would return or raise if it wrote nothing; else None."""
        with self._lock:
            self._check_open()
            if change.proposal_id in self._made_by:
                return self._made_by[change.proposal_id]
            actual = len(self._log)
            if not change.makes_version and are_held(
                change.events, self._events[change.events[0].sequence - 1 :]
            ):
                return actual
            if actual != expected_version:
                raise StaleVersionError(expected=expected_version, actual=actual)
            check_follows(change.events, self._events[-1] if self._events else None)
            for name in change.removals:
                if name not in self._newest:
                    raise missing_tool(name, self._newest)
            return None

    def versions(self) -> Sequence[int]:
        """All versions in ascending order."""
        with self._lock:
            self._check_open()
            return self._versions()

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """All revisions of one tool in ascending order."""
        return revisions_of(self.changes(), tool_name)

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """The changes behind the version ``after``, of those applied before the call."""
        first = max(after, 0)
        with self._lock:
            self._check_open()
            log = self._log[first:]
        return (AppliedChange(version=at, change=one) for at, one in enumerate(log, first + 1))

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """The events behind ``after``, ascending."""
        with self._lock:
            self._check_open()
            return tuple(self._events[max(after, 0) :])

    def append(self, episode: Episode) -> None:
        """Keep one episode; one with a known id is ignored."""
        self.append_many((episode,))

    def append_many(self, episodes: Sequence[Episode]) -> None:
        """Keep several episodes in this order; known ids are ignored."""
        kept = datetime.now(UTC)
        with self._lock:
            self._check_open()
            for episode in episodes:
                self._episodes.setdefault(episode.episode_id, _Kept(episode=episode, at=kept))

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, or None."""
        with self._lock:
            self._check_open()
            kept = self._episodes.get(episode_id)
        return None if kept is None else kept.episode

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """The episodes that match, of those kept before the call."""
        check_filter(matching)
        with self._lock:
            self._check_open()
            kept = tuple(self._episodes.values())
        ordered = (one.episode for one in (kept if matching.oldest_first else reversed(kept)))
        return islice((one for one in ordered if matches(one, matching)), matching.limit)

    def volume(self) -> EpisodeVolume:
        """The size of the stored episodes as JSON text."""
        with self._lock:
            self._check_open()
            return _volume(tuple(self._episodes.values()))

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Delete the episodes that break ``retention``; see ``Pruning.prune``."""
        with self._lock:
            self._check_open()
            going = self._breaking(retention)
            for kept in going:
                del self._episodes[kept.episode.episode_id]
        return _volume(going)

    def _breaking(self, retention: Retention) -> Sequence[_Kept]:
        """The episodes that break ``retention``, the oldest first."""
        by_age = sorted(self._episodes.values(), key=lambda one: one.begun)  # then as they came
        count, oldest = len(by_age), _FIRST
        if retention.max_age is not None and retention.max_age <= datetime.now(UTC) - _FIRST:
            oldest = datetime.now(UTC) - retention.max_age
        for gone, one in enumerate(by_age):
            too_many = retention.max_count is not None and count - gone > retention.max_count
            if not (too_many or one.begun < oldest):
                return by_age[:gone]
        return by_age

    def close(self) -> None:
        """Refuse further use. A second call does nothing."""
        self._closed = True

    def _versions(self) -> tuple[int, ...]:
        return tuple(range(1, len(self._log) + 1))

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("this memory store is closed; open a new one with open_store")


def _volume(kept: Sequence[_Kept]) -> EpisodeVolume:
    return EpisodeVolume(count=len(kept), bytes=sum(one.bytes for one in kept))
