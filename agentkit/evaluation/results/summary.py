"""``summarise``: the episodes of one run to its report.

Episodes are read one by one. What is kept of each is a row of numbers and names, and the first few
examples of each label; rows become attempts, attempts become groups.
"""

from __future__ import annotations

import json
import math
from bisect import insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple, TypeVar
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
)
from agentkit.evaluation.results.statistics import accuracy, macro_mean, mean, pass_table
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
    reading = _Reading()
    for episode in episodes:
        reading.take(episode)
    attempts = sorted_attempts(reading.rows)
    by_category = planned if isinstance(planned, Mapping) else {}
    total = sum(planned.values()) if isinstance(planned, Mapping) else planned
    groups = attempts.by_category(by_category)
    categories = tuple(
        _group(name, own, by_category.get(name, 0) if by_category else None)
        for name, own in sorted(groups.items())
    )
    rows = [row for attempt in attempts.counted for row in attempt.rows]
    results = tuple(_task_result(own) for own in _by_task(attempts.counted).values())
    settings, mixed = _settings(reading.settings)
    return EvaluationReport(
        run=", ".join(reading.runs),
        benchmark=", ".join(sorted(reading.benchmarks)),
        models=tuple(sorted(reading.models)),
        library_versions=tuple(sorted(reading.versions)),
        settings=settings,
        mixed=mixed,
        command=command,
        started=reading.started,
        total=_group("", attempts, total),
        categories=categories,
        macro=macro_mean([one.accuracy for one in categories if one.accuracy is not None]),
        pass_at=pass_table([(one.attempts, one.passed) for one in results]),
        tools=_tool_faults(rows),
        incidents=(*_errors(rows), *_faults(attempts.faulty)),
        examples=reading.examples.chosen({row.place.episode_id for row in rows}),
        results=tuple(sorted(results, key=lambda one: (one.category, one.task))),
        left_out=tuple(_reasons(left_out)),
        spent=total_usage(row.usage for row in reading.rows),
    )


# --- what is kept of an episode -------------------------------------------------------------------


class Place(NamedTuple):
    """Where an episode stands in a run; also the order in which examples are preferred.

    The digest of the task comes first, so that the examples of a label are not all from the
    category whose name sorts first.
    """

    digest: int
    task: str
    attempt: int
    user_turn: int
    session: str
    episode_id: str
    category: str


class Blame(NamedTuple):
    """A failing label of a turn, and the tool that it blames."""

    label: FailureLabel
    tool: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeRow:
    """What a report needs of one episode.

    Attributes:
        place: Where it stands in the run.
        user_turns: How many things the user says in the whole attempt.
        ends: Whether the attempt ends with it.
        passed: The verdict; None without one.
        score: The verdict's score.
        fault: The verdict's fault.
        metrics: The verdict's further metrics.
        turn_labels: Dominant labels of the turns.
        blames: Failing labels of the turns, and whom they blame.
        called: How often each tool was called.
        turns: How many steps of the model.
        usage: Tokens and cost.
        seconds: Wall time.
        error: Type and message of the model's error; empty without one.
        message: What was said about the fault.
    """

    place: Place
    user_turns: int
    ends: bool
    passed: bool | None
    score: float
    fault: Fault | None
    metrics: Mapping[str, float]
    turn_labels: tuple[FailureLabel, ...]
    blames: tuple[Blame, ...]
    called: Mapping[str, int]
    turns: int
    usage: Usage
    seconds: float
    error: str
    message: str


