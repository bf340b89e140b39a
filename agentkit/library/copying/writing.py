"""Writing what one store tells into another: changes with their events, then episodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from agentkit.episodes import Episode
from agentkit.errors import StoreError, StoreFormatError
from agentkit.library.abilities import AppliedChange, BatchAppending
from agentkit.library.copying.changes import changes_of
from agentkit.library.copying.comparing import episodes_of
from agentkit.library.copying.differences import actual_digest
from agentkit.library.copying.progress import Progress, counted, episode_count, silent
from agentkit.library.events import LibraryEvent
from agentkit.library.store import LibraryChange, Store, ToolStore

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
    changes = islice(changes_of(source, after=after), until - after)
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
        if isinstance(target, BatchAppending):
            target.append_many(some)
        else:
            for episode in some:
                target.append(episode)
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
