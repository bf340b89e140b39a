"""``summarise``: the episodes of one run to its report.

Episodes are read one by one. What is kept of each is a row of numbers and names, and the first few
examples of each label; rows become attempts, attempts become groups.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeVar
from zlib import crc32

from agentkit.diagnosis.labels import NOT_FAILURES, PRECEDENCE
from agentkit.episodes import Episode, Evidence, FailureLabel, Fault, TurnDiagnosis
from agentkit.errors import UsageError
from agentkit.evaluation.results.report import (
    EvaluationReport,
    Example,
    GroupReport,
    Incident,
    LeftOutReason,
    TaskResult,
    ToolFaults,
    accuracy,
    macro_mean,
    mean,
    pass_table,
)
from agentkit.evaluation.results.texts import shown, shown_call, shown_value
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.evaluation.task import LeftOut
from agentkit.messages import JsonObject, Usage

EXAMPLES_A_LABEL = 10
MOST_CALLS = 6
MOST_FINDINGS = 6
MOST_INCIDENTS = 30
_LONGEST_NAME = 200
_WHERE = 5
_ENOUGH = 30

Name = TypeVar("Name", bound=Hashable)


def summarise(
    episodes: Iterable[Episode],
    *,
    planned: Mapping[str, int] | int | None = None,
    left_out: Iterable[LeftOut] = (),
    command: str = "",
) -> EvaluationReport:
    """Count the episodes of one run of ``agentkit.evaluation.evaluate``.

    Episodes are read one by one and not kept; their order changes nothing. Only finished attempts
    count, and of two finished tries at the same attempt the first. An attempt passed when all that
    the user says was answered and every judged answer passed. What has no verdict, or one with a
    fault, is counted apart.

    Args:
        episodes: Episodes with the labels that ``evaluate`` gives them; others are passed over.
        planned: Attempts that were planned, in all or by category.
        left_out: What the source holds beside the tasks (``Benchmark.left_out``).
        command: How to repeat the run, for the reader.

    Raises:
        UsageError: The episodes are of more than one run.
    """
    read = _Reading()
    for episode in episodes:
        read.take(episode)
    attempts = _attempts(read.rows)
    by_category = planned if isinstance(planned, Mapping) else {}
    total = sum(planned.values()) if isinstance(planned, Mapping) else planned
    groups: dict[str, list[_Attempt]] = {name: [] for name in by_category}
    for attempt in attempts:
        groups.setdefault(attempt.labels.category, []).append(attempt)
    categories = tuple(
        _group(name, own, by_category.get(name, 0) if by_category else None)
        for name, own in sorted(groups.items())
    )
    counted = [one for one in attempts if one.standing == "counted"]
    faulty = [one for one in attempts if one.standing == "faulty"]
    rows = [row for attempt in counted for row in attempt.rows]
    results = _task_results(counted)
    settings, mixed = _settings(read.seen["settings"])
    return EvaluationReport(
        run=", ".join(read.seen["run"]),
        benchmark=", ".join(sorted(read.seen["benchmark"])),
        models=tuple(sorted(read.seen["model"])),
        library_versions=tuple(sorted(read.versions)),
        settings=settings,
        mixed=mixed,
        command=command,
        started=min(filter(None, read.seen["started"]), default=""),
        total=_group("", attempts, total),
        categories=categories,
        macro=macro_mean([one.accuracy for one in categories if one.accuracy is not None]),
        pass_at=pass_table([(one.attempts, one.passed) for one in results]),
        tools=_tool_faults(rows),
        incidents=(*_errors(rows), *_faults(faulty)),
        examples=_chosen(read.examples, {row.episode_id for row in rows}),
        results=tuple(sorted(results, key=lambda one: (one.category, one.task))),
        left_out=tuple(_reasons(left_out)),
        spent=_total_usage(row.usage for row in read.rows),
    )


# --- what is kept of an episode -------------------------------------------------------------------


class _Blame(NamedTuple):
    """A failing label of a turn, and the tool that it blames."""

    label: FailureLabel
    tool: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """The parts of one episode that a report needs.

    Attributes:
        labels: Its place in the run.
        session: The try at the attempt that it belongs to.
        episode_id: Its id.
        passed: The verdict; None without one.
        score: The verdict's score.
        fault: The verdict's fault.
        metrics: The verdict's further metrics.
        turn_labels: Dominant labels of the turns.
        blames: Failing labels of the turns, and whom they blame.
        called: The tools that were called.
        turns: How many steps of the model.
        usage: Tokens and cost.
        seconds: Wall time.
        error: Type and message of the model's error; empty without one.
        message: What was said about the fault.
    """

    labels: EvaluationLabels
    session: str
    episode_id: str
    passed: bool | None
    score: float
    fault: Fault | None
    metrics: Mapping[str, float]
    turn_labels: tuple[FailureLabel, ...]
    blames: tuple[_Blame, ...]
    called: frozenset[str]
    turns: int
    usage: Usage
    seconds: float
    error: str
    message: str

    @property
    def order(self) -> tuple[int, str, int, int, str, str]:
        """The sort key of rows and of examples.

        The digest of the task comes first, so that the examples of a label are not all from the
        category whose name sorts first.
        """
        at = self.labels
        digest = crc32(at.task.encode("utf-8", "surrogatepass"))
        return digest, at.task, at.attempt, at.user_turn, self.session, self.episode_id


def _row(episode: Episode, labels: EvaluationLabels) -> _Row:
    """The row of an episode."""
    verdict, diagnosis = episode.verdict, episode.diagnosis
    turns = () if diagnosis is None else diagnosis.turns
    evidence = () if verdict is None else verdict.evidence
    fault = None if verdict is None else verdict.fault
    if fault is None and diagnosis is not None and diagnosis.is_excluded:
        fault = "gold_error" if diagnosis.label == "gold_error" else "checker_error"
    metrics = {} if verdict is None else verdict.metrics
    failed = episode.stop_reason in {"error", "cancelled"}
    return _Row(
        labels=labels,
        session=episode.session_id or "",
        episode_id=episode.episode_id,
        passed=None if verdict is None else verdict.passed,
        score=0.0 if verdict is None else _finite(verdict.score) or 0.0,
        fault=fault,
        metrics={
            str(name): number
            for name, value in metrics.items()
            if (number := _finite(value)) is not None
        },
        turn_labels=tuple(turn.label for turn in turns),
        blames=tuple(blame for turn in turns for blame in _blames(turn)),
        called=frozenset(_name(call.name) for call in episode.calls),
        turns=len(episode.turns),
        usage=episode.usage,
        seconds=_finite(episode.seconds) or 0.0,
        error=shown(episode.error or episode.stop_reason) if failed else "",
        message=shown("; ".join(one.message for one in evidence[:3])) if fault else "",
    )


def _name(text: str) -> str:
    """A name that a model may have made up, kept to a bearable length."""
    return str(text)[:_LONGEST_NAME]


def _finite(value: Any) -> float | None:
    """A finite number; a broken clock or a foreign verdict may hold anything else."""
    if not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond all floats
        return None


def _blames(turn: TurnDiagnosis) -> Iterator[_Blame]:
    """The failing labels of a turn and whom they blame, each once, the dominant one first."""
    first = _Blame(turn.label, _name(turn.tool))
    others = (_Blame(one.label, _name(one.tool)) for one in turn.attributions)
    yield from dict.fromkeys(one for one in (first, *others) if one.label not in NOT_FAILURES)


@dataclass(kw_only=True, slots=True)
class _Reading:
    """The accumulator while episodes are read."""

    rows: list[_Row] = field(default_factory=list)
    examples: dict[FailureLabel, dict[tuple[Any, ...], Example]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(
        default_factory=lambda: {
            name: set() for name in ("id", "run", "benchmark", "settings", "model", "started")
        }
    )
    versions: set[int] = field(default_factory=set)

    def take(self, episode: Episode) -> None:
        """Keep what the report needs of an episode; one that was read before is passed over."""
        labels = EvaluationLabels.of(episode)
        if labels is None or episode.episode_id in self.seen["id"]:
            return
        self._note(episode, labels)
        row = _row(episode, labels)
        self.rows.append(row)
        diagnosis = episode.diagnosis
        for turn in () if diagnosis is None or row.fault is not None else diagnosis.turns:
            if turn.label not in NOT_FAILURES:
                self._offer(row, episode, turn)

    def _note(self, episode: Episode, labels: EvaluationLabels) -> None:
        self.versions.add(episode.library_version)
        seen = {
            "id": episode.episode_id,
            "run": labels.run,
            "benchmark": labels.benchmark,
            "settings": labels.settings,
            "model": episode.model,
            "started": episode.started_at,
        }
        for name, value in seen.items():
            self.seen[name].add(value)
        if len(self.seen["run"]) > 1:
            one, other = sorted(self.seen["run"])
            raise UsageError(
                f"these episodes are of the runs {one!r} and {other!r}, and a report is about one; "
                "select the episodes of one run (the label 'run')"
            )

    def _offer(self, row: _Row, episode: Episode, turn: TurnDiagnosis) -> None:
        """Keep a failed turn if it comes before those kept so far; one of an episode is enough.

        Twice as many are kept as are shown, for some of them may be of attempts that do not count.
        """
        kept = self.examples.setdefault(turn.label, {})
        is_full = len(kept) >= 2 * EXAMPLES_A_LABEL
        if row.order in kept or (is_full and row.order >= max(kept)):
            return
        kept[row.order] = _example(row, episode, turn)
        if is_full:
            del kept[max(kept)]


def _chosen(
    examples: Mapping[FailureLabel, Mapping[tuple[Any, ...], Example]], counted: set[str]
) -> tuple[Example, ...]:
    """The examples of counted episodes, by the precedence of their labels, then by task."""
    found: list[Example] = []
    for label in PRECEDENCE:
        of_label = sorted(examples.get(label, {}).items())
        own = [one for _, one in of_label if one.episode_id in counted]
        found += sorted(
            own[:EXAMPLES_A_LABEL], key=lambda one: (one.task, one.attempt, one.user_turn)
        )
    return tuple(found)


def _example(row: _Row, episode: Episode, diagnosis: TurnDiagnosis) -> Example:
    """A failed turn, cut to a readable size."""
    at = diagnosis.turn
    message = episode.turns[at].message if 0 <= at < len(episode.turns) else None
    made = () if message is None else message.tool_calls
    calls = [shown_call(call) for call in made[:MOST_CALLS]]
    if len(made) > MOST_CALLS:
        calls.append(f"and {len(made) - MOST_CALLS:,} more calls")
    evidence = diagnosis.evidence or (episode.verdict.evidence if episode.verdict else ())
    return Example(
        episode_id=row.episode_id,
        task=row.labels.task,
        category=row.labels.category,
        attempt=row.labels.attempt,
        user_turn=row.labels.user_turn,
        turn=at,
        label=diagnosis.label,
        labels=diagnosis.labels or (diagnosis.label,),
        tool=diagnosis.tool,
        parameter=diagnosis.parameter,
        request=shown(episode.request),
        calls=tuple(calls),
        answer="" if message is None else shown(message.text),
        findings=tuple(map(_finding, evidence[:MOST_FINDINGS])),
        hint=shown(diagnosis.hint),
    )


def _finding(one: Evidence) -> str:
    """A finding in a sentence, with the values that its message does not tell already."""
    message = shown(one.message)
    normalized = message.replace('"', "'")
    for word, value in (("expected", one.expected), ("got", one.actual)):
        text = "" if value is None else shown_value(value)
        start = text[:_ENOUGH].rstrip("…").replace('"', "'")
        if start and start not in normalized:
            message += f", {word} {text}"
    return message


# --- attempts -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attempt:
    """One try at a task: its episodes in order."""

    rows: tuple[_Row, ...]

    @property
    def labels(self) -> EvaluationLabels:
        """Its place in the run."""
        return self.rows[0].labels

    @property
    def is_finished(self) -> bool:
        """Whether it went to its end."""
        return any(row.labels.ends for row in self.rows)

    @property
    def is_whole(self) -> bool:
        """Whether everything the user says was said; a conversation may break off before."""
        user_turns = {row.labels.user_turn for row in self.rows}
        return len(user_turns) >= self.rows[-1].labels.user_turns

    @property
    def fault(self) -> Fault | None:
        """Why the verdicts say nothing about the agent, if they do not."""
        return next((row.fault for row in self.rows if row.fault is not None), None)

    @property
    def standing(self) -> Literal["counted", "faulty", "unjudged", "unfinished"]:
        """Its outcome.

        It is judged by a verdict about one of its episodes; one that broke off before the part
        that is judged has not passed, so that is known as well.
        """
        if not self.is_finished:
            return "unfinished"
        if self.fault is not None:
            return "faulty"
        is_judged = not self.is_whole or any(row.passed is not None for row in self.rows)
        return "counted" if is_judged else "unjudged"

    @property
    def passed(self) -> bool:
        """Whether a counted attempt answered everything and every judged answer passed."""
        return self.is_whole and all(row.passed is not False for row in self.rows)

    @property
    def score(self) -> float:
        """Mean score of its judged episodes."""
        return mean([row.score for row in self.rows if row.passed is not None])


def _attempts(rows: Iterable[_Row]) -> list[_Attempt]:
    """Rows put together to attempts, by task and number.

    Tries at the same attempt after an interruption differ in their session. The first one that is
    finished counts; an attempt that only has unfinished tries is one unfinished attempt.
    """
    tries: dict[tuple[str, int], dict[str, list[_Row]]] = {}
    for row in rows:
        key = (row.labels.task, row.labels.attempt)
        tries.setdefault(key, {}).setdefault(row.session, []).append(row)
    attempts = []
    for _, sessions in sorted(tries.items()):
        made = [
            _Attempt(rows=tuple(sorted(own, key=lambda one: one.order)))
            for own in sessions.values()
        ]
        attempts.append(min(made, key=lambda one: (not one.is_finished, one.rows[0].episode_id)))
    return attempts


def _group(name: str, attempts: Sequence[_Attempt], planned: int | None) -> GroupReport:
    """Count the attempts of one group."""
    standing = Counter(one.standing for one in attempts)
    counted = [one for one in attempts if one.standing == "counted"]
    rows = [row for attempt in counted for row in attempt.rows]
    faults = (one.fault for one in attempts if one.standing == "faulty" and one.fault)
    tasks = _task_results(counted)
    return GroupReport(
        name=name,
        planned=planned,
        tasks=len(tasks),
        attempts=len(counted),
        passed=sum(attempt.passed for attempt in counted),
        accuracy=accuracy([(one.attempts, one.passed) for one in tasks]),
        score=mean([attempt.score for attempt in counted]),
        metrics=_means(_means(row.metrics for row in attempt.rows) for attempt in counted),
        usage=_total_usage(row.usage for row in rows),
        seconds=math.fsum(row.seconds for row in rows),
        turns=sum(row.turns for row in rows),
        turn_labels=_counts(label for row in rows for label in row.turn_labels),
        errors=sum(any(row.error for row in attempt.rows) for attempt in counted),
        faults=_counts(faults),
        unjudged=standing["unjudged"],
        unfinished=standing["unfinished"],
    )


def _task_results(attempts: Iterable[_Attempt]) -> list[TaskResult]:
    """The counted attempts at each task."""
    own: dict[str, list[_Attempt]] = {}
    for attempt in attempts:
        own.setdefault(attempt.labels.task, []).append(attempt)
    return [
        TaskResult(
            task=task,
            category=made[0].labels.category,
            attempts=len(made),
            passed=sum(attempt.passed for attempt in made),
            score=mean([attempt.score for attempt in made]),
            tokens=sum(row.usage.total_tokens for one in made for row in one.rows) / len(made),
            seconds=math.fsum(row.seconds for one in made for row in one.rows) / len(made),
        )
        for task, made in own.items()
    ]


def _means(records: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each number over the records that have it, by name."""
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.items():
            values.setdefault(name, []).append(value)
    return {name: mean(values[name]) for name in sorted(values)}


