"""What a report keeps of each episode: rows, attempts, and examples of failures."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple
from zlib import crc32

from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import (
    Episode,
    Evidence,
    EvidenceKind,
    FailureLabel,
    Fault,
    RecoveryOutcome,
    StopReason,
    TurnDiagnosis,
)
from agentkit.evaluation.results.texts import shown, shown_call, shown_value
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.messages import FailureKind, Usage

MOST_CALLS = 6
MOST_FINDINGS = 6
_ENOUGH = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One piece of evidence, as text.

    Attributes:
        kind: What sort of thing was found.
        message: The finding in a sentence.
        tool: The tool it is about; empty when it is about none.
        parameter: The argument it is about; empty when it is about none.
        expected: What would have been right, as JSON text; empty when that is not said.
        actual: What was there instead.
    """

    kind: EvidenceKind
    message: str
    tool: str = ""
    parameter: str = ""
    expected: str = ""
    actual: str = ""

    def says_more(self, value: str) -> bool:
        """Whether a value, one of these two, is not to be read in the message already."""
        start = value[:_ENOUGH].rstrip("…").replace('"', "'")
        return bool(start) and start not in self.message.replace('"', "'")


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
        more_calls: How many calls were left out of ``calls``.
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
    more_calls: int
    answer: str
    findings: tuple[Finding, ...]
    hint: str


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

    @classmethod
    def of(cls, episode: Episode, labels: EvaluationLabels) -> Place:
        """The place of an episode with these labels."""
        return cls(
            digest=crc32(labels.task.encode("utf-8", "surrogatepass")),
            task=intern(labels.task),
            attempt=labels.attempt,
            user_turn=labels.user_turn,
            session=episode.session_id or "",
            episode_id=episode.episode_id,
            category=intern(labels.category),
        )


@dataclass(kw_only=True, slots=True)
class ExampleShelf:
    """Keeps the first few examples of each subject, whatever order episodes come in.

    Attributes:
        most: How many of a subject.
    """

    most: int = 6
    _kept: dict[tuple[str, ...], list[tuple[Place, Example]]] = field(default_factory=dict)

    def offer(
        self, subject: tuple[str, ...], place: Place, episode: Episode, turn: TurnDiagnosis
    ) -> None:
        """Keep a failed turn if it comes before those kept so far.

        Args:
            subject: What it is an example of.
            place: Where the episode stands.
            episode: The episode.
            turn: The diagnosis of its turn.
        """
        kept = self._kept.setdefault(subject, [])
        if len(kept) >= self.most and place >= kept[-1][0]:
            return
        if any(other == place for other, _ in kept):  # one turn of an episode is enough
            return
        insort(kept, (place, example_of(place, episode, turn)), key=lambda entry: entry[0])
        del kept[self.most :]

    def of(self, subject: tuple[str, ...]) -> Iterator[Example]:
        """The examples of a subject, in order."""
        for _, example in self._kept.get(subject, ()):
            yield example


def example_of(place: Place, episode: Episode, diagnosis: TurnDiagnosis) -> Example:
    """A failed turn, cut to a readable size.

    Args:
        place: Where the episode stands in its run.
        episode: The episode.
        diagnosis: The diagnosis of one of its turns.
    """
    at = diagnosis.turn
    message = episode.turns[at].message if 0 <= at < len(episode.turns) else None
    calls = () if message is None else message.tool_calls
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
        calls=tuple(shown_call(call) for call in calls[:MOST_CALLS]),
        more_calls=max(0, len(calls) - MOST_CALLS),
        answer="" if message is None else shown(message.text),
        findings=tuple(_findings(diagnosis.evidence or _verdict_evidence(episode))),
        hint=shown(diagnosis.hint),
    )


def _verdict_evidence(episode: Episode) -> tuple[Evidence, ...]:
    return () if episode.verdict is None else episode.verdict.evidence


def _findings(evidence: Iterable[Evidence]) -> Iterator[Finding]:
    for one in tuple(evidence)[:MOST_FINDINGS]:
        yield Finding(
            kind=one.kind,
            message=shown(one.message),
            tool=one.tool,
            parameter=one.parameter,
            expected="" if one.expected is None else shown_value(one.expected),
            actual="" if one.actual is None else shown_value(one.actual),
        )


_LONGEST_NAME = 200


class Blame(NamedTuple):
    """A failing label of a turn, and the tool and the parameter that it blames."""

    label: FailureLabel
    tool: str
    parameter: str


class FailedCall(NamedTuple):
    """A failed call: the episode and turn it is of, its id, how it failed, what followed."""

    episode_id: str
    turn: int
    call_id: str
    kind: FailureKind
    outcome: RecoveryOutcome


