"""Comparing two stores: where their histories part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from agentkit.episodes import Episode
from agentkit.episodes.files import encode_episode
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
    return lambda _done, _total: None


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


def episodes_of(store: Store) -> Iterator[Episode]:
    """All episodes in the order in which they were kept."""
    return store.select(EpisodeFilter(oldest_first=True))


def actual_digest(definition: ToolDefinition) -> str:
    """The digest of what a definition says, whatever the store keeps as its digest.

    Raises:
        ValueError: It holds what JSON can not.
        RecursionError: It is nested too deeply.
    """
    return replace(definition).digest  # a copy knows no digest yet


Part = Literal["versions", "tools", "events", "episodes"]
"""Of what a store holds. ``versions`` says who made which change when and why, ``tools`` what the
libraries hold."""

Side = Literal["first", "second"]


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

    def to_json(self) -> dict[str, int]:
        """The amount as a JSON object."""
        return {"versions": self.versions, "events": self.events, "episodes": self.episodes}


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
    limit = (None, None, None) if until is None else (until.versions, until.events, until.episodes)
    total = max(first.versions(), default=0)
    ours = counted(first.changes(), progress("comparing versions"), total=total)
    versions, difference = _walk(islice(ours, limit[0]), second.changes(), _of_change)
    events, of_events = _walk(islice(first.events(), limit[1]), second.events(), _of_event)
    one, other = _library(first, versions), _library(second, versions)
    found = [difference, _of_libraries(one, other), of_events]
    kept = 0
    if episodes:
        told = progress("comparing episodes")
        mine = counted(episodes_of(first), told, total=episode_count(first))
        kept, of_episodes = _walk(islice(mine, limit[2]), episodes_of(second), _of_episode)
        found.append(of_episodes)
    return Comparison(
        versions=versions,
        tools=len(one),
        events=events,
        episodes=kept,
        differences=tuple(one for one in found if one is not None),
    )


def _walk(
    ours: Iterable[T], theirs: Iterable[T], differ: Callable[[T, T], Difference | None]
) -> tuple[int, Difference | None]:
    """How many are the same from the first on, and what comes behind them.

    The second is asked first: where it is the beginning of the first, no more of that is read.
    """
    first, second = iter(ours), iter(theirs)
    count = 0
    while True:
        other, one = next(second, None), next(first, None)
        if one is None and other is None:
            return count, None
        if one is None or other is None:
            ended: Side = "first" if one is None else "second"
            part, place = _place(other if one is None else one)
            message = f"the {ended} store ends before it"
            return count, Difference(part=part, place=place, message=message, ended=ended)
        difference = differ(one, other)
        if difference is not None:
            return count, difference
        count += 1


def _place(one: object) -> tuple[Part, str]:
    match one:
        case AppliedChange():
            return "versions", f"version {one.version}"
        case LibraryEvent():
            return "events", f"event {one.sequence}"
        case Episode():
            return "episodes", f"episode {one.episode_id!r}"
    raise TypeError(f"{type(one).__name__} is no part of a store")


def _at(one: object, message: str, *, part: Part | None = None) -> Difference:
    own, place = _place(one)
    return Difference(part=part or own, place=place, message=message)


def _of_change(ours: AppliedChange, theirs: AppliedChange) -> Difference | None:
    if ours.version != theirs.version:
        return _at(ours, f"it is version {theirs.version} in the second store")
    for name in ("proposal_id", "author", "reason", "evidence"):
        one, other = getattr(ours.change, name), getattr(theirs.change, name)
        if _storable(one) != _storable(other):
            return _at(ours, f"{name.replace('_', ' ')} {one!r} or {other!r}")
    one, other = ours.change.created_at, theirs.change.created_at
    if one and other and _moment(one) != _moment(other):  # a store may not know the time
        return _at(ours, f"made at {one} or {other}")
    mine, yours = _steps(ours), _steps(theirs)
    for name in sorted({*mine, *yours}):
        words = _of_tool(mine.get(name, "not touched"), yours.get(name, "not touched"))
        if words:
            return _at(ours, f"tool {name!r}: {words}", part="tools")
    return None


def _steps(applied: AppliedChange) -> dict[str, ToolDefinition | str]:
    """What a change did to each tool."""
    steps: dict[str, ToolDefinition | str] = dict.fromkeys(applied.change.removals, "removed")
    return steps | {tool.name: tool for tool in applied.change.upserts}


def _of_tool(one: ToolDefinition | str, other: ToolDefinition | str) -> str:
    """How two tools differ, in words; empty when they do not."""
    if isinstance(one, str) or isinstance(other, str):
        told = [step if isinstance(step, str) else "set to a definition" for step in (one, other)]
        return "" if one == other else " or ".join(told)
    ours, theirs = actual_digest(one), actual_digest(other)
    if ours != theirs:
        return f"the definition with digest {ours[:12]} or the one with {theirs[:12]}"
    return "" if _origin(one) == _origin(other) else "it comes from another place, see its origin"


def _origin(definition: ToolDefinition) -> Any:
    return json.loads(json.dumps(definition.to_json().get("origin")))


def _of_event(one: LibraryEvent, other: LibraryEvent) -> Difference | None:
    if one.sequence != other.sequence:
        return _at(one, f"it is event {other.sequence} in the second store")
    if one.hash != other.hash:
        return _at(one, f"the event with hash {one.hash[:12]} or the one with {other.hash[:12]}")
    return _at(one, "it carries another signature") if one.signature != other.signature else None


def _of_episode(one: Episode, other: Episode) -> Difference | None:
    if _storable(one.episode_id) != _storable(other.episode_id):
        return _at(one, f"it is episode {other.episode_id!r} in the second store")
    ours, theirs = encode_episode(one), encode_episode(other)
    if ours == theirs or json.loads(ours) == json.loads(theirs):  # stores may change order of keys
        return None
    return _at(one, "it says something else")


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


def _library(store: Store, count: int) -> Library:
    """The library after so many changes. A store may begin with a later version than 1."""
    return store.load(store.versions()[count - 1]) if count else Library()


def _of_libraries(ours: Library, theirs: Library) -> Difference | None:
    """How the same version differs as two stores load it."""
    mine = [(one.name, actual_digest(one)) for one in ours.definitions]
    yours = [(one.name, actual_digest(one)) for one in theirs.definitions]
    if mine == yours:
        return None
    at = next(
        (n for n, pair in enumerate(zip(mine, yours, strict=False)) if len({*pair}) > 1), None
    )
    message = f"{len(mine):,} or {len(yours):,} tools"
    if at is not None and mine[at][0] == yours[at][0]:
        message = f"tool {mine[at][0]!r} is not the same"
    elif at is not None:
        message = f"{mine[at][0]!r} or {yours[at][0]!r} stands at the same place"
    place = f"version {ours.version} as it is loaded"
    return Difference(part="tools", place=place, message=message)
