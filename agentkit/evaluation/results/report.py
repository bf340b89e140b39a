"""``EvaluationReport``: what one run found, and how sure it is; ``compare``: two runs side by side.

Words used here: a *task* is one question; an *attempt* is one try at it; each thing that the user
says within an attempt is one *episode*; each step of the model within an episode is one *turn*.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import NormalDist
from typing import Any

from agentkit.episodes import FailureLabel, Fault
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown_value
from agentkit.messages import JsonObject, Usage
from agentkit.metrics.statistics import (
    Interval,
    Observation,
    PairedOutcome,
    bootstrap_interval,
    compare_paired,
    pass_at_k,
    pass_hat_k,
    wilson_interval,
)
from agentkit.tools.error_messages import plural

REPORT_FORMAT = 2
"""Version of the JSON form of a report."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassAtK:
    """The statistics of repeated attempts.

    Attributes:
        k: Number of attempts.
        tasks: Tasks with at least that many finished attempts; the means are over these.
        any_passes: pass@k: the chance that at least one of k attempts passes.
        all_pass: pass^k: the chance that all k do.
    """

    k: int
    tasks: int
    any_passes: float
    all_pass: float


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupReport:
    """The attempts of one category, or all of them, counted.

    Attempts whose verdict has a fault (a broken reference or verifier) and attempts that nobody
    judged are in ``faults`` and ``unjudged`` and in no other number.

    Attributes:
        name: The category; empty for all.
        planned: Attempts that were planned; None when that is not known.
        tasks: Tasks with a counted attempt.
        attempts: Counted attempts: finished, judged and without a fault.
        passed: How many of them passed.
        accuracy: Their mean share, each task of the same weight; None without attempts.
        score: Mean score; an attempt's score is the mean of its verdicts' scores.
        metrics: Mean of each further metric of the verdicts, over the attempts that have it.
        usage: Tokens and cost in all.
        seconds: Wall time in all; runs side by side count each.
        turns: Turns of the model.
        turn_labels: Dominant labels of the turns.
        errors: Attempts on which the model failed; unless their verdict says otherwise they count
            as not passed.
        faults: Attempts left out because the reference or the verifier is broken.
        unjudged: Finished attempts left out because no verdict was given.
        unfinished: Attempts that were started and never finished.
    """

    name: str
    planned: int | None = None
    tasks: int = 0
    attempts: int = 0
    passed: int = 0
    accuracy: Interval | None = None
    score: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    turns: int = 0
    turn_labels: Mapping[FailureLabel, int] = field(default_factory=dict)
    errors: int = 0
    faults: Mapping[Fault, int] = field(default_factory=dict)
    unjudged: int = 0
    unfinished: int = 0

    @property
    def finished(self) -> int:
        """Attempts that went to their end, whether they count or not."""
        return self.attempts + sum(self.faults.values()) + self.unjudged


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFaults:
    """The failures of one tool.

    Attributes:
        tool: Its name.
        episodes: Episodes in which it was called or should have been.
        faulty: Those of them with a turn whose label blames it.
        labels: The failing labels that blame it, dominant or not, each once a turn.
    """

    tool: str
    episodes: int
    faulty: int
    labels: Mapping[FailureLabel, int]

    @property
    def share(self) -> Interval:
        """The share of its episodes that were faulty, with Wilson's interval."""
        return wilson_interval(self.faulty, self.episodes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One turn that failed. Every text is cut to a readable length.

    Attributes:
        episode_id: The episode, for everything else about it.
        task: Its task.
        category: The task's category.
        attempt: Number of the attempt.
        user_turn: Which thing that the user said it answers, from 0.
        turn: Which step of the model it is about, from 0.
        label: The turn's dominant label.
        labels: All of its labels.
        tool: The tool that the label blames; empty when it blames none.
        parameter: The argument that it blames.
        request: What the user asked.
        calls: The calls of the turn.
        answer: What the model said beside its calls.
        findings: What was found wrong.
        hint: How to repair it.
    """

    episode_id: str
    task: str
    category: str
    attempt: int
    user_turn: int
    turn: int
    label: FailureLabel
    labels: tuple[FailureLabel, ...]
    tool: str
    parameter: str
    request: str
    calls: tuple[str, ...]
    answer: str
    findings: tuple[str, ...]
    hint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Incident:
    """Something that happened to the run rather than to the agent.

    Attributes:
        what: A model's error, or a fault of a reference or a verifier.
        count: In how many episodes.
        task: The task of one of them.
        message: What was said about it.
    """

    what: str
    count: int
    task: str
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOutReason:
    """Rows of the source that are not tasks, for one reason.

    Attributes:
        reason: Why.
        count: How many rows.
        where: Some of them.
    """

    reason: str
    count: int
    where: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """The counted attempts at one task.

    Attributes:
        task: Its id.
        category: Its category.
        attempts: How many.
        passed: How many passed.
        score: Their mean score.
        tokens: Their mean tokens, read and written.
        seconds: Their mean wall time.
    """

    task: str
    category: str
    attempts: int
    passed: int
    score: float
    tokens: float
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationReport:
    """The results of one run.

    Attributes:
        run: Name of the run.
        benchmark: Name and release of the questions.
        models: Names of the models that answered.
        library_versions: Snapshots that the runs were pinned to.
        settings: How the questions were asked.
        mixed: Names of settings that are not the same in all episodes; empty in a sound run.
        command: How to repeat it; empty when that was not said.
        started: ISO 8601 time of the first episode, in UTC.
        total: All attempts, counted.
        categories: The same by category, in alphabetical order.
        macro: Mean of the categories' accuracies, each of the same weight; None without attempts.
        pass_at: pass@k and pass^k; empty where every task was tried once.
        tools: Tools that a failing label blames, the worst first.
        incidents: Errors of the model, the most frequent first, then broken references and
            verifiers.
        examples: Episodes that failed, cut to a readable size.
        results: Every task, in the order of their categories and ids.
        left_out: What the source holds beside the tasks.
        spent: All tokens of the run, unfinished and faulty attempts included.
    """

    run: str
    benchmark: str
    models: tuple[str, ...]
    library_versions: tuple[int, ...]
    settings: JsonObject
    mixed: tuple[str, ...]
    command: str
    started: str
    total: GroupReport
    categories: tuple[GroupReport, ...]
    macro: Interval | None
    pass_at: tuple[PassAtK, ...]
    tools: tuple[ToolFaults, ...]
    incidents: tuple[Incident, ...]
    examples: tuple[Example, ...]
    results: tuple[TaskResult, ...]
    left_out: tuple[LeftOutReason, ...] = ()
    spent: Usage = field(default_factory=Usage)

    @property
    def is_short(self) -> bool:
        """Whether fewer attempts went to their end than were planned."""
        return self.total.planned is not None and self.total.finished < self.total.planned

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {"format": REPORT_FORMAT, **asdict(self)}


# --- how sure numbers are -------------------------------------------------------------------------

RESAMPLES = 2_000
"""Draws of a bootstrap: the ends of an interval are good to about a twentieth of its width."""

FEWEST_DRAWN = 20
"""Tasks below which no bootstrap is drawn: from a few it takes what it saw for all there is."""

_LISTED_K = 8

Outcome = tuple[int, int]
"""Attempts at one task, and how many of them passed."""


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, the same in any order; 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


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
        k=k, tasks=n, any_passes=math.fsum(any_passes) / n, all_pass=math.fsum(all_pass) / n
    )


# --- two runs side by side ------------------------------------------------------------------------

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
