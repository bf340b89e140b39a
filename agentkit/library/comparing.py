"""Comparing two stores: where their histories part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, takewhile
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import encode_episode
from agentkit.errors import StoreError
from agentkit.library.capabilities import Pruning
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import AppliedChange, EpisodeFilter, Store
from agentkit.tools.definition import ToolDefinition

T = TypeVar("T")


class ProgressCallback(Protocol):
    """Hears how much of a step is done."""

    def __call__(self, done: float, total: float, /) -> None:
        """``done`` of ``total``."""
        ...


Progress: TypeAlias = Callable[[str], ProgressCallback]
"""Given the title of a step, returns what hears how much of it is done."""


def silent(_title: str) -> ProgressCallback:
    """Tells nobody of a step."""
    return _tell_nobody


def _tell_nobody(_done: float, _total: float) -> None:
    """Drop what was told."""


def counted(items: Iterable[T], told: ProgressCallback, *, total: int) -> Iterator[T]:
    """The same items; each is told of. Where their number is not known (0), none is."""
    for number, item in enumerate(items, start=1):
        yield item
        if total:
            told(min(number, total), total)


def episode_count(store: Store) -> int:
    """How many episodes a store holds, where it can say so without reading them; else 0."""
    if not isinstance(store, Pruning):
        return 0
    try:
        return store.volume().count
    except StoreError:  # it may have to note something for that, and is open to be read only
        return 0


Part = Literal["versions", "tools", "events", "episodes"]
"""Of what a store holds. ``versions`` says who made which change when and why, ``tools`` what the
libraries hold."""

Side = Literal["first", "second"]

Words: TypeAlias = tuple[Part, str]
"""Where two things differ, and how."""


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
    ended: Side | Literal[""] = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"

    def to_json(self) -> dict[str, str]:
        """The difference as a JSON object."""
        record = {"part": self.part, "place": self.place, "message": self.message}
        return record | ({"ended": self.ended} if self.ended else {})


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How far two histories agree in one part.

    Attributes:
        count: How many changes, events or episodes are the same, from the first on.
        difference: What comes behind them; None when both end there.
    """

    count: int
    difference: Difference | None = None


class Replay:
    """The names in a library while changes are applied to it one by one.

    Every library version is compared by comparing the change that made it: two libraries that were
    equal are equal after equal changes.
    """

    def __init__(self) -> None:
        self._held: set[str] = set()

    def difference(self, ours: AppliedChange, theirs: AppliedChange) -> Words | None:
        """How two changes to this library differ; None when they do the same. Then apply them."""
        found = _of_change(ours, theirs) or self._of_tools(ours, theirs)
        if found is None:
            self._held.difference_update(ours.change.removals)
            self._held.update(tool.name for tool in ours.change.upserts)
        return found

    def _of_tools(self, ours: AppliedChange, theirs: AppliedChange) -> Words | None:
        one, other = ({tool.name: tool for tool in a.change.upserts} for a in (ours, theirs))
        gone, lost = set(ours.change.removals), set(theirs.change.removals)
        for name in sorted({*one, *other, *gone, *lost}):
            words = _of_tool(_told(name, one, gone), _told(name, other, lost))
            if words:
                return "tools", f"tool {name!r}: {words}"
        added, came = ([name for name in some if name not in self._held] for some in (one, other))
        if added != came:
            place = next(
                i for i, pair in enumerate(zip(added, came, strict=True)) if len({*pair}) > 1
            )
            return "tools", (
                f"the order of the tools that are new: {added[place]!r} or {came[place]!r} as "
                f"number {place + 1} of them"
            )
        return None


def compare_changes(ours: Iterable[AppliedChange], theirs: Iterable[AppliedChange]) -> Agreement:
    """How far two streams of changes agree, and where they part."""
    replay = Replay()
    return _walk(
        ours, theirs, replay.difference, lambda one: f"version {one.version}", part="versions"
    )


def compare_events(ours: Iterable[LibraryEvent], theirs: Iterable[LibraryEvent]) -> Agreement:
    """How far two chains of events agree, by hashes and signatures."""
    return _walk(ours, theirs, _of_event, lambda one: f"event {one.sequence}", part="events")


def compare_episodes(ours: Iterable[Episode], theirs: Iterable[Episode]) -> Agreement:
    """How far two streams of episodes agree, in ids and contents. One of each is held at a time."""
    return _walk(
        ours, theirs, _of_episode, lambda one: f"episode {one.episode_id!r}", part="episodes"
    )