def row_of(episode: Episode, labels: EvaluationLabels) -> EpisodeRow:
    """The row of an episode."""
    verdict, diagnosis = episode.verdict, episode.diagnosis
    turns = () if diagnosis is None else diagnosis.turns
    evidence = () if verdict is None else verdict.evidence
    fault = (None if verdict is None else verdict.fault) or _excluded(episode)
    metrics = {} if verdict is None else verdict.metrics
    numbers = {intern(str(name)): _finite(value) for name, value in metrics.items()}
    failed = episode.stop_reason in {"error", "cancelled"}
    return EpisodeRow(
        place=Place(
            digest=crc32(labels.task.encode("utf-8", "surrogatepass")),
            task=intern(labels.task),
            attempt=labels.attempt,
            user_turn=labels.user_turn,
            session=episode.session_id or "",
            episode_id=episode.episode_id,
            category=intern(labels.category),
        ),
        user_turns=labels.user_turns,
        ends=labels.ends,
        passed=None if verdict is None else verdict.passed,
        score=0.0 if verdict is None else _number(verdict.score),
        fault=fault,
        metrics={name: value for name, value in numbers.items() if value is not None},
        turn_labels=tuple(turn.label for turn in turns),
        blames=tuple(blame for turn in turns for blame in _blames(turn)),
        called=Counter(_name(call.name) for call in episode.calls),
        turns=len(episode.turns),
        usage=episode.usage,
        seconds=_number(episode.seconds),
        error=shown(episode.error or episode.stop_reason) if failed else "",
        message=shown("; ".join(one.message for one in evidence[:3])) if fault else "",
    )


def _name(text: str) -> str:
    """A name that a model may have made up, kept to a bearable length."""
    return intern(str(text)[:_LONGEST_NAME])


def _number(value: Any) -> float:
    """A finite number; 0 for anything else, as a broken clock or a foreign verdict may hold."""
    return _finite(value) or 0.0


