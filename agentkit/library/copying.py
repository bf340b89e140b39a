"""Copying a store into another, and comparing two: where their histories part."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice, takewhile, zip_longest
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from agentkit.episodes import Episode
from agentkit.episodes.files import encode_episode
from agentkit.errors import StoreError, StoreFormatError, UsageError
from agentkit.library.changes import actual_digest
from agentkit.library.episode_stores import append_all
from agentkit.library.events import LibraryEvent, storable
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    LibraryChange,
    Pruning,
    Store,
    ToolStore,
)

T = TypeVar("T")


class ProgressCallback(Protocol):
    """Hears how much of a step is done."""

    def __call__(self, done: float, total: float, /) -> None:
        """``done`` of ``total``."""
        ...


Progress: TypeAlias = Callable[[str], ProgressCallback]
"""Given the title of a step, returns what hears how much of it is done."""


def silent(_title: str) -> ProgressCallback:
    """Reports nothing."""
    return lambda _done, _total: None


def counted(items: Iterable[T], report: ProgressCallback, *, total: int) -> Iterator[T]:
    """The same items; each is reported. Where their number is not known (0), none is."""
    for number, item in enumerate(items, start=1):
        yield item
        if total:
            report(min(number, total), total)


def episode_count(store: Store) -> int:
    """How many episodes a store holds, where it can say so without reading them; else 0."""
    if not isinstance(store, Pruning):
        return 0
    try:
        return store.volume().count
    except StoreError:  # it may have to note something for that, and is open to be read only
        return 0


def episodes_of(store: Store) -> Iterator[Episode]:
    """All episodes in the order in which they were kept."""
    return store.select(EpisodeFilter(oldest_first=True))


# Comparing.

Part = Literal["versions", "tools", "events", "episodes"]
"""Of what a store holds. ``versions`` says who made which change when and why, ``tools`` what the
libraries hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Where two histories part.

    Attributes:
        part: Of the store.
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

    def to_json(self) -> dict[str, str]:
        """The difference as a JSON object."""
        record = {"part": self.part, "place": self.place, "message": self.message}
        return record | ({"ended": self.ended} if self.ended else {})


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
        record: dict[str, Any] = {"is_equal": self.is_equal}
        for name in ("versions", "tools", "events", "episodes"):
            record[name] = getattr(self, name)
        return record | {"differences": [one.to_json() for one in self.differences]}


