"""Copying a store into another, and comparing two: where their histories part."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any, Literal, TypeAlias, TypeVar

from agentkit.episodes import Episode
from agentkit.episodes.files import encode_episode
from agentkit.errors import StoreError, StoreFormatError, UsageError
from agentkit.library.changes import actual_digest, change_to_json
from agentkit.library.events import LibraryEvent, moment_of, storable
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    LibraryChange,
    Store,
    ToolStore,
    append_all,
)

T = TypeVar("T")


def episodes_of(store: Store) -> Iterator[Episode]:
    """All episodes in storage order."""
    return store.select(EpisodeFilter(oldest_first=True))


# Comparing.

Part = Literal["versions", "tools", "events", "episodes"]
"""Part of a store. ``versions`` says who made which change when and why, ``tools`` what the
libraries hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Where two histories diverge.

    Attributes:
        part: The part of the store.
        place: Such as ``version 3`` or ``event 17``.
        message: What the one says and what the other.
        ended: Which of the two has nothing at this place, being the beginning of the other; empty
            when both have something, and not the same.
    """

    part: Part
    place: str
    message: str
    ended: Literal["first", "second", ""] = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """So much of a history, from its beginning on.

    Attributes:
        versions: Library versions.
        events: Events.
        episodes: Episodes.
    """

    versions: int = 0
    events: int = 0
    episodes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison(Amount):
    """The extent to which two stores agree: how much is the same, from the first on.

    Attributes:
        tools: How many tools the last of the equal versions has.
        differences: The first one of each part: of versions with their tools, events, episodes.
    """

    tools: int = 0
    differences: tuple[Difference, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether there is no difference."""
        return not self.differences


def compare_stores(first: Store, second: Store, *, episodes: bool = True) -> Comparison:
    """Compare two histories from their beginnings on, and name where they part.

    Compared are the changes that made the versions (definitions with their origins, names, times
    and reasons), the newest library that both have, as each store loads it, events and episodes.

    Args:
        first: One store.
        second: The other one.
        episodes: Whether to look at episodes.

    Raises:
        StoreError: A store cannot be read.

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
    versions, of_versions = _walk(first.changes(), second.changes(), _change)
    events, of_events = _walk(first.events(), second.events(), _event)
    one, other = (
        store.load(store.versions()[versions - 1]) if versions else Library()
        for store in (first, second)
    )
    of_tools = None
    if _digests(one) != _digests(other):
        place = f"version {one.version} as it is loaded"
        of_tools = Difference(part="tools", place=place, message="the tools are not the same")
    kept, of_episodes = 0, None
    if episodes:
        kept, of_episodes = _walk(episodes_of(first), episodes_of(second), _episode)
    found = (of_versions, of_tools, of_events, of_episodes)
    return Comparison(
        versions=versions,
        tools=len(one),
        events=events,
        episodes=kept,
        differences=tuple(one for one in found if one is not None),
    )


_Item: TypeAlias = tuple[Part, str, Mapping[str, Any]]
"""Something in a history: the part that it is of, its place, and what is said of it by name."""


def _walk(
    ours: Iterable[T], theirs: Iterable[T], item_of: Callable[[T], _Item]
) -> tuple[int, Difference | None]:
    """The number of equal items from the start, and the first difference."""
    count = 0
    for theirs_next, ours_next in zip_longest(theirs, ours):
        if ours_next is None or theirs_next is None:
            ended: Literal["first", "second"] = "first" if ours_next is None else "second"
            part, place, _ = item_of(theirs_next if ours_next is None else ours_next)
            message = f"the {ended} store ends before it"
            return count, Difference(part=part, place=place, message=message, ended=ended)
        (part, place, one), (_, _, other) = item_of(ours_next), item_of(theirs_next)
        for name in dict.fromkeys((*one, *other)):
            mine, yours = one.get(name, "not touched"), other.get(name, "not touched")
            if mine != yours:
                part = "tools" if name.startswith("tool ") else part
                message = f"{name} {mine!s:.200} or {yours!s:.200}"
                return count, Difference(part=part, place=place, message=message)
        count += 1
    return count, None


def _change(applied: AppliedChange) -> _Item:
    created_at = applied.change.created_at
    says = change_to_json(applied.change) | {"made at": moment_of(created_at) or created_at}
    says.pop("created_at", None)
    says |= {f"tool {name!r}": "removed" for name in sorted(says.pop("removals", ()))}
    for row in sorted(says.pop("upserts", ()), key=lambda row: str(row["definition"]["name"])):
        says[f"tool {row['definition']['name']!r}"] = row["definition"]
    return "versions", f"version {applied.version}", _stored(says)


def _event(event: LibraryEvent) -> _Item:
    says = {"event": event.sequence, "its hash": event.hash, "its signature": event.signature}
    return "events", f"event {event.sequence}", says


def _episode(episode: Episode) -> _Item:
    record = _stored(json.loads(encode_episode(episode)))
    return "episodes", f"episode {record['episode_id']!r}", record


def _stored(record: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of something, with texts as every store holds them."""
    return {name: storable(one) if isinstance(one, str) else one for name, one in record.items()}