def _counts(values: Iterable[Name]) -> dict[Name, int]:
    """How often each value occurs, the most frequent first, equals by name."""
    ordered = sorted(Counter(values).items(), key=lambda pair: (-pair[1], str(pair[0])))
    return dict(ordered)


def _total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum of usages; the cost comes out the same in any order."""
    every = list(usages)
    costs = [_finite(one.cost_usd) or 0.0 for one in every if one.cost_usd is not None]
    return replace(sum(every, Usage()), cost_usd=math.fsum(costs) if costs else None)


# --- what went wrong ------------------------------------------------------------------------------


def _tool_faults(rows: Iterable[_Row]) -> tuple[ToolFaults, ...]:
    """The blamed tools: those that spoilt most episodes first, then those that surely do so often.

    Sure is the lower end of Wilson's interval.
    """
    episodes: Counter[str] = Counter()
    faulty: Counter[str] = Counter()
    labels: dict[str, list[FailureLabel]] = {}
    for row in rows:
        blamed = {blame.tool for blame in row.blames if blame.tool}
        episodes.update(blamed | row.called)
        faulty.update(blamed)
        for blame in row.blames:
            labels.setdefault(blame.tool, []).append(blame.label)
    found = (
        ToolFaults(tool=tool, episodes=episodes[tool], faulty=spoilt, labels=_counts(labels[tool]))
        for tool, spoilt in faulty.items()
    )
    return tuple(sorted(found, key=lambda one: (-one.faulty, -one.share.low, one.tool)))


def _errors(rows: Iterable[_Row]) -> Iterator[Incident]:
    """Errors of the model by type, the most frequent first."""
    failed: dict[str, list[_Row]] = {}
    for row in sorted(rows, key=lambda one: one.order):
        if row.error:
            failed.setdefault(row.error.partition(":")[0], []).append(row)
    ordered = sorted(failed.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    for kind, own in ordered[:MOST_INCIDENTS]:
        yield Incident(what=kind, count=len(own), task=own[0].labels.task, message=own[0].error)


def _faults(attempts: Iterable[_Attempt]) -> Iterator[Incident]:
    """Each episode whose verdict has a fault."""
    faulty = [row for one in attempts for row in one.rows if row.fault is not None]
    for row in faulty[:MOST_INCIDENTS]:
        yield Incident(what=str(row.fault), count=1, task=row.labels.task, message=row.message)


def _settings(texts: Iterable[str]) -> tuple[JsonObject, tuple[str, ...]]:
    """The settings, and the names of those that are not the same in all episodes."""
    records = [_decoded(text) for text in sorted(texts)]
    if not records:
        return {}, ()
    names = sorted({name for record in records for name in record})
    mixed = (name for name in names if any(r.get(name) != records[0].get(name) for r in records))
    return records[0], tuple(mixed)


def _decoded(text: str) -> JsonObject:
    try:
        record = json.loads(text) if text else {}
    except ValueError:
        record = None
    return record if isinstance(record, dict) else {"settings": text}


def _reasons(left_out: Iterable[LeftOut]) -> Iterator[LeftOutReason]:
    """The omissions by reason, the most frequent first."""
    where: dict[str, list[str]] = {}
    for one in left_out:
        where.setdefault(one.reason, []).append(one.where)
    for reason, places in sorted(where.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield LeftOutReason(reason=reason, count=len(places), where=tuple(places[:_WHERE]))
