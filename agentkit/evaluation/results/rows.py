"""The few numbers that a report needs of an episode, so that episodes need not be kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sys import intern
from typing import Any, NamedTuple

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
from agentkit.evaluation.labels import EvaluationLabels
from agentkit.evaluation.results.examples import Place
from agentkit.evaluation.results.texts import shown
from agentkit.messages import FailureKind, Usage

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
