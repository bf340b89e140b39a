"""Rows counted: groups, estimates, distributions, blamed tools, incidents."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TypeVar

from agentkit.diagnosis.labels import PRECEDENCE
from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.records import (
    Distribution,
    GroupReport,
    Incident,
    MetricMean,
    ParameterFaults,
    PassAtK,
    RecoveryCount,
    RefineSummary,
    TaskResult,
    TimeSummary,
    ToolConfusion,
    ToolFaults,
)
from agentkit.evaluation.results.rows import (
    AttemptRow,
    EpisodeRow,
    Example,
    ExampleShelf,
    SortedAttempts,
    mean,
    number,
)
from agentkit.messages import Usage
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval, wilson_interval
from agentkit.metrics.passing import pass_at_k, pass_hat_k

RESAMPLES = 2_000
"""Draws of a bootstrap: the ends of an interval are good to about a twentieth of its width."""

FEWEST_DRAWN = 20
"""Tasks below which no bootstrap is drawn: from a few it takes what it saw for all there is."""

_LISTED_K = 8

Outcome = tuple[int, int]
"""Attempts at one task, and how many of them passed."""


def accuracy(outcomes: Sequence[Outcome]) -> Interval | None:
    """Mean share of attempts that passed, each task of the same weight; None without tasks.

    Where the attempts at each task agree, as with one attempt each, repetition tells nothing new
    and the interval is Wilson's for as many trials as there are tasks. So it is with few tasks, of
    which a bootstrap knows too little; it is then wide rather than narrow, since shares vary less
    than single trials do. Otherwise it is that of a bootstrap over tasks, because attempts at one
    task are not independent, and at least as wide as if they were.

    Args:
        outcomes: The outcome of each task, in any order.
    """
    if not outcomes:
        return None
    shares = [passed / attempts for attempts, passed in sorted(outcomes)]
    agree = all(passed in {0, attempts} for attempts, passed in outcomes)
    if agree or len(outcomes) < FEWEST_DRAWN:
        return wilson_interval(math.fsum(shares), len(shares))
    drawn = bootstrap_interval(
        (Observation(value=share, task=str(at)) for at, share in enumerate(shares)),
        resamples=RESAMPLES,
    )
    attempts = sum(tried for tried, _ in outcomes)
    least = wilson_interval(drawn.value * attempts, attempts)
    return replace(drawn, low=min(drawn.low, least.low), high=max(drawn.high, least.high))


def sure_difference(drawn: Interval, tasks: int, gained: int, lost: int) -> Interval:
    """The difference of two runs with an interval that is no point.

    That of a paired bootstrap, except where it can not know: with few tasks, and where no resample
    differs. It is then that of Agresti and Min (2005, Statistics in Medicine 24:729): half a pair
    is added to each of the four cells, and the interval is Wald's.

    Args:
        drawn: The difference with its bootstrap interval.
        tasks: How many tasks both runs answered.
        gained: How many of them the second run did better.
        lost: How many it did worse.
    """
    if tasks >= FEWEST_DRAWN and drawn.low < drawn.high:
        return drawn
    n, better, worse = tasks + 2, gained + 0.5, lost + 0.5
    center = (better - worse) / n
    error = math.sqrt(better + worse - (better - worse) ** 2 / n) / n
    reach = NormalDist().inv_cdf((1 + drawn.level) / 2) * error
    return replace(
        drawn,
        low=max(-1.0, min(drawn.value, center - reach)),
        high=min(1.0, max(drawn.value, center + reach)),
    )


def macro_mean(groups: Sequence[Interval]) -> Interval | None:
    """The mean of categories, each of the same weight; None without any.

    The interval combines those of the categories by MOVER, the method of variance estimates
    recovery (Zou and Donner 2008, Statistics in Medicine 27:1693, Eq. 3): with weights 1/n the
    distance to the lower end is ``sqrt(sum((value - low)**2)) / n``, to the upper end accordingly.
    The categories' tasks are taken to be drawn independently.
    """
    if not groups:
        return None
    n = len(groups)
    value = math.fsum(one.value for one in groups) / n
    below = math.sqrt(math.fsum((one.value - one.low) ** 2 for one in groups)) / n
    above = math.sqrt(math.fsum((one.high - one.value) ** 2 for one in groups)) / n
    return Interval(value=value, low=max(0.0, value - below), high=min(1.0, value + above))


def pass_table(outcomes: Sequence[Outcome]) -> tuple[PassAtK, ...]:
    """pass@k and pass^k for k = 1, 2, ...; empty where no task was tried twice.

    From more than eight attempts on, k is a power of two or the largest number of attempts.

    Args:
        outcomes: The outcome of each task.
    """
    most = max((attempts for attempts, _ in outcomes), default=0)
    if most < 2:
        return ()
    listed = [k for k in range(1, most + 1) if most <= _LISTED_K or k & (k - 1) == 0 or k == most]
    return tuple(_pass_at(k, Counter(one for one in outcomes if one[0] >= k)) for k in listed)


def _pass_at(k: int, tasks: Counter[Outcome]) -> PassAtK:
    n = tasks.total()
    any_passes = (w * pass_at_k(passed, tried, k) for (tried, passed), w in tasks.items())
    all_pass = (w * pass_hat_k(passed, tried, k) for (tried, passed), w in tasks.items())
    return PassAtK(
        k=k,
        tasks=n,
        any_passes=math.fsum(any_passes) / n,
        all_pass=math.fsum(all_pass) / n,
    )


def distribution(values: Iterable[float]) -> Distribution:
    """The distribution of finite, non-negative values, in any order."""
    ordered = sorted(values)
    if not ordered:
        return Distribution()
    return Distribution(
        count=len(ordered),
        mean=math.fsum(ordered) / len(ordered),
        minimum=ordered[0],
        median=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        maximum=ordered[-1],
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of the ``ordered`` ones do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


Name = TypeVar("Name", bound=Hashable)


def group_report(name: str, attempts: SortedAttempts, planned: int | None) -> GroupReport:
    """Count the attempts of one group.

    Args:
        name: The category; empty for all.
        attempts: Its attempts.
        planned: How many were planned; None when that is not known.
    """
    counted = attempts.counted
    rows = [row for attempt in counted for row in attempt.rows]
    outcomes = [task_outcome(own) for own in by_task(counted).values()]
    return GroupReport(
        name=name,
        planned=planned,
        tasks=len(outcomes),
        attempts=len(counted),
        passed=sum(attempt.passed for attempt in counted),
        accuracy=accuracy(outcomes),
        score=mean([attempt.score for attempt in counted]),
        metrics=_metric_means(counted),
        usage=total_usage(row.usage for row in rows),
        refine=_refine_summary(rows),
        time=_time_summary(rows),
        turns=sum(row.turns for row in rows),
        stop_reasons=counts(row.stop_reason for row in rows),
        episode_labels=counts(row.label for row in rows if row.label is not None),
        turn_labels=counts(label for row in rows for label in row.turn_labels),
        findings=counts(kind for row in rows for kind in row.found),
        errors=sum(attempt.has_error for attempt in counted),
        faults=counts(one.fault for one in attempts.faulty if one.fault is not None),
        unjudged=len(attempts.unjudged),
        unfinished=len(attempts.unfinished),
    )


def by_task(attempts: Iterable[AttemptRow]) -> Mapping[str, list[AttemptRow]]:
    """The attempts at each task, in the order of the tasks."""
    own: dict[str, list[AttemptRow]] = {}
    for attempt in attempts:
        own.setdefault(attempt.task, []).append(attempt)
    return own


def task_outcome(attempts: Sequence[AttemptRow]) -> tuple[int, int]:
    """How many attempts at one task there are, and how many of them passed."""
    return len(attempts), sum(attempt.passed for attempt in attempts)


def task_result(attempts: Sequence[AttemptRow]) -> TaskResult:
    """The attempts at one task, counted."""
    usages = [total_usage(row.usage for row in attempt.rows) for attempt in attempts]
    tried, passed = task_outcome(attempts)
    return TaskResult(
        task=attempts[0].task,
        category=attempts[0].category,
        attempts=tried,
        passed=passed,
        score=mean([attempt.score for attempt in attempts]),
        prompt_tokens=mean([usage.prompt_tokens for usage in usages]),
        completion_tokens=mean([usage.completion_tokens for usage in usages]),
        seconds=mean([attempt.seconds for attempt in attempts]),
    )


def counts(values: Iterable[Name]) -> dict[Name, int]:
    """How often each value occurs, the most frequent first, equals by name."""
    ordered = sorted(Counter(values).items(), key=lambda pair: (-pair[1], str(pair[0])))
    return dict(ordered)


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum of usages; the cost comes out the same in any order."""
    requests = prompt = cached = completion = 0
    costs = []
    for usage in usages:
        requests += usage.requests
        prompt += usage.prompt_tokens
        cached += usage.cached_tokens
        completion += usage.completion_tokens
        if usage.cost_usd is not None:
            costs.append(number(usage.cost_usd))
    return Usage(
        requests=requests,
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        cost_usd=math.fsum(costs) if costs else None,
    )


