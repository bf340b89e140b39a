"""Incremental rounds: read what is new since the last round, and the earlier episodes it bears on.

A tool is looked at again when an episode that called it is new or newly judged, or when its
definition changed, and when there is anything that its calls could teach: refusals, rules, or
parameters without a type. The store's index then gives its newest conversations. All other tools
were decided by earlier rounds. A full round reads every episode and keeps to the same bounds, so
that both propose the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Protocol

from agentkit.composites.contracts import is_declared_by_code
from agentkit.diagnosis.findings import steps_of
from agentkit.episodes import Episode
from agentkit.episodes.labels import (
    VIEW_OF,
    in_library_names,
    is_extra_record,
    is_imported,
    is_late_verdict,
    with_late_verdicts,
)
from agentkit.episodes.replacing import plain_here, replaced
from agentkit.evolution.proposal import lasting_digest
from agentkit.evolution.proposers.observed import OF_THE_TOOL
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter
from agentkit.reading import read_json, read_stored
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import ANY_TYPE, allowed_types

MOST_OF_TOOL = 2_000
"""Conversations of a tool that a round learns from, the newest of each place."""

MOST_RECENT = 2_000
"""Records of a place that composites are mined from, the newest."""


class _Episodes(Protocol):
    def get(self, episode_id: str) -> Episode | None: ...

    def select(self, matching: EpisodeFilter = ...) -> Iterator[Episode]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodePlace:
    """A store that rounds read.

    Attributes:
        name: Its URL.
        store: The store.
        taken: An episode as the round is to see it; None for one that it must not see.
    """

    name: str
    store: _Episodes
    taken: Callable[[Episode], Episode | None]

    def get(self, episode_id: str) -> Episode | None:
        """The episode of that id, if the round may see it."""
        kept = self.store.get(episode_id)
        return None if kept is None else self.taken(kept)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundCursor:
    """What earlier rounds have read.

    Attributes:
        newest: The id of the newest record that was read, by place.
        tools: The digests of the definitions that have something to teach, without worked calls.
        troubled: Tools that refused a call, or whose calls a verdict called wrong.
        offered: The other names that tools were offered under, by tool.
        late: Verdicts that were kept beside their episodes: the ids of the records, each with that
            of the episode.
        asked: Which of the tasks that may decide were asked before.
    """

    newest: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    troubled: frozenset[str] = frozenset()
    offered: Mapping[str, Sequence[str]] = field(default_factory=dict)
    late: Mapping[str, str] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path, key: str) -> RoundCursor | None:
        """The cursor in a file; None where there is none for rounds of this kind."""
        try:
            with open(path, "rb", opener=plain_here) as file:
                kept = read_json(read_stored(file))
            if kept["key"] != key:
                return None
            newest, tools, late = (
                {name: str(value) for name, value in kept[part].items()}
                for part in ("newest", "tools", "late")
            )
            offered = {name: [*map(str, others)] for name, others in kept["offered"].items()}
            troubled, asked = (frozenset(map(str, kept[part])) for part in ("troubled", "asked"))
            return cls(
                newest=newest,
                tools=tools,
                troubled=troubled,
                offered=offered,
                late=late,
                asked=asked,
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None  # the next round reads everything, and writes it anew

    def write(self, path: Path, key: str) -> None:
        """Keep it in a file, for rounds of this kind.

        Raises:
            OSError: The file cannot be written, or is a link, a pipe or a device.
        """
        sets = {"troubled": sorted(self.troubled), "asked": sorted(self.asked)}
        kept = {**asdict(self), **sets, "key": key}
        os.close(plain_here(os.fspath(path), os.O_WRONLY | os.O_CREAT, 0o600))
        with replaced(path) as draft:
            draft.write_text(json.dumps(kept), encoding="utf-8")


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundEpisodes:
    """The episodes of one round.

    Attributes:
        episodes: All that were read.
        fresh: Ids of those that no round has read with the verdict that they have now; None in a
            full round.
        recent: Ids of the newest, from which composites are mined.
        by_tool: Ids of the episodes of each tool that may have something to teach, oldest first.
        cursor: From where the next round goes on.
    """

    episodes: tuple[Episode, ...]
    fresh: frozenset[str] | None = None
    recent: frozenset[str] = frozenset()
    by_tool: Mapping[str, tuple[str, ...]]
    cursor: RoundCursor = RoundCursor()


def read_round(
    places: Sequence[EpisodePlace],
    library: Library,
    cursor: RoundCursor | None = None,
    tasks: Collection[str] = (),
) -> RoundEpisodes:
    """Read the episodes of a round.

    Args:
        places: Where they are.
        library: The tools.
        cursor: Where the last round ended; None reads everything, and so does one that a place
            knows nothing of, as when its episodes were pruned or its file was replaced.
        tasks: Ids of the tasks that may decide; those of them that were asked are told.

    Raises:
        StoreError: A store failed.
    """
    known = {} if cursor is None else cursor.newest
    if cursor is None or not all(
        one.name not in known or one.store.get(known[one.name]) for one in places
    ):
        cursor = None
    return _Reading(places, library, cursor, tasks).episodes(cursor)


class _Reading:
    """One reading of the places."""

    def __init__(
        self,
        places: Sequence[EpisodePlace],
        library: Library,
        cursor: RoundCursor | None,
        tasks: Collection[str],
    ) -> None:
        self._places = places
        self._library = library
        self._newest = {} if cursor is None else dict(cursor.newest)
        self._troubled = set[str]() if cursor is None else set(cursor.troubled)
        self._late = {} if cursor is None else dict(cursor.late)
        self._asked = set[str]() if cursor is None else set(cursor.asked)
        before = {} if cursor is None else cursor.offered
        self._offered = {name: set(others) for name, others in before.items()}
        self._suffixes: dict[str, list[Episode]] = {}
        self._fresh: dict[str, Episode] = {}
        self._recent: set[str] = set()
        for place in places:
            self._read_newest(place, whole=cursor is None)
        own = (one for one in self._fresh.values() if not is_imported(one.metadata))
        self._asked |= {one.metadata.get("task", "") for one in own}.intersection(tasks)

    def _read_newest(self, place: EpisodePlace, *, whole: bool) -> None:
        """Read back to the cursor, and at least as far as composites are mined from."""
        last, found, is_new = self._newest.get(place.name), list[Episode](), True
        for number, record in enumerate(place.store.select(EpisodeFilter())):
            is_new = is_new and record.episode_id != last
            if number == 0:
                self._newest[place.name] = record.episode_id
            if not (is_new or whole or number < MOST_RECENT):
                break
            if (one := place.taken(record)) is None:
                continue
            found.append(one)
            if number < MOST_RECENT:
                self._recent.add(one.episode_id)
            if is_new:
                self._fresh[one.episode_id] = one
        self._suffixes[place.name] = found[::-1]
        for one in self._fresh.values():
            if is_late_verdict(one):
                self._late[one.episode_id] = one.metadata[VIEW_OF]
            for offered, name in one.library_names.items():
                self._offered.setdefault(name, set()).add(offered)

    def episodes(self, cursor: RoundCursor | None) -> RoundEpisodes:
        """What is new, and the earlier episodes that it bears on; all without a cursor."""
        there = {one.episode_id: one for found in self._suffixes.values() for one in found}
        earlier: dict[str, Episode] = {}

        def fetch(episode_id: str) -> Episode | None:
            if (known := there.get(episode_id) or earlier.get(episode_id)) is not None:
                return known
            kept = filter(None, (place.get(episode_id) for place in self._places))
            return next((earlier.setdefault(episode_id, one) for one in kept), None)

        for one in tuple(self._fresh.values()) if cursor is not None else ():
            judged = fetch(self._root(one.episode_id)) if is_late_verdict(one) else None
            if judged is not None:
                self._fresh[judged.episode_id] = judged
            begun, seen = one, set[str]()  # what users said when they began is in earlier episodes
            while not begun.request and begun.resumes and begun.resumes not in seen:
                seen.add(begun.resumes)
                begun = fetch(begun.resumes) or begun
        touched = self._touched(cursor, earlier)
        by_tool = {name: tuple(self._newest_of(name, there, earlier)) for name in touched}
        for record_id in self._late:
            if self._root(record_id) in earlier:
                fetch(record_id)
        return RoundEpisodes(
            episodes=self._together(earlier.values()),
            fresh=None if cursor is None else frozenset(self._fresh),
            recent=frozenset(self._recent),
            by_tool={name: own for name, own in by_tool.items() if own},
            cursor=self._cursor(),
        )

    def _touched(self, cursor: RoundCursor | None, earlier: Mapping[str, Episode]) -> list[str]:
        """The tools that what is new bears on, and that may have something to teach."""
        seen = with_late_verdicts(self._together(earlier.values()))
        fresh = [one for one in seen if one.episode_id in self._fresh]
        self._note_trouble(fresh)
        if cursor is None:
            return sorted(self._digests)
        names = {name for one in fresh for name, _ in _called(one)}
        verdicts = (one.verdict for one in fresh if one.verdict is not None)
        names |= {item.tool for verdict in verdicts for item in verdict.evidence}
        now, before = self._digests, cursor.tools
        names |= {name for name in now if now[name] != before.get(name)}
        return sorted(filter(self._can_teach, names))

    @cached_property
    def _digests(self) -> dict[str, str]:
        """Of the tools that may have something to teach, once all trouble is noted."""
        tools = (one for one in self._library.definitions if self._can_teach(one.name))
        return {one.name: lasting_digest(one)[:16] for one in tools}

    def _newest_of(
        self, name: str, there: Mapping[str, Episode], earlier: dict[str, Episode]
    ) -> Iterator[str]:
        """Ids of the newest episodes of a tool, oldest first; those that are not there are kept."""
        found: dict[str, None] = {}
        for place in self._places:
            for offered in sorted({name} | self._offered.get(name, set())):
                kept = map(place.taken, place.store.select(EpisodeFilter(tool_name=offered)))
                own = (
                    one
                    for one in kept
                    if one is not None
                    and _is_evidence(one)
                    and one.library_names.get(offered, offered) == name
                )
                newest = list(islice(own, MOST_OF_TOOL))
                found |= dict.fromkeys(one.episode_id for one in reversed(newest))
                for one in newest:
                    if one.episode_id not in there:
                        earlier.setdefault(one.episode_id, one)
        yield from found

    def _note_trouble(self, episodes: Iterable[Episode]) -> None:
        for one in map(in_library_names, episodes):
            tools = {call.call_id: call.name for call in one.calls}
            for turn in steps_of(one, self._library):
                self._troubled |= {
                    step.call.name
                    for step in turn
                    if step.failure is not None and step.failure.kind in OF_THE_TOOL
                }
            verdict = one.verdict
            for item in () if verdict is None or verdict.fault else verdict.evidence:
                self._troubled |= {item.tool, tools.get(item.call_id, "")} - {""}

    def _can_teach(self, name: str) -> bool:
        if name not in self._library:
            return False
        definition = self._library[name].definition
        rules = definition.specification.rules
        return bool(rules) or name in self._troubled or _is_open(definition)

    def _root(self, record_id: str) -> str:
        """The episode that a verdict is about, also where it was given to a verdict."""
        seen: set[str] = set()
        while record_id in self._late and record_id not in seen:
            seen.add(record_id)
            record_id = self._late[record_id]
        return record_id

    def _together(self, earlier: Iterable[Episode]) -> tuple[Episode, ...]:
        return (*earlier, *(one for found in self._suffixes.values() for one in found))

    def _cursor(self) -> RoundCursor:
        return RoundCursor(
            newest=self._newest,
            tools=self._digests,
            troubled=frozenset(self._troubled),
            offered={name: sorted(others) for name, others in self._offered.items()},
            late=self._late,
            asked=frozenset(self._asked),
        )


def _is_evidence(episode: Episode) -> bool:
    return not (is_imported(episode.metadata) or is_extra_record(episode.metadata))


def _called(episode: Episode) -> set[tuple[str, str]]:
    """The tools that an episode called, each with the name that it was offered under."""
    names = episode.library_names
    return {(names.get(call.name, call.name), call.name) for call in episode.calls}


def _is_open(definition: ToolDefinition) -> bool:
    """Whether parameters have no type yet, so that accepted calls teach theirs."""
    if is_declared_by_code(definition):
        return False
    schema = definition.signature.parameters
    parts = definition.signature.properties.values()
    return any(allowed_types(one, root=schema) == ANY_TYPE for one in parts)