def actual_digest(definition: ToolDefinition) -> str:
    """The digest of what a definition says, whatever the store keeps as its digest.

    Raises:
        ValueError: It holds what JSON can not.
        RecursionError: It is nested too deeply.
    """
    return replace(definition).digest  # a copy knows no digest yet


def _walk(
    ours: Iterable[T],
    theirs: Iterable[T],
    differ: Callable[[T, T], Words | None],
    place: Callable[[T], str],
    *,
    part: Part,
) -> Agreement:
    count = 0
    for one, other in _side_by_side(ours, theirs):
        if one is None or other is None:
            only = other if one is None else one
            if only is None:
                break
            ended: Side = "first" if one is None else "second"
            message = f"the {ended} store ends before it"
            difference = Difference(part=part, place=place(only), message=message, ended=ended)
            return Agreement(count=count, difference=difference)
        words = differ(one, other)
        if words is not None:
            where, message = words
            return Agreement(
                count=count, difference=Difference(part=where, place=place(one), message=message)
            )
        count += 1
    return Agreement(count=count)


def _side_by_side(ours: Iterable[T], theirs: Iterable[T]) -> Iterator[tuple[T | None, T | None]]:
    """Pairs; when one ends, the next of the other with None, and no more of it is read.

    The second is asked first: where it is the beginning of the first, no more of that is read.
    """
    first, second = iter(ours), iter(theirs)
    while True:
        other, one = next(second, None), next(first, None)
        yield one, other
        if one is None or other is None:
            return


def _of_change(ours: AppliedChange, theirs: AppliedChange) -> Words | None:
    if ours.version != theirs.version:
        return "versions", f"it is version {theirs.version} in the second store"
    for name in ("proposal_id", "author", "reason", "evidence"):
        one, other = getattr(ours.change, name), getattr(theirs.change, name)
        if _storable(one) != _storable(other):
            return "versions", f"{name.replace('_', ' ')} {one!r} or {other!r}"
    one, other = ours.change.created_at, theirs.change.created_at
    if one and other and _moment(one) != _moment(other):  # a store may not know the time
        return "versions", f"made at {one} or {other}"
    return None


def _told(name: str, upserts: Mapping[str, ToolDefinition], gone: set[str]) -> ToolDefinition | str:
    return upserts.get(name, "removed" if name in gone else "not touched")


def _of_tool(one: ToolDefinition | str, other: ToolDefinition | str) -> str:
    """How two tools differ, in words; empty when they do not."""
    if isinstance(one, str) or isinstance(other, str):
        return "" if one == other else f"{_short(one)} or {_short(other)}"
    ours, theirs = actual_digest(one), actual_digest(other)
    if ours != theirs:
        return f"the definition with digest {ours[:12]} or the one with {theirs[:12]}"
    return "" if _origin(one) == _origin(other) else "it comes from another place, see its origin"


def _short(told: ToolDefinition | str) -> str:
    return told if isinstance(told, str) else "set to a definition"


def _origin(definition: ToolDefinition) -> Any:
    return _plain(definition.to_json().get("origin"))


def _of_event(one: LibraryEvent, other: LibraryEvent) -> Words | None:
    if one.sequence != other.sequence:
        return "events", f"it is event {other.sequence} in the second store"
    if one.hash != other.hash:
        return "events", f"the event with hash {one.hash[:12]} or the one with {other.hash[:12]}"
    if one.signature != other.signature:
        return "events", "it carries another signature"
    return None


def _of_episode(one: Episode, other: Episode) -> Words | None:
    if _storable(one.episode_id) != _storable(other.episode_id):
        return "episodes", f"it is episode {other.episode_id!r} in the second store"
    ours, theirs = encode_episode(one), encode_episode(other)
    if ours == theirs or _sorted(ours) == _sorted(theirs):
        return None
    return "episodes", "it says something else"


def _sorted(text: str) -> str:
    """The same JSON with the keys of every object in order; stores may change that order."""
    return json.dumps(json.loads(text), sort_keys=True)


def _plain(value: Any) -> Any:
    """What is left of a value once it was JSON."""
    return json.loads(json.dumps(value))


def _storable(value: Any) -> Any:
    """Words as any store can keep them: half a surrogate pair as text, see ``LibraryChange``."""
    if isinstance(value, tuple):
        return tuple(map(_storable, value))
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def _moment(text: str) -> datetime | str:
    """A time that compares with one of another time zone; the text itself if it is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if moment.tzinfo is None else moment


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
    changes = compare_changes(ours, second.changes())
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
    changes, last = store.changes(), until.version
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
