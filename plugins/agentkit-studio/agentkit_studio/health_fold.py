"""What is worked out in a thread, so that no page waits for it.

``HealthFold`` counts the episodes by library version, day, tool and arm of a canary, the newest
first, and goes on from where it was when somebody looks again. ``Examination`` keeps what the
doctor finds in the newest library.
"""

from __future__ import annotations

import logging
import random
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import median
from typing import Any

from agentkit.diagnosis import diagnose
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import Episode, Verdict, error_line
from agentkit.episodes.labels import (
    ARM,
    EXPERIMENT,
    INSTRUCTIONS,
    VIEW_OF,
    is_extra_record,
    is_imported,
    is_late_verdict,
)
from agentkit.errors import StoreError, StoreLookupError
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.evaluation.doctor.catalogue import KINDS, SEVERITIES, Finding, Kind
from agentkit.evolution.compare import canary_scores
from agentkit.evolution.gates import ArmScore
from agentkit.evolution.worth import MOST_TRAFFIC, Traffic
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, EpisodeStore, Store
from agentkit.metrics.statistics import wilson_interval
from agentkit.tools.definition import ToolDefinition, is_instructions

_LOG = logging.getLogger(__name__)

_SAMPLE = 500
"""Run times that are kept of each group, drawn evenly, for its median."""

_UNINTERRUPTED, _LONGEST_PAUSE, _LONGEST_WAIT = 300, 1.0, 2.0
"""Episodes that are counted at once for a page that waits for them, how many seconds other pages
go first, and how many one waits for the newest."""

_MOST_CHANGED = 200
"""Tools that are put back to make an earlier library out of the newest one."""

_MOST_REMEMBERED = 50_000
"""Episodes whose verdict can still come later."""

_MOST_TRIALS, _MOST_CANARIES = 50_000, 4
"""Judged records of one canary that are kept for the picture of its evidence, and canaries."""

MANY_TOOLS = 1_000
"""From so many tools on, pairs that are alike or confused are not looked for here: that takes a
search for each tool, and the memory of an index."""

_FEW_TOOLS = 100
"""Tools whose findings a page waits for, and of many those that are examined at once."""

MOST_FINDINGS = 50
"""Findings of a kind that are kept."""

