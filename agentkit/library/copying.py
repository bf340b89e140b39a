"""Copying a store into another: versions, events and episodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Any

from agentkit.episodes import Episode
from agentkit.errors import StoreError, StoreFormatError, UsageError
from agentkit.library.capabilities import append_all
from agentkit.library.comparing import (
    Amount,
    Comparison,
    Difference,
    Progress,
    actual_digest,
    compare_stores,
    counted,
    episode_count,
    episodes_of,
    silent,
)
from agentkit.library.events import LibraryEvent
from agentkit.library.store import AppliedChange, EpisodeFilter, LibraryChange, Store, ToolStore

_EVENTS_AT_A_TIME = 500
_EPISODES_AT_A_TIME = 100


def copy_library(
    source: ToolStore,
    target: ToolStore,
    events: Sequence[LibraryEvent],
    *,
    after: int,
    until: int,
    progress: Progress = silent,
) -> None:
    """Copy versions with the events of each, then the events that are left.

    A store does not keep which change brought an event. Each goes along with the version that it
    tells of, and so do those of events alone that came behind it.

    Args:
        source: Where to read.
        target: Where to write; it holds the versions up to ``after`` and the events before these.
        events: The events that the target lacks.
        after: The last version that the target holds.
        until: The last version to copy.
        progress: Hears how far it is.

    Raises:
        StoreFormatError: A definition of the source is not the one of its digest.
        StoreError: One of the stores failed; what was copied until then stays.
    """
    version, rest = after, _Events(events)
    changes = islice(source.changes(after=after), until - after)
    for applied in counted(changes, progress("copying versions"), total=until - after):
        _check_whole(applied)
        change = replace(applied.change, events=rest.take(applied.version))
        made = target.commit(change, expected_version=version)
        if made != applied.version:
            raise StoreError(
                f"the target answered with version {made} to the change that made version "
                f"{applied.version}: it holds the id {change.proposal_id!r} already"
            )
        version = made
        _copy_events(target, rest, version)
    _copy_events(target, rest, version, is_end=True)


def copy_episodes(source: Store, target: Store, *, after: int, progress: Progress = silent) -> int:
    """Copy the episodes behind the first ``after``, which the target holds; how many."""
    count = 0
    rest = islice(episodes_of(source), after, None)
    watched = counted(
        rest, progress("copying episodes"), total=max(episode_count(source) - after, 0)
    )
    for some in _batches(watched):
        append_all(target, some)
        count += len(some)
    return count


def _copy_events(target: ToolStore, rest: _Events, version: int, *, is_end: bool = False) -> None:
    """Copy events by themselves: those up to a version, or all that are left."""
    while some := rest.take(None if is_end else version):
        proposal_id = f"copied-events-{some[0].sequence}-{some[0].hash[:12]}"
        change = LibraryChange(proposal_id=proposal_id, events=some)
        target.commit(change, expected_version=version)


class _Events:
    """The events that are to be copied yet."""

    def __init__(self, events: Sequence[LibraryEvent]) -> None:
        self._left = deque(events)

    def take(self, version: int | None) -> tuple[LibraryEvent, ...]:
        """Some of the first ones, up to one that tells of a later version than this."""
        taken: list[LibraryEvent] = []
        while self._left and len(taken) < _EVENTS_AT_A_TIME:
            if version is not None and self._left[0].library_version > version:
                break
            taken.append(self._left.popleft())
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


def _batches(episodes: Iterable[Episode]) -> Iterator[Sequence[Episode]]:
    rest = iter(episodes)
    while some := tuple(islice(rest, _EPISODES_AT_A_TIME)):
        yield some


_LOOKS = 5
_ALL = 2**62
"""More episodes than any store holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """What a copy brought.

    Attributes:
        held: What the target held before.
        copied: What was written to it now.
        compared: What was compared afterwards, and is the same in both stores.
        is_behind: Whether the source got more meanwhile; copying again brings it.
    """

    held: Amount
    copied: Amount
    compared: Comparison
    is_behind: bool

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "held": self.held.to_json(),
            "copied": self.copied.to_json(),
            "compared": self.compared.to_json(),
            "is_behind": self.is_behind,
        }


