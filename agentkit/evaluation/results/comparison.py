"""``compare``: two runs side by side, on the tasks that both answered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

from agentkit.errors import UsageError
from agentkit.evaluation.results.report import (
    FEWEST_DRAWN,
    RESAMPLES,
    EvaluationReport,
    TaskResult,
    mean,
)
from agentkit.evaluation.results.texts import shown_value
from agentkit.messages import JsonObject
from agentkit.metrics.statistics import Interval, PairedOutcome, compare_paired
from agentkit.tools.error_messages import plural

_HARMLESS = frozenset({"seed", "sample", "categories", "attempts"})
"""Settings that say which tasks are asked and how often. The tasks of both runs are compared,
so that a difference in these spoils nothing."""

_FOLLOWS = {"max_refinements": "refine"}
"""Settings that only stand there because of another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupComparison:
    """Two runs on the tasks of one category that both answered, or on all of them.

    Attributes:
        name: The category; empty for all.
        tasks: How many tasks both have.
        a: Share of attempts that passed in the first run; each task has the same weight.
        b: The same of the second run.
        difference: ``b - a`` with its 95 % interval, see ``sure_difference``.
        gained: Tasks that passed more often in the second run.
        lost: Tasks that passed less often.
        p_value: Two-sided mid-p of McNemar's test on the gained and lost tasks. Where tasks were
            tried several times it is the sign test on their shares, which is the same test.
        p_adjusted: For categories, ``p_value`` adjusted for their number by Holm's method; for all
            tasks the same as ``p_value``.
        tokens_ratio: Tokens of the second run for each of the first; None when that used none.
    """

    name: str
    tasks: int
    a: float
    b: float
    difference: Interval
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    p_value: float
    p_adjusted: float
    tokens_ratio: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        a: Name of the first run.
        b: Name of the second run.
        benchmark: The benchmark of both.
        total: All tasks that both answered.
        categories: The same by category, in alphabetical order.
        only_a: Ids of tasks that only the first run answered.
        only_b: Ids of tasks that only the second run answered.
        differences: Settings that are not the same, by name: the value in the first run and in
            the second, as JSON text, empty where it is not set.
        warnings: Why the difference may not be what it seems, in sentences.
    """

    a: str
    b: str
    benchmark: str
    total: GroupComparison
    categories: tuple[GroupComparison, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    differences: Mapping[str, tuple[str, str]]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object."""
        return asdict(self)


def compare(a: EvaluationReport, b: EvaluationReport) -> Comparison:
    """Two runs side by side, on the tasks that both answered.

    Args:
        a: The first run, the one to compare with.
        b: The second run.

    Raises:
        UsageError: They are of different benchmarks, or have no task in common.
    """
    if a.benchmark != b.benchmark:
        raise UsageError(
            f"run {a.run!r} is of {a.benchmark!r} and run {b.run!r} of {b.benchmark!r}; tasks of "
            "different benchmarks, or of different releases of one, cannot be paired"
        )
    results_a, results_b = _by_task(a), _by_task(b)
    pairs = [(one, results_b[task]) for task, one in results_a.items() if task in results_b]
    if not pairs:
        raise UsageError(
            f"runs {a.run!r} and {b.run!r} have no task in common that both finished "
            f"({len(results_a):,} and {len(results_b):,} tasks); ask both the same sample"
        )
    differences = _differences(a.settings, b.settings)
    only_a = tuple(sorted(results_a.keys() - results_b.keys()))
    only_b = tuple(sorted(results_b.keys() - results_a.keys()))
    return Comparison(
        a=a.run,
        b=b.run,
        benchmark=a.benchmark,
        total=_group("", pairs),
        categories=_categories(pairs),
        only_a=only_a,
        only_b=only_b,
        differences=differences,
        warnings=tuple(_warnings(a, b, differences, len(only_a) + len(only_b), len(pairs))),
    )


_Pair = tuple[TaskResult, TaskResult]


def _by_task(report: EvaluationReport) -> Mapping[str, TaskResult]:
    return {result.task: result for result in report.results}


def _categories(pairs: Iterable[_Pair]) -> tuple[GroupComparison, ...]:
    own: dict[str, list[_Pair]] = {}
    for pair in pairs:
        own.setdefault(pair[0].category, []).append(pair)
    groups = [_group(name, own[name]) for name in sorted(own)]
    adjusted = holm([group.p_value for group in groups])
    return tuple(replace(group, p_adjusted=p) for group, p in zip(groups, adjusted, strict=True))


def _group(name: str, pairs: Sequence[_Pair]) -> GroupComparison:
    gained = tuple(sorted(one.task for one, other in pairs if _better(other, one)))
    lost = tuple(sorted(one.task for one, other in pairs if _better(one, other)))
    shares_a, shares_b = ([_share(pair[at]) for pair in pairs] for at in (0, 1))
    paired = compare_paired(
        (
            PairedOutcome(task=one.task, first=_share(one), second=_share(other))
            for one, other in pairs
        ),
        resamples=RESAMPLES,
    )
    return GroupComparison(
        name=name,
        tasks=len(pairs),
        a=mean(shares_a),
        b=mean(shares_b),
        difference=sure_difference(paired.difference, len(pairs), len(gained), len(lost)),
        gained=gained,
        lost=lost,
        p_value=paired.p_value,
        p_adjusted=paired.p_value,
        tokens_ratio=_ratio([(one.tokens, other.tokens) for one, other in pairs]),
    )


def _share(result: TaskResult) -> float:
    return result.passed / result.attempts


def _better(one: TaskResult, other: TaskResult) -> bool:
    """Whether a greater share of attempts passed."""
    return _share(one) > _share(other)


def _ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    before = math.fsum(a for a, _ in pairs)
    return math.fsum(b for _, b in pairs) / before if before else None


def sure_difference(drawn: Interval, tasks: int, gained: int, lost: int) -> Interval:
    """The difference of two runs with an interval that is not a point.

    That of a paired bootstrap, except where it cannot know: with few tasks, and where no resample
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


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979): none of them rises in order of size.

    The chance that any of the categories that do not differ is called different stays below the
    level that the adjusted values are compared with.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = highest
    return adjusted


def _differences(a: JsonObject, b: JsonObject) -> dict[str, tuple[str, str]]:
    return {
        name: (_value(a, name), _value(b, name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    }


def _value(settings: JsonObject, name: str) -> str:
    return shown_value(settings[name], 120) if name in settings else ""


def _warnings(
    a: EvaluationReport,
    b: EvaluationReport,
    differences: Iterable[str],
    unpaired: int,
    paired: int,
) -> Iterator[str]:
    changed = set(differences) - _HARMLESS
    changed -= {name for name, cause in _FOLLOWS.items() if cause in changed}
    if len(changed) > 1:
        yield (
            f"the runs differ in {len(changed)} settings ({', '.join(sorted(changed))}), so the "
            "difference cannot be laid to one of them"
        )
    if not changed:
        yield (
            "the runs have the same settings: the difference is what repetition alone gives"
            if a.run != b.run
            else "this is one run, compared with itself"
        )
    if unpaired:
        yield (
            f"compared: {plural(paired, 'task')} of both runs; left out, because only one run "
            f"finished it: {plural(unpaired, 'task')}"
        )
    for report in (a, b):
        if report.mixed:
            yield f"run {report.run!r} was not asked under one setting: {', '.join(report.mixed)}"
        if report.is_short:
            yield (
                f"run {report.run!r} is not complete: {report.total.finished:,} of "
                f"{report.total.planned:,} attempts"
            )