def _metric_means(attempts: Iterable[AttemptRow]) -> tuple[MetricMean, ...]:
    values: dict[str, list[float]] = {}
    for attempt in attempts:
        for name, value in attempt.metrics.items():
            values.setdefault(name, []).append(value)
    return tuple(
        MetricMean(name=name, mean=mean(each), attempts=len(each))
        for name, each in sorted(values.items())
    )


def _refine_summary(rows: Iterable[EpisodeRow]) -> RefineSummary:
    turns = [turn for row in rows for turn in row.refinements]
    return RefineSummary(
        turns=len(turns),
        iterations=mean([turn.iterations for turn in turns]),
        converged=mean([turn.converged for turn in turns]),
        usage=total_usage(turn.usage for turn in turns),
    )


def _time_summary(rows: Sequence[EpisodeRow]) -> TimeSummary:
    return TimeSummary(
        seconds=math.fsum(row.seconds for row in rows),
        model_seconds=math.fsum(row.model_seconds for row in rows),
        tool_seconds=math.fsum(row.tool_seconds for row in rows),
        overhead_seconds=math.fsum(
            max(0.0, row.seconds - row.model_seconds - row.tool_seconds) for row in rows
        ),
    )


EXAMPLES_A_LABEL = 10
EXAMPLES_A_TOOL = 2
EXAMPLES_A_PARAMETER = 1
WORST = 25
"""The worst tools and parameters, of which examples are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenExamples:
    """The tools and parameters that are blamed, and the episodes that show it.

    Attributes:
        tools: Tools, the worst first.
        parameters: Parameters, the worst first.
        examples: The episodes that these refer to and some of each label, by label and task.
    """

    tools: tuple[ToolFaults, ...]
    parameters: tuple[ParameterFaults, ...]
    examples: tuple[Example, ...]

    @classmethod
    def of(
        cls, rows: Sequence[EpisodeRow], by_label: ExampleShelf, by_tool: ExampleShelf
    ) -> ChosenExamples:
        """Choose examples for the counted episodes.

        Args:
            rows: The counted episodes.
            by_label: Examples of labels.
            by_tool: Examples of tools and of parameters.
        """
        chosen = _Choice(counted={row.place.episode_id for row in rows})
        for label in sorted({blame.label for row in rows for blame in row.blames}):
            chosen.take(by_label, (label,), EXAMPLES_A_LABEL)
        tools, parameters = list(tool_faults(rows)), list(parameter_faults(rows))
        for at, tool in enumerate(tools[:WORST]):
            ids = chosen.take(by_tool, (tool.tool,), EXAMPLES_A_TOOL)
            tools[at] = replace(tool, examples=ids)
        for at, one in enumerate(parameters[:WORST]):
            ids = chosen.take(by_tool, (one.tool, one.parameter), EXAMPLES_A_PARAMETER)
            parameters[at] = replace(one, examples=ids)
        return cls(
            tools=tuple(tools), parameters=tuple(parameters), examples=tuple(chosen.ordered())
        )


class _Choice:
    """Examples chosen so far; one of each turn of an episode."""

    def __init__(self, counted: set[str]) -> None:
        self._counted = counted
        self._taken: dict[tuple[str, int], Example] = {}

    def take(self, shelf: ExampleShelf, subject: tuple[str, ...], most: int) -> tuple[str, ...]:
        """Choose the first examples of a subject and give their episodes' ids."""
        found = [one for one in shelf.of(subject) if one.episode_id in self._counted][:most]
        for one in found:
            self._taken.setdefault((one.episode_id, one.turn), one)
        return tuple(one.episode_id for one in found)

    def ordered(self) -> list[Example]:
        """All of them, by the precedence of their labels, then by task and place."""
        return sorted(
            self._taken.values(),
            key=lambda one: (
                PRECEDENCE.index(one.label),
                one.task,
                one.attempt,
                one.user_turn,
                one.turn,
            ),
        )


