"""``compare_stores``: whether two stores hold the same history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from agentkit.episodes import Episode
from agentkit.library.abilities import AppliedChange
from agentkit.library.copying.changes import changes_of
from agentkit.library.copying.differences import (
    Agreement,
    Difference,
    actual_digest,
    compare_changes,
    compare_episodes,
    compare_events,
)
from agentkit.library.copying.progress import Progress, counted, episode_count, silent
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """How much of a store's history is looked at.

    Attributes:
        version: Changes up to this one; None for all.
        events: This many events, the first ones; None for all.
        episodes: This many episodes, the oldest; None for all.
    """

    version: int | None = None
    events: int | None = None
    episodes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How far two stores agree.

    Attributes:
        versions: How many library versions are the same, from the first on.
        tools: How many tools the last of these has.
        events: How many events are the same, from the first on.
        episodes: How many episodes are the same, from the first on.
        differences: The first one of each part: of versions with their tools, events, episodes.
    """

    versions: int
    tools: int
    events: int
    episodes: int
    differences: tuple[Difference, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether there is no difference."""
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object."""
        return {
            "is_equal": self.is_equal,
            "versions": self.versions,
            "tools": self.tools,
            "events": self.events,
            "episodes": self.episodes,
            "differences": [one.to_json() for one in self.differences],
        }


def compare_stores(
    first: Store,
    second: Store,
    *,
    episodes: bool = True,
    until: Extent = Extent(),
    progress: Progress = silent,
) -> Comparison:
    """Compare two histories from their beginnings on, and name where they part.

    Compared are the changes that made the versions (definitions by digests that are worked out
    anew, their order and origins, names, times and reasons), the newest library that both have, as
    each store loads it, events by their hashes and signatures, and episodes by ids and contents.

    Args:
        first: One store.
        second: The other one.
        episodes: Whether to look at episodes.
        until: How much of the first to look at, for one that may grow meanwhile.
        progress: Hears how far it is.

    Raises:
        StoreError: A store can not be read.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> one, other = open_store("memory:"), open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> one.commit(add, expected_version=0)
        1
        >>> found = compare_stores(one, other)
        >>> found.is_equal, str(found.differences[0])
        (False, 'version 1: the second store ends before it')

    Cost: one pass over both; one episode of each is held at a time, and the events of both.
    """
    ours = counted(_changes(first, until), progress("comparing versions"), total=_newest(first))
    changes = compare_changes(ours, changes_of(second))
    events = compare_events(islice(first.events(), until.events), second.events())
    kept = _kept(first, second, until, progress) if episodes else Agreement(count=0)
    one, other = _library(first, changes.count), _library(second, changes.count)
    found = (changes.difference, _of_libraries(one, other), events.difference, kept.difference)
    return Comparison(
        versions=changes.count,
        tools=len(one),
        events=events.count,
        episodes=kept.count,
        differences=tuple(one for one in found if one is not None),
    )


def episodes_of(store: Store) -> Iterator[Episode]:
    """All episodes in the order in which they were kept."""
    return store.select(EpisodeFilter(oldest_first=True))


def _changes(store: Store, until: Extent) -> Iterable[AppliedChange]:
    changes, last = changes_of(store), until.version
    return changes if last is None else takewhile(lambda one: one.version <= last, changes)


def _kept(first: Store, second: Store, until: Extent, progress: Progress) -> Agreement:
    total = episode_count(first) if until.episodes is None else until.episodes
    ours = islice(episodes_of(first), until.episodes)
    watched = counted(ours, progress("comparing episodes"), total=total)
    return compare_episodes(watched, episodes_of(second))


def _newest(store: Store) -> int:
    return max(store.versions(), default=0)


def _library(store: Store, count: int) -> Library:
    """The library after so many changes. A store may begin with a later version than 1."""
    return store.load(store.versions()[count - 1]) if count else Library()


def _of_libraries(ours: Library, theirs: Library) -> Difference | None:
    """How the same version differs as two stores load it."""
    place = f"version {ours.version} as it is loaded"
    for one, other in zip(ours.definitions, theirs.definitions, strict=False):
        if one.name != other.name:
            message = f"{one.name!r} or {other.name!r} stands at the same place"
            return Difference(part="tools", place=place, message=message)
        if actual_digest(one) != actual_digest(other):
            message = f"tool {one.name!r} is not the same"
            return Difference(part="tools", place=place, message=message)
    if len(ours) != len(theirs):
        message = f"{len(ours):,} or {len(theirs):,} tools"
        return Difference(part="tools", place=place, message=message)
    return None
