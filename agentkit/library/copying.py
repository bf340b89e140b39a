"""Copying a store into an empty one, with its whole history."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from agentkit.episodes import Episode
from agentkit.errors import StoreError, StoreFormatError, UsageError
from agentkit.library.changes import actual_digest
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    LibraryChange,
    Store,
    append_all,
)

_EVENTS_AT_A_TIME = 500
_EPISODES_AT_A_TIME = 100


def episodes_of(store: Store) -> Iterator[Episode]:
    """All episodes in storage order."""
    return store.select(EpisodeFilter(oldest_first=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """What a copy holds.

    Attributes:
        versions: Library versions.
        events: Events.
        episodes: Episodes.
    """

    versions: int = 0
    events: int = 0
    episodes: int = 0


def copy_store(source: Store, target: Store) -> Copied:
    """Copy all versions, events and episodes into an empty store.

    Versions keep their numbers, changes their ids, authors, reasons and times, tools their order
    and origins, events their hashes and signatures, episodes their order. The source is only read;
    what is written to it meanwhile may be left out. A copy that was interrupted is begun anew, in
    another empty store.

    Args:
        source: Where to read.
        target: Where to write; it is empty, and there is no other writer.

    Raises:
        UsageError: The target holds something, or the source begins with a later version than 1.
        StoreError: What was copied is not the same afterwards, or one of the two failed.
        StoreFormatError: The source is damaged.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> source, target = open_store("memory:"), open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> source.commit(add, expected_version=0)
        1
        >>> copy_store(source, target)
        Copied(versions=1, events=0, episodes=0)

    Memory: the newest library of both, the events, a hundred episodes.
    """
    versions, is_empty = source.versions(), not source.load()
    if versions[0] != 1 if versions else not is_empty:
        raise UsageError(
            "there is no history to copy: the source does not tell how its library came about; "
            "'agentkit import' brings its tools"
        )
    if target.versions() or target.events() or next(episodes_of(target), None) is not None:
        raise UsageError(
            "the target is not empty, and nothing was written; name a new one (after an "
            "interrupted copy delete what it left)"
        )
    newest = versions[-1] if versions else 0
    events = [one for one in source.events() if one.library_version <= newest]
    _copy_library(source, target, events, until=newest)
    episodes = _copy_episodes(source, target)
    kept = source.load(newest) if newest else Library()
    hashes = [one.hash for one in target.events()]
    if _digests(target.load()) != _digests(kept) or hashes != [one.hash for one in events]:
        raise StoreError(
            "what was copied is not the same afterwards. Somebody else writes to the target, or "
            "one of the two stores is damaged: 'agentkit check'"
        )
    return Copied(versions=len(versions), events=len(events), episodes=episodes)


def _copy_library(
    source: Store, target: Store, events: Iterable[LibraryEvent], *, until: int
) -> None:
    """Copy versions with the events of each, then the events that are left.

    A store does not keep which change brought an event. Each goes along with the version that it
    tells of, and so do those of events alone that came behind it.
    """
    version, left = 0, deque(events)
    for applied in islice(source.changes(), until):
        _check_whole(applied)
        change = replace(applied.change, events=_take_events(left, applied.version))
        made = target.commit(change, expected_version=version)
        if made != applied.version:
            raise StoreError(
                f"the target answered with version {made} to the change that made version "
                f"{applied.version}: it holds the id {change.proposal_id!r} already"
            )
        version = made
        _copy_events(target, left, version)
    _copy_events(target, left, version)


def _copy_events(target: Store, left: deque[LibraryEvent], version: int) -> None:
    """Copy events alone: those of versions up to this one."""
    while some := _take_events(left, version):
        proposal_id = f"copied-events-{some[0].sequence}-{some[0].hash[:12]}"
        target.commit(LibraryChange(proposal_id=proposal_id, events=some), expected_version=version)


def _take_events(left: deque[LibraryEvent], upto: int) -> tuple[LibraryEvent, ...]:
    """Some of the first events, up to one that tells of a later version than this."""
    taken: list[LibraryEvent] = []
    while left and len(taken) < _EVENTS_AT_A_TIME and left[0].library_version <= upto:
        taken.append(left.popleft())
    return tuple(taken)


def _check_whole(applied: AppliedChange) -> None:
    """Refuse a definition that is not the one of its digest: it would be copied as if it were."""
    for definition in applied.change.upserts:
        if actual_digest(definition) != definition.digest:
            raise StoreFormatError(
                f"the source is damaged: tool {definition.name!r} of library version "
                f"{applied.version} is not the one with digest {definition.digest[:12]}; "
                "'agentkit check' tells what else is. What was copied before it stays"
            )


def _copy_episodes(source: Store, target: Store) -> int:
    """Copy the episodes; how many."""
    count, rest = 0, episodes_of(source)
    while some := tuple(islice(rest, _EPISODES_AT_A_TIME)):
        append_all(target, some)
        count += len(some)
    return count


def _digests(library: Library) -> list[tuple[str, str]]:
    return [(one.name, actual_digest(one)) for one in library.all_definitions]
