"""``EvaluationReport``: what one run of a benchmark found, as typed numbers and how sure they are.

Words used here: a *task* is one question; an *attempt* is one try at it; each thing that the user
says within an attempt is one *episode*; each step of the model within an episode is one *turn*.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from agentkit.episodes import FailureLabel, Fault
from agentkit.messages import JsonObject, Usage
from agentkit.metrics.statistics import (
    Interval,
    Observation,
    bootstrap_interval,
    pass_at_k,
    pass_hat_k,
    wilson_interval,
)

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