_NAMING = {"same_name", "alike_names", "reserved_name"}
_SEARCHING = {"not_found", "confused", "duplicate", "near_duplicate", "siblings"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """How an episode was judged.

    Attributes:
        version: Its library version.
        day: When it began.
        passed: The verdict; None for none.
        by: Id of the record that holds a later verdict.
        label: What went wrong; empty for nothing.
    """

    version: int
    day: str
    passed: bool | None = None
    by: str = ""
    label: str = ""


@dataclass(kw_only=True)
class Group:
    """The numbers of the episodes of one version, day or arm.

    Attributes:
        runs: Episodes.
        judged: Those with a verdict.
        passed: Those of them that passed.
        calls: Calls.
        failed_calls: Those of them that failed.
        searches: Searches of models for tools that they were not offered.
        missed: Runs in which the model searched, or called a tool that it had not been offered.
        tokens: Tokens, read and written.
        cost_usd: Price, as far as it is known.
        failures: Why calls failed: how often each kind of failure came.
        labels: What went wrong with runs: how often each label of the diagnosis came.
        seconds: Run times, an even sample.
    """

    runs: int = 0
    judged: int = 0
    passed: int = 0
    calls: int = 0
    failed_calls: int = 0
    searches: int = 0
    missed: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def add(self, one: Episode, chance: random.Random) -> None:
        """Count an episode."""
        self.runs += 1
        self.tokens += one.usage.total_tokens
        self.cost_usd += one.usage.cost_usd or 0.0
        for result in one.results:
            self.calls += 1
            if result.status == "failed":
                self.failed_calls += 1
                self.failures[result.failure.kind if result.failure else "failed"] += 1
        searches = sum(len(turn.searches) for turn in one.turns)
        strange = any(one.failure and one.failure.kind == "unknown_tool" for one in one.results)
        self.searches += searches
        self.missed += bool(searches or strange)
        if one.error:
            self.failures["run failed"] += 1
        if len(self.seconds) < _SAMPLE:
            self.seconds.append(one.seconds)
        elif (place := chance.randrange(self.runs)) < _SAMPLE:
            self.seconds[place] = one.seconds

    def judge(self, known: Known, by: int = 1) -> None:
        """Count a verdict and a label, or with ``by`` of -1 take them out again."""
        if known.passed is not None:
            self.judged += by
            self.passed += by if known.passed else 0
        if known.label:
            self.labels[known.label] += by

    def to_json(self) -> dict[str, Any]:
        """The numbers, with rates and the interval of the accuracy; None for what is unknown."""
        found = wilson_interval(self.passed, self.judged) if self.judged else None
        runs, times = self.runs or 1, sorted(self.seconds)
        return {
            "runs": self.runs,
            "judged": self.judged,
            "accuracy": None if found is None else round(found.value, 4),
            "accuracy_low": None if found is None else round(found.low, 4),
            "accuracy_high": None if found is None else round(found.high, 4),
            "calls": self.calls,
            "failed_calls": self.failed_calls,
            "failed_share": round(self.failed_calls / self.calls, 4) if self.calls else None,
            "searches": self.searches,
            "missed_share": round(self.missed / runs, 4),
            "tokens_a_run": round(self.tokens / runs, 1),
            "cost_usd": round(self.cost_usd, 6),
            "cost_a_run": round(self.cost_usd / runs, 6),
            "median_seconds": round(median(times), 3) if times else None,
            "slow_seconds": round(times[int(0.95 * (len(times) - 1))], 3) if times else None,
            "failures": dict(self.failures.most_common(12)),
            "labels": dict((+self.labels).most_common()),
        }


def let_others_first(is_busy: Callable[[], bool]) -> None:
    """Pause between two pieces of long work while somebody waits for a page."""
    until = time.monotonic() + _LONGEST_PAUSE
    while is_busy() and time.monotonic() < until:
        time.sleep(0.005)


class HealthFold:
    """The numbers of a store, kept up to date.

    Args:
        store: Where the episodes are.
        is_busy: Whether somebody waits for a page; a long count lets them go first.
        evaluations: Where answers of ``agentkit eval`` are; the worth of changes is read there too.
        changed: Names the tools with promoted changes.

    Attributes:
        traffic: What the worth of promoted changes is read from.
    """

    def __init__(
        self,
        store: Store,
        is_busy: Callable[[], bool] = lambda: False,
        *,
        evaluations: EpisodeStore | None = None,
        changed: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._store, self._is_busy = store, is_busy
        self._evaluations, self._changed = evaluations, changed
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._newest_counted = threading.Event()
        self._is_awaited = False
        self._chance = random.Random(0)  # noqa: S311 - which run times are kept
        self._newest = ""
        self._late: dict[str, tuple[Verdict, str]] = {}
        self._known: dict[str, Known] = {}
        self.library = lru_cache(maxsize=4)(self._load)
        self.counted = 0
        self.versions: dict[int, Group] = defaultdict(Group)
        self.days: dict[str, Group] = defaultdict(Group)
        self.arms: dict[tuple[str, str], Group] = defaultdict(Group)
        self.traffic = Traffic()
        self._newest_answer = ""
        self._trials: dict[str, list[tuple[str, str, ArmScore]]] = {}

    @property
    def is_working(self) -> bool:
        """Whether episodes are still being counted."""
        return self._thread is not None and self._thread.is_alive()

    def update(self, wait: float | None = None) -> None:
        """Count what is new, in a thread.

        Args:
            wait: Seconds to wait for all of it; None waits for the newest alone, which is all but
                at the first time.
        """
        if not self.is_working:
            self._newest_counted.clear()
            self._is_awaited = False
            self._thread = threading.Thread(target=self._work, name="studio-health", daemon=True)
            self._thread.start()
        if wait is None:
            self._is_awaited = True
            self._newest_counted.wait(_LONGEST_WAIT)
        elif self._thread is not None:
            self._thread.join(wait)

    def verdict_of(self, episode: Episode) -> bool | None:
        """Whether an episode was found right, also by a verdict that came later; None: unjudged."""
        known = self._known.get(episode.episode_id)
        if known is not None:
            return known.passed
        verdict = episode.verdict
        return None if verdict is None or verdict.fault is not None else verdict.passed

    def label_of(self, episode: Episode) -> str:
        """What went wrong with a run, also by a later verdict; empty for nothing."""
        known = self._known.get(episode.episode_id)
        return self._label(episode, episode.verdict) if known is None else known.label

    def judged_by(self, episode: Episode) -> str | None:
        """Id of the record that holds the latest verdict beside an episode.

        Empty for none, None where the episode was not counted, or what came since was not.
        """
        known = self._known.get(episode.episode_id)
        return None if known is None or self.is_working else known.by

    def scores_of(self, experiment: str) -> Sequence[ArmScore]:
        """How the sessions of a canary went, as its gate takes them: the first record of each."""
        with self._lock:
            found = sorted(self._trials.get(experiment, ()), key=lambda one: one[:2])
        first: dict[str, ArmScore] = {}
        for _, _, score in found:
            first.setdefault(score.session, score)
        return list(first.values())

    def _try(self, one: Episode) -> None:
        """Keep how a record of a canary went; of many canaries the oldest go."""
        experiment = one.metadata.get(EXPERIMENT, "")
        kept = self._trials.get(experiment)
        if kept is None and len(self._trials) >= _MOST_CANARIES:
            oldest = min(self._trials, key=lambda name: max(pair[1] for pair in self._trials[name]))
            if max(pair[1] for pair in self._trials[oldest]) > one.episode_id:
                return
            del self._trials[oldest]
        if kept is not None and len(kept) >= _MOST_TRIALS:
            return
        for score in canary_scores([one], experiment):
            row = (one.started_at, one.episode_id, score)
            self._trials.setdefault(experiment, []).append(row)

    def _load(self, version: int) -> Library:
        """The library of a version, for diagnoses; an empty one where it is gone.

        It shares the tools that have not changed since with the newest one.
        """
        try:
            newest = self._store.load()
            if not 0 < version < newest.version:
                return newest if version in {0, newest.version} else self._store.load(version)
            changed: set[str] = set()
            for applied in self._store.changes(after=version):
                change = applied.change
                changed |= {*change.removals, *(one.name for one in change.upserts)}
                if len(changed) > _MOST_CHANGED:
                    return self._store.load(version)
            earlier = [
                next(
                    (one for one in reversed(self._store.history(name)) if one.version <= version),
                    None,
                )
                for name in sorted(changed)
            ]
            before = [one.definition for one in earlier if one is not None and one.definition]
            return newest.without(changed).with_tools(before).at_version(version)
        except StoreLookupError:
            return Library()

    def _work(self) -> None:
        newest, gone_on = "", bool(self._newest)
        try:
            added = set(self._changed()) - self.traffic.tools
            self.traffic.tools |= added
            for one in self._in_turns(self._store.select()):
                newest = newest or one.episode_id
                if one.episode_id <= self._newest:
                    break
                label = self._label(one, self._late.get(one.episode_id, (one.verdict, ""))[0])
                with self._lock:
                    self._take(one, label)
            self._newest = newest or self._newest
            self._look_back(added if gone_on else ())
        except StoreError as error:
            _LOG.warning("the episodes are not counted to the end: %s", error_line(error))
        finally:
            self._newest_counted.set()

    def _look_back(self, added: Collection[str]) -> None:
        """Read what the worth of changes takes beside the newest episodes of the store.

        Args:
            added: Tools that were not looked at when their episodes were counted.
        """
        for tool in added:
            matching = EpisodeFilter(tool_name=tool, limit=MOST_TRAFFIC)
            if is_instructions(tool):
                matching = EpisodeFilter(labels={INSTRUCTIONS: tool}, limit=MOST_TRAFFIC)
            for one in self._in_turns(self._store.select(matching)):
                known = self._known.get(one.episode_id)
                record = self._store.get(known.by) if known is not None and known.by else None
                verdict = one.verdict if record is None else record.verdict
                self.traffic.add(replace(one, verdict=verdict))
        if self._evaluations is None:
            return
        newest, seen = "", "" if added else self._newest_answer
        for one in self._in_turns(self._evaluations.select()):
            newest = newest or one.episode_id
            if one.episode_id <= seen:
                break
            self.traffic.add(one)
        self._newest_answer = newest or self._newest_answer

    def _in_turns(self, episodes: Iterable[Episode]) -> Iterator[Episode]:
        """The episodes, with pauses in which pages that somebody waits for go first."""
        for number, one in enumerate(episodes):
            if number >= _UNINTERRUPTED:
                self._newest_counted.set()
            let_others_first(self._is_in_the_way)
            yield one

    def _is_in_the_way(self) -> bool:
        """Whether somebody waits for a page, and not for the newest episodes."""
        is_awaited = self._is_awaited and not self._newest_counted.is_set()
        return self._is_busy() and not is_awaited

    def _label(self, one: Episode, verdict: Verdict | None) -> str:
        """What went wrong with a run, as its diagnosis says; empty for nothing."""
        if not one.turns or is_extra_record(one.metadata) or is_imported(one.metadata):
            return ""
        is_wrong = verdict is not None and verdict.fault is None and not verdict.passed
        if not is_wrong and not any(result.status == "failed" for result in one.results):
            return ""
        found = one.diagnosis if verdict is one.verdict else None
        label = (found or diagnose(one, self.library(one.library_version), verdict)).label
        return "" if label in NOT_FAILURES else label

    def _take(self, one: Episode, label: str) -> None:
        if is_imported(one.metadata):
            return
        if one.metadata.get(EXPERIMENT):
            self._try(one)
        if is_late_verdict(one):
            if one.verdict is not None:
                self._later(one.metadata[VIEW_OF], one.verdict, one.episode_id)
            return
        if is_extra_record(one.metadata):
            return
        self.counted += 1
        verdict, by = self._late.pop(one.episode_id, (one.verdict, ""))
        passed = None if verdict is None or verdict.fault is not None else verdict.passed
        known = Known(
            version=one.library_version,
            day=sys.intern(one.started_at[:10]),
            passed=passed,
            by=by,
            label=label,
        )
        for group in self._groups(known, one.metadata):
            group.add(one, self._chance)
            group.judge(known)
        self.traffic.add(one if verdict is one.verdict else replace(one, verdict=verdict))
        self._known[one.episode_id] = known
        while len(self._known) > _MOST_REMEMBERED:
            del self._known[next(iter(self._known))]

    def _groups(self, known: Known, labels: Mapping[str, str]) -> Iterator[Group]:
        yield self.versions[known.version]
        yield self.days[known.day]
        if labels.get(EXPERIMENT):
            yield self.arms[labels[EXPERIMENT], labels.get(ARM, "control")]

    def _later(self, episode_id: str, verdict: Verdict, record_id: str) -> None:
        """A verdict that was given beside its episode; of several the newest record counts."""
        if verdict.fault is not None:
            return
        before = self._known.get(episode_id)
        if before is None:  # records come newest first, so before their episode
            self._late.setdefault(episode_id, (verdict, record_id))
            return
        if record_id < before.by:
            return
        label = ""
        if (one := self._store.get(episode_id)) is not None:
            label = "" if verdict.passed else self._label(one, verdict)
            self.traffic.add(replace(one, verdict=verdict))
        known = replace(before, passed=verdict.passed, by=record_id, label=label)
        for group in self._groups(before, {}):
            group.judge(before, by=-1)
            group.judge(known)
        self._known[episode_id] = known

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
        with self._lock:
            return {
                "counted": self.counted,
                "is_working": self.is_working,
                "versions": [
                    {"version": v, **self.versions[v].to_json()} for v in sorted(self.versions)
                ],
                "days": [{"day": day, **self.days[day].to_json()} for day in sorted(self.days)],
                "arms": [
                    {"experiment": experiment, "arm": arm, **group.to_json()}
                    for (experiment, arm), group in sorted(self.arms.items())
                ],
            }


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """What the doctor found in a library.

    Attributes:
        tools: How many there are.
        tokens: Prompt tokens of all of them.
        kinds: Each kind of finding, the worst first, how many there are, and the first of them.
    """

    tools: int
    tokens: int
    kinds: tuple[tuple[Kind, int, tuple[Finding, ...]], ...]


class Examination:
    """The doctor's findings in a library, made in a thread and kept for its version.

    Args:
        is_busy: Whether somebody waits for a page.
    """

    def __init__(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        self._is_busy = is_busy
        self._thread: threading.Thread | None = None
        self._found: tuple[int, Examined] | None = None

    def of(self, library: Library) -> Examined | None:
        """The findings; None while they are being made."""
        if self._thread is None and (self._found is None or self._found[0] != library.version):
            self._thread = threading.Thread(
                target=self._examine, args=(library,), name="studio-doctor", daemon=True
            )
            self._thread.start()
        if (thread := self._thread) is not None:
            thread.join(0.1 if len(library) > _FEW_TOOLS else _LONGEST_WAIT)
        known = self._found
        return known[1] if known is not None and known[0] == library.version else None

    def _examine(self, library: Library) -> None:
        try:
            tokens, kinds = 0, dict[str, tuple[int, tuple[Finding, ...]]]()
            for definitions, codes, is_whole in _pieces(library):
                let_others_first(self._is_busy)
                # Copies: what the checks keep beside a definition goes with them.
                checkup = examine(Catalogue.of(map(copy, definitions)), codes=codes)
                tokens += 0 if is_whole else checkup.tokens
                for kind, found in checkup.grouped():
                    count, first = kinds.get(kind.code, (0, ()))
                    heaviest = sorted((*first, *found), key=lambda one: (-one.tokens, one.tools))
                    kinds[kind.code] = count + len(found), tuple(heaviest[:MOST_FINDINGS])
            worst = sorted(KINDS, key=lambda code: SEVERITIES.index(KINDS[code].severity))
            ordered = tuple((KINDS[code], *kinds[code]) for code in worst if code in kinds)
            found_in = Examined(tools=len(library), tokens=tokens, kinds=ordered)
            self._found = library.version, found_in
        finally:
            self._thread = None


def _pieces(library: Library) -> Iterator[tuple[Sequence[ToolDefinition], list[str], bool]]:
    """Tools to examine at once, what to look for, and whether they come a second time."""
    definitions = library.definitions
    if len(definitions) <= MANY_TOOLS:
        yield definitions, [*KINDS], False
        return
    alone = [one for one in KINDS if one not in _SEARCHING | _NAMING]
    for at in range(0, len(definitions), _FEW_TOOLS):
        yield definitions[at : at + _FEW_TOOLS], alone, False
    names = [ToolDefinition(name=one.name, origin=one.origin) for one in definitions]
    yield names, sorted(_NAMING), True