def _digests(library: Library) -> list[tuple[str, str]]:
    return [(one.name, actual_digest(one)) for one in library.all_definitions]


# Copying.

_ALL = 2**62
"""More than any store holds."""

_EVENTS_AT_A_TIME = 500
_EPISODES_AT_A_TIME = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """The result of a copy.

    Attributes:
        copied: What was written to it now.
        compared: What was compared afterwards. The target may end before the source, which then got
            more meanwhile; copying again brings it.
    """

    copied: Amount
    compared: Comparison


def copy_store(source: Store, target: Store, *, episodes: bool = True) -> Copied:
    """Copy all versions, events and episodes, then compare both stores.

    Versions keep their numbers, changes their ids, authors, reasons and times, tools their order
    and origins, events their hashes and signatures, episodes their order. The source is read only.

    The target is empty, or holds a beginning of the same history: then the rest is copied. So a
    copy that was interrupted anywhere is ended by running it again, and one that is run now and
    then keeps the target up to date. Nothing in the target is ever changed.

    What is written to the source meanwhile stays for the next time.

    Args:
        source: Where to read.
        target: Where to write; there must be no other writer.
        episodes: Whether episodes go along.

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
    versions = source.versions()
    if versions and versions[0] != 1:
        raise UsageError(
            f"there is no history to copy: the source begins with library version {versions[0]}, "
            "what was before it was left out; 'agentkit import' brings its tools"
        )
    before = compare_stores(source, target, episodes=episodes)
    for difference in before.differences:
        if difference.ended != "second":
            raise StoreError(_parted(difference))
    events = source.events(after=before.events)
    made = copy_library(source, target, events, after=before.versions)
    kept = _copy_episodes(source, target, after=before.episodes) if episodes else 0
    compared = compare_stores(source, target, episodes=episodes)
    wrong = [one for one in compared.differences if one.ended != "second"]
    if wrong:
        raise StoreError(
            f"what was copied is not the same afterwards: {wrong[0]}. Somebody else "
            "writes to the target, or one of the two stores is damaged: 'agentkit check'"
        )
    copied = Amount(versions=made, events=len(events), episodes=kept)
    return Copied(copied=copied, compared=compared)


def copy_library(
    source: ToolStore,
    target: ToolStore,
    events: Sequence[LibraryEvent],
    *,
    after: int,
    until: int = _ALL,
) -> int:
    """Copy versions with the events of each, then the events that are left; how many versions.

    A store does not keep which change brought an event. Each goes along with the version that it
    tells of, and so do those of events alone that came behind it.

    Args:
        source: Where to read.
        target: Where to write; it holds the versions up to ``after`` and the events before these.
        events: The events that the target lacks.
        after: The last version that the target holds.
        until: The last version to copy.

    Raises:
        StoreFormatError: A definition of the source is not the one of its digest.
        StoreError: One of the stores failed; what was copied until then stays.
    """
    version, left = after, deque(events)
    for applied in islice(source.changes(after=after), until - after):
        _check_whole(applied)
        change = replace(applied.change, events=_take_events(left, applied.version))
        made = target.commit(change, expected_version=version)
        if made != applied.version:
            raise StoreError(
                f"the target answered with version {made} to the change that made version "
                f"{applied.version}: it holds the id {change.proposal_id!r} already"
            )
        version = made
        _copy_events(target, left, version, upto=version)
    _copy_events(target, left, version, upto=_ALL)
    return version - after


def _copy_events(target: ToolStore, left: deque[LibraryEvent], version: int, *, upto: int) -> None:
    """Copy events alone: those of versions up to ``upto``."""
    while some := _take_events(left, upto):
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


def _copy_episodes(source: Store, target: Store, *, after: int) -> int:
    """Copy the episodes behind the first ``after``, which the target holds; how many."""
    count, rest = 0, islice(episodes_of(source), after, None)
    while some := tuple(islice(rest, _EPISODES_AT_A_TIME)):
        append_all(target, some)
        count += len(some)
    return count


def _parted(difference: Difference) -> str:
    place, what = difference.place, difference.message
    how = f"holds another history than the source from {place} on: {what}, the source's first"
    if difference.ended:
        how = f"goes on where the source ends, with {place}"
    return (
        f"the target {how}. Nothing was written; a copy goes into an empty store, or into one that "
        "holds a beginning of the same history"
    )