def compare_stores(
    first: Store,
    second: Store,
    *,
    episodes: bool = True,
    until: Amount | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare two histories from their beginnings on, and name where they part.

    Compared are the changes that made the versions (definitions by digests that are worked out
    anew, their origins, names, times and reasons), the newest library that both have, as each store
    loads it, events by their hashes and signatures, and episodes by ids and contents.

    Args:
        first: One store.
        second: The other one.
        episodes: Whether to look at episodes.
        until: How much of the first to look at, for one that may grow meanwhile; None for all.
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
    limit = Amount(versions=_ALL, events=_ALL, episodes=_ALL) if until is None else until
    total = max(first.versions(), default=0)
    ours = counted(first.changes(), progress("comparing versions"), total=total)
    versions, of_versions = _walk(islice(ours, limit.versions), second.changes(), _change)
    events, of_events = _walk(islice(first.events(), limit.events), second.events(), _event)
    one, other = (
        store.load(store.versions()[versions - 1]) if versions else Library()
        for store in (first, second)
    )
    found = [of_versions, _libraries_differ(one, other), of_events]
    kept = 0
    if episodes:
        report = progress("comparing episodes")
        mine = counted(episodes_of(first), report, total=episode_count(first))
        kept, of_episodes = _walk(islice(mine, limit.episodes), episodes_of(second), _episode)
        found.append(of_episodes)
    return Comparison(
        versions=versions,
        tools=len(one),
        events=events,
        episodes=kept,
        differences=tuple(one for one in found if one is not None),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Item:
    """Something at its place in a history, as what is said of it by name."""

    part: Part
    place: str
    says: Mapping[str, object]


def _walk(
    ours: Iterable[T], theirs: Iterable[T], item_of: Callable[[T], _Item]
) -> tuple[int, Difference | None]:
    """How many are the same from the first on, and what comes behind them."""
    count = 0
    for theirs_next, ours_next in zip_longest(theirs, ours):
        one = None if ours_next is None else item_of(ours_next)
        other = None if theirs_next is None else item_of(theirs_next)
        difference = _difference(one, other)
        if difference is not None:
            return count, difference
        count += 1
    return count, None


def _difference(one: _Item | None, other: _Item | None) -> Difference | None:
    if one is None or other is None:
        there = one or other
        assert there is not None
        ended: Literal["first", "second"] = "first" if one is None else "second"
        message = f"the {ended} store ends before it"
        return Difference(part=there.part, place=there.place, message=message, ended=ended)
    for name in dict.fromkeys((*one.says, *other.says)):
        mine, yours = one.says.get(name, "not touched"), other.says.get(name, "not touched")
        is_unknown = name == "made at" and not (mine and yours)  # a store may not know the time
        if mine != yours and not is_unknown:
            part: Part = "tools" if name.startswith("tool ") else one.part
            return Difference(part=part, place=one.place, message=f"{name} {mine} or {yours}")
    return None


def _change(applied: AppliedChange) -> _Item:
    change = applied.change
    says: dict[str, object] = {
        "library version": applied.version,
        "proposal id": repr(storable(change.proposal_id)),
        "author": repr(storable(change.author)),
        "reason": repr(storable(change.reason)),
        "evidence": tuple(map(storable, change.evidence)),
        "made at": _moment(change.created_at),
    }
    says |= {f"tool {name!r}": "removed" for name in sorted(change.removals)}
    for tool in sorted(change.upserts, key=lambda one: one.name):
        says[f"tool {tool.name!r}"] = f"the definition with digest {actual_digest(tool)}"
        origin = json.dumps(tool.to_json().get("origin"), sort_keys=True)
        says[f"tool {tool.name!r}, its origin"] = origin
    return _Item(part="versions", place=f"version {applied.version}", says=says)


def _moment(text: str) -> datetime | str:
    """A time that compares with one of another time zone; the text itself if it is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if moment.tzinfo is None else moment


def _event(event: LibraryEvent) -> _Item:
    says = {"event": event.sequence, "its hash": event.hash, "its signature": event.signature}
    return _Item(part="events", place=f"event {event.sequence}", says=says)


def _episode(episode: Episode) -> _Item:
    episode_id = repr(storable(episode.episode_id))
    record = json.loads(encode_episode(episode))  # stores may change the order of keys
    content = json.dumps(record, sort_keys=True)
    says = {"episode": episode_id, "its content": content}
    return _Item(part="episodes", place=f"episode {episode_id}", says=says)


def _libraries_differ(ours: Library, theirs: Library) -> Difference | None:
    """How the same version differs as two stores load it."""
    mine = [(one.name, actual_digest(one)) for one in ours.definitions]
    yours = [(one.name, actual_digest(one)) for one in theirs.definitions]
    place = f"version {ours.version} as it is loaded"
    for one, other in zip(mine, yours, strict=False):
        if one != other:
            message = f"{one[0]!r} or {other[0]!r} stands at the same place"
            if one[0] == other[0]:
                message = f"tool {one[0]!r} is not the same"
            return Difference(part="tools", place=place, message=message)
    if len(mine) != len(yours):
        message = f"{len(mine):,} or {len(yours):,} tools"
        return Difference(part="tools", place=place, message=message)
    return None


# Copying.

_ALL = 2**62
"""More than any store holds."""

_EVENTS_AT_A_TIME = 500
_EPISODES_AT_A_TIME = 100


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
            "held": asdict(self.held),
            "copied": asdict(self.copied),
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
    kept = _copy_episodes(source, target, after=held.episodes, progress=progress) if episodes else 0
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
    version, left = after, deque(events)
    changes = islice(source.changes(after=after), until - after)
    for applied in counted(changes, progress("copying versions"), total=until - after):
        _check_whole(applied)
        change = replace(applied.change, events=_taken(left, applied.version))
        made = target.commit(change, expected_version=version)
        if made != applied.version:
            raise StoreError(
                f"the target answered with version {made} to the change that made version "
                f"{applied.version}: it holds the id {change.proposal_id!r} already"
            )
        version = made
        _copy_events(target, left, version, upto=version)
    _copy_events(target, left, version, upto=_ALL)


def _copy_events(target: ToolStore, left: deque[LibraryEvent], version: int, *, upto: int) -> None:
    """Copy events by themselves: those that tell of no later version than ``upto``."""
    while some := _taken(left, upto):
        proposal_id = f"copied-events-{some[0].sequence}-{some[0].hash[:12]}"
        target.commit(LibraryChange(proposal_id=proposal_id, events=some), expected_version=version)


def _taken(left: deque[LibraryEvent], upto: int) -> tuple[LibraryEvent, ...]:
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


def _copy_episodes(source: Store, target: Store, *, after: int, progress: Progress) -> int:
    """Copy the episodes behind the first ``after``, which the target holds; how many."""
    count, total = 0, max(episode_count(source) - after, 0)
    rest = islice(episodes_of(source), after, None)
    watched = counted(rest, progress("copying episodes"), total=total)
    while some := tuple(islice(watched, _EPISODES_AT_A_TIME)):
        append_all(target, some)
        count += len(some)
    return count


def _seen(source: Store) -> Amount:
    """How far the source goes now: its versions, and the events up to the last of them."""
    versions, events = source.versions(), source.events()
    if versions and versions[0] != 1:
        raise UsageError(
            f"there is no history to copy: the source begins with library version {versions[0]}, "
            "what was before it was left out; 'agentkit import' brings its tools"
        )
    newest = versions[-1] if versions else 0
    if len(source.versions()) > len(versions):  # a writer came between the questions
        events = tuple(takewhile(lambda event: event.library_version <= newest, events))
    return Amount(versions=newest, events=len(events), episodes=_ALL)


def _parted(difference: Difference) -> str:
    place, what = difference.place, difference.message
    how = f"holds another history than the source from {place} on: {what}, the source's first"
    if difference.ended:
        how = f"goes on where the source ends, with {place}"
    return (
        f"the target {how}. Nothing was written; a copy goes into an empty store, or into one that "
        "holds a beginning of the same history"
    )


def _is_behind(source: Store, target: Store, seen: Amount, *, has_episodes: bool) -> bool:
    """Whether the source holds more than was copied."""
    if len(source.versions()) > seen.versions or source.events(after=seen.events):
        return True
    newest = [
        [one.episode_id for one in store.select(EpisodeFilter(limit=1))]
        for store in (source, target)
    ]
    return has_episodes and newest[0] != newest[1]