def copy_store(
    source: Store,
    target: Store,
    *,
    episodes: bool = True,
    progress: Progress = silent,
) -> Copied:
    """Copy all versions, events and episodes, then compare both stores.

    Versions keep their numbers, changes their ids, authors, reasons and times, tools their order
    and origins, events their hashes and signatures, episodes their order. The source is read only.

    The target is empty, or holds a beginning of the same history: then the rest is copied. So a
    copy that was interrupted anywhere is ended by running it again, and one that is run now and
    then keeps the target up to date. Nothing in the target is ever changed.

    What is written to the source meanwhile stays for the next time, see ``Copied.is_behind``.

    Args:
        source: Where to read.
        target: Where to write; nobody else writes to it meanwhile.
        episodes: Whether episodes go along.
        progress: Given the title of each step, returns what hears how much of it is done.

    Raises:
        UsageError: The source begins with a later version than 1.
        StoreError: The target holds something else than a beginning of this history; the first
            difference is named, and nothing was written. Or what was copied is not the same
            afterwards. Or one of the two failed; run it again.
        StoreFormatError: The source is damaged.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> source, target = open_store("memory:"), open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> source.commit(add, expected_version=0)
        1
        >>> copy_store(source, target).copied
        Amount(versions=1, events=0, episodes=0)
        >>> copy_store(source, target).copied
        Amount(versions=0, events=0, episodes=0)

    Memory: the newest library of both, the events of both, a hundred episodes.
    """
    seen = _seen(source)
    before = compare_stores(source, target, episodes=episodes, until=seen)
    for difference in before.differences:
        if difference.ended != "second":
            raise StoreError(_parted(difference))
    held = Amount(versions=before.versions, events=before.events, episodes=before.episodes)
    events = source.events()[held.events : seen.events]
    until, after = seen.versions, held.versions
    copy_library(source, target, events, after=after, until=until, progress=progress)
    kept = copy_episodes(source, target, after=held.episodes, progress=progress) if episodes else 0
    done = replace(seen, episodes=held.episodes + kept)
    compared = compare_stores(source, target, episodes=episodes, until=done, progress=progress)
    if not compared.is_equal:
        raise StoreError(
            f"what was copied is not the same afterwards: {compared.differences[0]}. Somebody else "
            "writes to the target, or one of the two stores is damaged: 'agentkit check'"
        )
    return Copied(
        held=held,
        copied=Amount(versions=until - after, events=len(events), episodes=kept),
        compared=compared,
        is_behind=_is_behind(source, target, seen, has_episodes=episodes),
    )


def _seen(source: Store) -> Amount:
    """How far the source goes now: its versions, and the events up to the last of them.

    Both are asked for one after the other; a writer may come between the two questions.
    """
    for _ in range(_LOOKS):
        before, events, versions = source.versions(), source.events(), source.versions()
        if len(before) == len(versions):
            break
    if before and before[0] != 1:
        raise UsageError(
            f"there is no history to copy: the source begins with library version {before[0]}, "
            "what was before it was left out; 'agentkit import' brings its tools"
        )
    newest = before[-1] if before else 0
    if len(before) != len(versions):
        events = tuple(takewhile(lambda event: event.library_version <= newest, events))
    return Amount(versions=newest, events=len(events), episodes=_ALL)


def _parted(difference: Difference) -> str:
    place, what = difference.place, difference.message
    how = (
        f"goes on where the source ends, with {place}"
        if difference.ended
        else f"holds another history than the source from {place} on: {what}, the source's first"
    )
    return (
        f"the target {how}. Nothing was written; a copy goes into an empty store, or into one that "
        "holds a beginning of the same history"
    )


def _is_behind(source: Store, target: Store, seen: Amount, *, has_episodes: bool) -> bool:
    """Whether the source holds more than was copied."""
    if len(source.versions()) > seen.versions or source.events(after=seen.events):
        return True
    if not has_episodes:
        return False
    newest = [
        [one.episode_id for one in s.select(EpisodeFilter(limit=1))] for s in (source, target)
    ]
    return newest[0] != newest[1]
