"""Rows of episodes put together to attempts, and which attempts count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agentkit.episodes import Fault
from agentkit.evaluation.results.rows import EpisodeRow


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRow:
    """One try at a task.

    Attributes:
        rows: Its episodes in order.
    """

    rows: tuple[EpisodeRow, ...]

    @property
    def task(self) -> str:
        """Id of the task."""
        return self.rows[0].place.task

    @property
    def category(self) -> str:
        """Category of the task."""
        return self.rows[0].place.category

    @property
    def is_finished(self) -> bool:
        """Whether it went to its end."""
        return any(row.ends for row in self.rows)

    @property
    def is_whole(self) -> bool:
        """Whether everything the user says was said; a conversation may break off before."""
        return len({row.place.user_turn for row in self.rows}) >= self.rows[-1].user_turns

    @property
    def is_judged(self) -> bool:
        """Whether it is known to have passed or not.

        That takes a verdict about one of its episodes; one that broke off before the part that is
        judged has not passed, so it is known as well.
        """
        return not self.is_whole or any(row.passed is not None for row in self.rows)

    @property
    def fault(self) -> Fault | None:
        """Why the verdicts say nothing about the agent, if they do not."""
        return next((row.fault for row in self.rows if row.fault is not None), None)

    @property
    def passed(self) -> bool:
        """Whether everything the user says was answered, and every judged answer passed."""
        is_right = self.is_judged and all(row.passed is not False for row in self.rows)
        return self.is_whole and is_right

    @property
    def score(self) -> float:
        """Mean score of its judged episodes."""
        return mean([row.score for row in self.rows if row.passed is not None])

    @property
    def metrics(self) -> Mapping[str, float]:
        """Mean of each metric over the episodes that have it."""
        values: dict[str, list[float]] = {}
        for row in self.rows:
            for name, value in row.metrics:
                values.setdefault(name, []).append(value)
        return {name: mean(each) for name, each in values.items()}

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return sum(row.usage.total_tokens for row in self.rows)

    @property
    def seconds(self) -> float:
        """Wall time of its runs."""
        return math.fsum(row.seconds for row in self.rows)

    @property
    def has_error(self) -> bool:
        """Whether the model failed in it."""
        return any(row.stop_reason == "error" for row in self.rows)


@dataclass(kw_only=True, slots=True)
class SortedAttempts:
    """The attempts of a run, by what becomes of them; each list by task and attempt.

    Attributes:
        counted: Finished, judged, without a fault.
        faulty: Finished, with a fault.
        unjudged: Finished, without a verdict.
        unfinished: Begun, never finished, and not finished by another try either.
        repeated: How many finished tries repeat another one.
    """

    counted: list[AttemptRow] = field(default_factory=list)
    faulty: list[AttemptRow] = field(default_factory=list)
    unjudged: list[AttemptRow] = field(default_factory=list)
    unfinished: list[AttemptRow] = field(default_factory=list)
    repeated: int = 0


def sort_attempts(rows: Iterable[EpisodeRow]) -> SortedAttempts:
    """Put rows together to attempts.

    Tries at the same attempt after an interruption differ in their session. The first one that is
    finished counts; an attempt that only has unfinished tries is one unfinished attempt.

    Args:
        rows: Rows of one run, in any order.
    """
    attempts = SortedAttempts()
    for tries in _tries(rows):
        finished = [one for one in tries if one.is_finished]
        attempts.repeated += max(0, len(finished) - 1)
        if not finished:
            attempts.unfinished.append(tries[0])
        elif finished[0].fault is not None:
            attempts.faulty.append(finished[0])
        elif finished[0].is_judged:
            attempts.counted.append(finished[0])
        else:
            attempts.unjudged.append(finished[0])
    return attempts


def _tries(rows: Iterable[EpisodeRow]) -> Iterator[list[AttemptRow]]:
    """For each attempt its tries, ordered by the ids of their first episodes."""
    sessions: dict[tuple[str, int], dict[str, list[EpisodeRow]]] = {}
    for row in rows:
        key = (row.place.task, row.place.attempt)
        sessions.setdefault(key, {}).setdefault(row.place.session, []).append(row)
    for key in sorted(sessions):
        tries = [
            AttemptRow(rows=tuple(sorted(own, key=_in_attempt))) for own in sessions[key].values()
        ]
        yield sorted(tries, key=lambda one: one.rows[0].place.episode_id)


def _in_attempt(row: EpisodeRow) -> tuple[int, str]:
    return row.place.user_turn, row.place.episode_id


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, the same in any order; 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0