def tool_faults(rows: Iterable[EpisodeRow]) -> list[ToolFaults]:
    """The blamed tools: those that spoilt most episodes first, then those that surely do so often.

    Sure is the lower end of Wilson's interval.

    Args:
        rows: Episodes.
    """
    calls: Counter[str] = Counter()
    episodes: Counter[str] = Counter()
    faulty: Counter[str] = Counter()
    labels: dict[str, list[FailureLabel]] = {}
    for row in rows:
        blamed = {blame.tool for blame in row.blames if blame.tool}
        calls.update(dict(row.called))
        episodes.update(blamed.union(tool for tool, _ in row.called))
        faulty.update(blamed)
        for blame in row.blames:
            labels.setdefault(blame.tool, []).append(blame.label)
    found = [
        ToolFaults(
            tool=tool,
            calls=calls[tool],
            episodes=episodes[tool],
            faulty=spoilt,
            labels=counts(labels[tool]),
        )
        for tool, spoilt in faulty.items()
    ]
    return sorted(found, key=lambda one: (-one.faulty, -one.share.low, one.tool))


def parameter_faults(rows: Iterable[EpisodeRow]) -> list[ParameterFaults]:
    """The blamed parameters, those blamed most often first."""
    calls: Counter[str] = Counter()
    labels: dict[tuple[str, str], list[FailureLabel]] = {}
    for row in rows:
        calls.update(dict(row.called))
        for blame in row.blames:
            if blame.parameter:
                labels.setdefault((blame.tool, blame.parameter), []).append(blame.label)
    found = [
        ParameterFaults(
            tool=tool,
            parameter=parameter,
            calls=calls[tool],
            faults=len(own),
            labels=counts(own),
        )
        for (tool, parameter), own in labels.items()
    ]
    return sorted(found, key=lambda one: (-one.faults, one.calls, one.tool, one.parameter))