class Refinement(NamedTuple):
    """What refinement did in one turn."""

    iterations: int
    converged: bool
    usage: Usage


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
        message: What was said about the fault.
        metrics: The verdict's further metrics.
        label: The episode's label; None without a diagnosis.
        turn_labels: Dominant labels of the turns.
        blames: Failing labels of the turns, and whom they blame.
        found: Kinds of the verdict's evidence.
        confusions: Expected and called tool, for each mix-up in the evidence.
        recoveries: Failed calls, and what became of them.
        called: How often each tool was called.
        turns: How many steps of the model.
        usage: Tokens and cost.
        refinements: What refinement did, turn by turn.
        seconds: Wall time.
        model_seconds: The part of it spent waiting for the model.
        tool_seconds: Time inside tools.
        stop_reason: Why it ended.
        error: Type and message of the model's error; empty without one.
    """

    place: Place
    user_turns: int
    ends: bool
    passed: bool | None
    score: float
    fault: Fault | None
    message: str
    metrics: tuple[tuple[str, float], ...]
    label: FailureLabel | None
    turn_labels: tuple[FailureLabel, ...]
    blames: tuple[Blame, ...]
    found: tuple[EvidenceKind, ...]
    confusions: tuple[tuple[str, str], ...]
    recoveries: tuple[FailedCall, ...]
    called: tuple[tuple[str, int], ...]
    turns: int
    usage: Usage
    refinements: tuple[Refinement, ...]
    seconds: float
    model_seconds: float
    tool_seconds: float
    stop_reason: StopReason
    error: str


def row_of(episode: Episode, labels: EvaluationLabels) -> EpisodeRow:
    """The row of an episode.

    Args:
        episode: The episode.
        labels: Its labels.
    """
    verdict, diagnosis = episode.verdict, episode.diagnosis
    turns = () if diagnosis is None else diagnosis.turns
    evidence = () if verdict is None else verdict.evidence
    fault = (None if verdict is None else verdict.fault) or _excluded(episode)
    return EpisodeRow(
        place=Place.of(episode, labels),
        user_turns=labels.user_turns,
        ends=labels.ends,
        passed=None if verdict is None else verdict.passed,
        score=0.0 if verdict is None else number(verdict.score),
        fault=fault,
        message=shown("; ".join(one.message for one in evidence[:3])) if fault else "",
        metrics=() if verdict is None else _metrics(verdict.metrics.items()),
        label=None if diagnosis is None else diagnosis.label,
        turn_labels=tuple(turn.label for turn in turns),
        blames=tuple(blame for turn in turns for blame in blames_of(turn)),
        found=tuple(one.kind for one in evidence),
        confusions=tuple(_confusions(episode, evidence)),
        recoveries=tuple(_failed_calls(episode)),
        called=tuple(Counter(name_of(call.name) for call in episode.calls).items()),
        turns=len(episode.turns),
        usage=episode.usage,
        refinements=tuple(_refinements(episode)),
        seconds=number(episode.seconds),
        model_seconds=math.fsum(number(turn.model_seconds) for turn in episode.turns),
        tool_seconds=math.fsum(number(result.seconds) for result in episode.results),
        stop_reason=episode.stop_reason,
        error=shown(episode.error or ""),
    )


def failed_turns(episode: Episode) -> Iterator[TurnDiagnosis]:
    """The diagnoses of the turns with a failing label."""
    if episode.diagnosis is not None:
        yield from (turn for turn in episode.diagnosis.turns if turn.label not in NOT_FAILURES)


def name_of(text: str) -> str:
    """A name that a model may have made up, kept to a bearable length."""
    return intern(str(text)[:_LONGEST_NAME])


def number(value: Any) -> float:
    """A finite number; 0 for anything else, as a broken clock or a foreign verdict may hold."""
    return 0.0 if (finite := _finite(value)) is None else finite


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


def _metrics(items: Iterable[tuple[str, Any]]) -> tuple[tuple[str, float], ...]:
    numbers = ((intern(str(name)), _finite(value)) for name, value in sorted(items))
    return tuple((name, value) for name, value in numbers if value is not None)


def blames_of(turn: TurnDiagnosis) -> tuple[Blame, ...]:
    """The failing labels of a turn and whom they blame, each once, the dominant one first."""
    found = [Blame(turn.label, name_of(turn.tool), name_of(turn.parameter))]
    found += (
        Blame(one.label, name_of(one.tool), name_of(one.parameter)) for one in turn.attributions
    )
    return tuple(dict.fromkeys(one for one in found if one.label not in NOT_FAILURES))


def _failed_calls(episode: Episode) -> Iterator[FailedCall]:
    for one in () if episode.diagnosis is None else episode.diagnosis.recoveries:
        yield FailedCall(
            one.episode or episode.episode_id, one.turn, one.call_id, one.kind, one.outcome
        )


def _confusions(episode: Episode, evidence: Iterable[Evidence]) -> Iterator[tuple[str, str]]:
    """Expected and called tool, for each finding about which tool to call.

    In a finding ``wrong_tool`` the called tool is ``actual``, or the tool of the call, and the
    expected one is ``expected``, or ``tool``.
    """
    names: dict[str, str] | None = None
    for one in evidence:
        if one.kind == "missing_call":
            yield name_of(one.tool), ""
        elif one.kind == "unexpected_call":
            yield "", name_of(one.tool)
        elif one.kind == "wrong_tool":
            if names is None:
                names = {call.call_id: call.name for call in episode.calls}
            called = _first_name(one.actual) or names.get(one.call_id, "")
            yield name_of(_first_name(one.expected) or one.tool), name_of(called)


def _first_name(value: Any) -> str:
    """The name in a finding, given alone or as the first of a list of allowed ones."""
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return value if isinstance(value, str) else ""


def _refinements(episode: Episode) -> Iterator[Refinement]:
    for turn in episode.turns:
        trace = turn.refine
        if trace is not None and trace.mode != "none":
            yield Refinement(max(0, trace.iterations), trace.converged, trace.usage)


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
