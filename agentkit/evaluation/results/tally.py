"""Attempts counted: one ``GroupReport`` for a category or for all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from agentkit.evaluation.results.attempts import AttemptRow, SortedAttempts, mean
from agentkit.evaluation.results.estimating import accuracy
from agentkit.evaluation.results.records import (
    GroupReport,
    MetricMean,
    RefineSummary,
    TaskResult,
    TimeSummary,
)
from agentkit.evaluation.results.rows import EpisodeRow, number
from agentkit.messages import Usage

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