def tool_confusions(rows: Iterable[EpisodeRow]) -> tuple[ToolConfusion, ...]:
    """Expected against called tools, the most frequent first."""
    pairs = counts(pair for row in rows for pair in row.confusions)
    return tuple(
        ToolConfusion(expected=expected, called=called, count=count)
        for (expected, called), count in pairs.items()
    )


def recovery_counts(rows: Iterable[EpisodeRow]) -> tuple[RecoveryCount, ...]:
    """What became of failed calls, by how they failed, the most frequent first.

    A call that failed at the end of an episode is open there and settled in the next episode of
    the same conversation; it counts once, as it was settled.

    Args:
        rows: Episodes, those of one attempt in order.
    """
    last = {
        (call.episode_id, call.turn, call.call_id): (call.kind, call.outcome)
        for row in rows
        for call in row.recoveries
    }
    return tuple(
        RecoveryCount(kind=kind, outcome=outcome, count=count)
        for (kind, outcome), count in counts(last.values()).items()
    )


MOST_INCIDENTS = 30


def error_incidents(rows: Iterable[EpisodeRow]) -> tuple[Incident, ...]:
    """Errors of the model by type, the most frequent first.

    Args:
        rows: The episodes to look at.
    """
    failed: dict[str, list[EpisodeRow]] = {}
    for row in rows:
        if row.stop_reason in {"error", "cancelled"}:
            kind = row.error.partition(":")[0] or row.stop_reason
            failed.setdefault(kind, []).append(row)
    return _ordered(
        Incident(
            what=kind,
            count=len(own),
            example=first.place.episode_id,
            task=first.place.task,
            message=first.error,
        )
        for kind, own in failed.items()
        for first in [min(own, key=lambda row: row.place)]
    )


def fault_incidents(rows: Iterable[EpisodeRow]) -> tuple[Incident, ...]:
    """Each episode whose verdict has a fault.

    Args:
        rows: The episodes to look at.
    """
    return _ordered(
        Incident(
            what=row.fault,
            count=1,
            example=row.place.episode_id,
            task=row.place.task,
            message=row.message,
        )
        for row in rows
        if row.fault is not None
    )


def _ordered(incidents: Iterable[Incident]) -> tuple[Incident, ...]:
    ordered = sorted(incidents, key=lambda one: (-one.count, one.what, one.task, one.example))
    return tuple(ordered[:MOST_INCIDENTS])
