"""``HealthFold``: the numbers of the episodes, by library version, by day and by arm of a canary.

They are counted in a thread, the newest episode first, and go on from where they were when somebody
looks again, so that no page waits for a hundred thousand episodes.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from agentkit.episodes import Episode, Verdict
from agentkit.episodes.labels import (
    ARM,
    EXPERIMENT,
    VIEW_OF,
    is_extra_record,
    is_imported,
    is_late_verdict,
)
from agentkit.library.store import EpisodeStore
from agentkit.metrics.statistics import wilson_interval

_SAMPLE = 500
"""Run times that are kept of each group, drawn evenly, for its median."""

_MOST_REMEMBERED = 50_000
"""Episodes whose verdict can still come later."""


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
        tokens: Tokens, read and written.
        cost_usd: Price, as far as it is known.
        failures: How often each kind of failure came.
        seconds: Run times, an even sample.
    """

    runs: int = 0
    judged: int = 0
    passed: int = 0
    calls: int = 0
    failed_calls: int = 0
    searches: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
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
        self.searches += sum(len(turn.searches) for turn in one.turns)
        if one.error:
            self.failures["run failed"] += 1
        if len(self.seconds) < _SAMPLE:
            self.seconds.append(one.seconds)
        elif (place := chance.randrange(self.runs)) < _SAMPLE:
            self.seconds[place] = one.seconds

    def judge(self, *, passed: bool, by: int = 1) -> None:
        """Count a verdict, or with ``by`` of -1 take it out again."""
        self.judged += by
        self.passed += by if passed else 0

    def to_json(self) -> dict[str, Any]:
        """The numbers, with rates and the interval of the accuracy; None for what is unknown."""
        found = wilson_interval(self.passed, self.judged) if self.judged else None
        runs = self.runs or 1
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
            "tokens_a_run": round(self.tokens / runs, 1),
            "cost_usd": round(self.cost_usd, 6),
            "median_seconds": round(median(self.seconds), 3) if self.seconds else None,
            "failures": dict(self.failures.most_common(12)),
        }


class HealthFold:
    """The numbers of a store, kept up to date.

    Args:
        store: Where the episodes are.
    """

    def __init__(self, store: EpisodeStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._chance = random.Random(0)  # noqa: S311 - which run times are kept
        self._newest = ""
        self._late: dict[str, tuple[bool, str]] = {}
        self._known: dict[str, tuple[int, str, bool | None, str]] = {}
        self.counted = 0
        self.versions: dict[int, Group] = defaultdict(Group)
        self.days: dict[str, Group] = defaultdict(Group)
        self.arms: dict[tuple[str, str], Group] = defaultdict(Group)

    @property
    def is_working(self) -> bool:
        """Whether episodes are still being counted."""
        return self._thread is not None and self._thread.is_alive()

    def update(self, wait: float = 0.1) -> None:
        """Count what is new, in a thread; wait a moment, for that is often enough."""
        if not self.is_working:
            self._thread = threading.Thread(target=self._work, name="studio-health", daemon=True)
            self._thread.start()
        assert self._thread is not None
        self._thread.join(wait)

    def _work(self) -> None:
        newest = ""
        for one in self._store.select():
            newest = newest or one.episode_id
            if one.episode_id <= self._newest:
                break
            with self._lock:
                self._take(one)
        self._newest = newest or self._newest

    def _take(self, one: Episode) -> None:
        if is_imported(one.metadata):
            return
        if is_late_verdict(one):
            if one.verdict is not None:
                self._later(one.metadata[VIEW_OF], one.verdict, one.episode_id)
            return
        if is_extra_record(one.metadata):
            return
        self.counted += 1
        verdict, by = self._late.pop(one.episode_id, (None, ""))
        if verdict is None and one.verdict is not None and one.verdict.fault is None:
            verdict = one.verdict.passed
        day = one.started_at[:10]
        for group in self._groups(one, day):
            group.add(one, self._chance)
            if verdict is not None:
                group.judge(passed=verdict)
        self._known[one.episode_id] = one.library_version, day, verdict, by
        while len(self._known) > _MOST_REMEMBERED:
            del self._known[next(iter(self._known))]

    def _groups(self, one: Episode, day: str) -> Iterator[Group]:
        yield self.versions[one.library_version]
        yield self.days[day]
        if one.metadata.get(EXPERIMENT):
            yield self.arms[one.metadata[EXPERIMENT], one.metadata.get(ARM, "control")]

    def _later(self, episode_id: str, verdict: Verdict, record_id: str) -> None:
        """A verdict that was given beside its episode; of several the newest record counts."""
        if verdict.fault is not None:
            return
        known = self._known.get(episode_id)
        if known is None:  # records come newest first, so before their episode
            self._late.setdefault(episode_id, (verdict.passed, record_id))
            return
        version, day, before, by = known
        if record_id < by:
            return
        for group in (self.versions[version], self.days[day]):
            if before is not None:
                group.judge(passed=before, by=-1)
            group.judge(passed=verdict.passed)
        self._known[episode_id] = version, day, verdict.passed, record_id

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