def _finite(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond all floats
        return None


def _excluded(episode: Episode) -> Fault | None:
    """The fault that the diagnosis states, when the verdict does not."""
    label = None if episode.diagnosis is None else episode.diagnosis.label
    return label if label in {"gold_error", "checker_error"} else None


def _blames(turn: TurnDiagnosis) -> tuple[Blame, ...]:
    """The failing labels of a turn and whom they blame, each once, the dominant one first."""
    first = Blame(turn.label, _name(turn.tool))
    others = (Blame(one.label, _name(one.tool)) for one in turn.attributions)
    found = [first, *others]
    return tuple(dict.fromkeys(one for one in found if one.label not in NOT_FAILURES))


class _Examples:
    """The first few failed turns of each label, whatever order episodes come in."""

    def __init__(self) -> None:
        self._kept: dict[FailureLabel, list[tuple[Place, Example]]] = {}

    def offer(self, place: Place, episode: Episode, turn: TurnDiagnosis) -> None:
        """Keep a failed turn if it comes before those kept so far; one of an episode is enough.

        Twice as many are kept as are shown, for some of them may be of attempts that do not count.
        """
        kept = self._kept.setdefault(turn.label, [])
        is_full = len(kept) >= 2 * EXAMPLES_A_LABEL
        if (is_full and place >= kept[-1][0]) or any(other == place for other, _ in kept):
            return
        insort(kept, (place, _example(place, episode, turn)), key=lambda entry: entry[0])
        del kept[2 * EXAMPLES_A_LABEL :]

    def chosen(self, counted: set[str]) -> tuple[Example, ...]:
        """The examples of counted episodes, by the precedence of their labels, then by task."""
        found = [
            example
            for kept in self._kept.values()
            for example in [one for _, one in kept if one.episode_id in counted][:EXAMPLES_A_LABEL]
        ]
        return tuple(
            sorted(
                found,
                key=lambda one: (PRECEDENCE.index(one.label), one.task, one.attempt, one.user_turn),
            )
        )


@dataclass(kw_only=True, slots=True)
class _Reading:
    """What is kept of the episodes while they are read."""

    rows: list[EpisodeRow] = field(default_factory=list)
    examples: _Examples = field(default_factory=_Examples)
    runs: set[str] = field(default_factory=set)
    benchmarks: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    versions: set[int] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    started: str = ""
    seen: set[str] = field(default_factory=set)

    def take(self, episode: Episode) -> None:
        """Keep what the report needs of an episode; one that was read before is passed over."""
        labels = EvaluationLabels.of(episode)
        if labels is None or episode.episode_id in self.seen:
            return
        self.seen.add(episode.episode_id)
        self._note_run(episode, labels)
        row = row_of(episode, labels)
        self.rows.append(row)
        diagnosis = episode.diagnosis
        for turn in () if diagnosis is None or row.fault is not None else diagnosis.turns:
            if turn.label not in NOT_FAILURES:
                self.examples.offer(row.place, episode, turn)

    def _note_run(self, episode: Episode, labels: EvaluationLabels) -> None:
        self.runs.add(labels.run)
        self.benchmarks.add(labels.benchmark)
        self.settings.add(labels.settings)
        self.models.add(episode.model)
        self.versions.add(episode.library_version)
        if episode.started_at:
            self.started = min(self.started or episode.started_at, episode.started_at)
        if len(self.runs) > 1:
            one, other = sorted(self.runs)
            raise UsageError(
                f"these episodes are of the runs {one!r} and {other!r}, and a report is about one; "
                "select the episodes of one run (the label 'run')"
            )


def _example(place: Place, episode: Episode, diagnosis: TurnDiagnosis) -> Example:
    """A failed turn, cut to a readable size."""
    at = diagnosis.turn
    message = episode.turns[at].message if 0 <= at < len(episode.turns) else None
    made = () if message is None else message.tool_calls
    calls = [shown_call(call) for call in made[:MOST_CALLS]]
    if len(made) > MOST_CALLS:
        calls.append(f"and {len(made) - MOST_CALLS:,} more calls")
    evidence = diagnosis.evidence or (episode.verdict.evidence if episode.verdict else ())
    return Example(
        episode_id=episode.episode_id,
        task=place.task,
        category=place.category,
        attempt=place.attempt,
        user_turn=place.user_turn,
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
    told = message.replace('"', "'")
    for word, value in (("expected", one.expected), ("got", one.actual)):
        text = "" if value is None else shown_value(value)
        start = text[:_ENOUGH].rstrip("…").replace('"', "'")
        if start and start not in told:
            message += f", {word} {text}"
    return message


# --- attempts -------------------------------------------------------------------------------------


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
        return _means(row.metrics for row in self.rows)


@dataclass(kw_only=True, slots=True)
class Attempts:
    """The attempts of a run, by what becomes of them; each list by task and attempt.

    Attributes:
        counted: Finished, judged, without a fault.
        faulty: Finished, with a fault.
        unjudged: Finished, without a verdict.
        unfinished: Begun, never finished, and not finished by another try either.
    """

    counted: list[AttemptRow] = field(default_factory=list)
    faulty: list[AttemptRow] = field(default_factory=list)
    unjudged: list[AttemptRow] = field(default_factory=list)
    unfinished: list[AttemptRow] = field(default_factory=list)

    def add(self, attempt: AttemptRow) -> None:
        """Put an attempt where it belongs."""
        if not attempt.is_finished:
            self.unfinished.append(attempt)
        elif attempt.fault is not None:
            self.faulty.append(attempt)
        elif attempt.is_judged:
            self.counted.append(attempt)
        else:
            self.unjudged.append(attempt)

    def by_category(self, planned: Iterable[str]) -> dict[str, Attempts]:
        """The attempts of each category, those without any included if they were planned."""
        groups = {name: Attempts() for name in planned}
        for kind in (self.counted, self.faulty, self.unjudged, self.unfinished):
            for attempt in kind:
                groups.setdefault(attempt.category, Attempts()).add(attempt)
        return groups


def sorted_attempts(rows: Iterable[EpisodeRow]) -> Attempts:
    """Put rows together to attempts.

    Tries at the same attempt after an interruption differ in their session. The first one that is
    finished counts; an attempt that only has unfinished tries is one unfinished attempt.

    Args:
        rows: Rows of one run, in any order.
    """
    tries: dict[tuple[str, int], dict[str, list[EpisodeRow]]] = {}
    for row in rows:
        key = (row.place.task, row.place.attempt)
        tries.setdefault(key, {}).setdefault(row.place.session, []).append(row)
    attempts = Attempts()
    for key in sorted(tries):
        made = [
            AttemptRow(rows=tuple(sorted(own, key=lambda one: one.place)))
            for own in tries[key].values()
        ]
        made.sort(key=lambda one: (not one.is_finished, one.rows[0].place.episode_id))
        attempts.add(made[0])
    return attempts


def _by_task(attempts: Iterable[AttemptRow]) -> dict[str, list[AttemptRow]]:
    own: dict[str, list[AttemptRow]] = {}
    for attempt in attempts:
        own.setdefault(attempt.task, []).append(attempt)
    return own


# --- counting -------------------------------------------------------------------------------------


def _group(name: str, attempts: Attempts, planned: int | None) -> GroupReport:
    """Count the attempts of one group."""
    counted = attempts.counted
    rows = [row for attempt in counted for row in attempt.rows]
    tasks = [_task_result(own) for own in _by_task(counted).values()]
    return GroupReport(
        name=name,
        planned=planned,
        tasks=len(tasks),
        attempts=len(counted),
        passed=sum(attempt.passed for attempt in counted),
        accuracy=accuracy([(one.attempts, one.passed) for one in tasks]),
        score=mean([attempt.score for attempt in counted]),
        metrics=_means(attempt.metrics for attempt in counted),
        usage=total_usage(row.usage for row in rows),
        seconds=math.fsum(row.seconds for row in rows),
        turns=sum(row.turns for row in rows),
        turn_labels=_counts(label for row in rows for label in row.turn_labels),
        errors=sum(any(row.error for row in attempt.rows) for attempt in counted),
        faults=_counts(one.fault for one in attempts.faulty if one.fault is not None),
        unjudged=len(attempts.unjudged),
        unfinished=len(attempts.unfinished),
    )


def _task_result(attempts: Sequence[AttemptRow]) -> TaskResult:
    """The attempts at one task, counted."""
    rows = [row for attempt in attempts for row in attempt.rows]
    return TaskResult(
        task=attempts[0].task,
        category=attempts[0].category,
        attempts=len(attempts),
        passed=sum(attempt.passed for attempt in attempts),
        score=mean([attempt.score for attempt in attempts]),
        tokens=sum(row.usage.total_tokens for row in rows) / len(attempts),
        seconds=math.fsum(row.seconds for row in rows) / len(attempts),
    )


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


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum of usages; the cost comes out the same in any order."""
    every = list(usages)
    costs = [_number(one.cost_usd) for one in every if one.cost_usd is not None]
    return Usage(
        requests=sum(one.requests for one in every),
        prompt_tokens=sum(one.prompt_tokens for one in every),
        cached_tokens=sum(one.cached_tokens for one in every),
        completion_tokens=sum(one.completion_tokens for one in every),
        cost_usd=math.fsum(costs) if costs else None,
    )


def _tool_faults(rows: Iterable[EpisodeRow]) -> tuple[ToolFaults, ...]:
    """The blamed tools: those that spoilt most episodes first, then those that surely do so often.

    Sure is the lower end of Wilson's interval.
    """
    episodes: Counter[str] = Counter()
    faulty: Counter[str] = Counter()
    labels: dict[str, list[FailureLabel]] = {}
    for row in rows:
        blamed = {blame.tool for blame in row.blames if blame.tool}
        episodes.update(blamed.union(row.called))
        faulty.update(blamed)
        for blame in row.blames:
            labels.setdefault(blame.tool, []).append(blame.label)
    found = (
        ToolFaults(tool=tool, episodes=episodes[tool], faulty=spoilt, labels=_counts(labels[tool]))
        for tool, spoilt in faulty.items()
    )
    return tuple(sorted(found, key=lambda one: (-one.faulty, -one.share.low, one.tool)))


def _errors(rows: Iterable[EpisodeRow]) -> Iterator[Incident]:
    """Errors of the model by type, the most frequent first."""
    failed: dict[str, list[EpisodeRow]] = {}
    for row in sorted(rows, key=lambda one: one.place):
        if row.error:
            failed.setdefault(row.error.partition(":")[0], []).append(row)
    ordered = sorted(failed.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    for kind, own in ordered[:MOST_INCIDENTS]:
        yield Incident(what=kind, count=len(own), task=own[0].place.task, message=own[0].error)


def _faults(attempts: Iterable[AttemptRow]) -> Iterator[Incident]:
    """Each episode whose verdict has a fault."""
    faulty = [row for one in attempts for row in one.rows if row.fault is not None]
    for row in faulty[:MOST_INCIDENTS]:
        yield Incident(what=str(row.fault), count=1, task=row.place.task, message=row.message)


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
    """What was left out, by reason, the most frequent first."""
    where: dict[str, list[str]] = {}
    for one in left_out:
        where.setdefault(one.reason, []).append(one.where)
    for reason, places in sorted(where.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield LeftOutReason(reason=reason, count=len(places), where=tuple(places[:_WHERE]))
