"""Executable evidence: what failed in each turn and why, and what became of it afterwards."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agentkit import composites  # a door: they load when a tool has some
from agentkit.diagnosis.labels import blamed_argument, breaks_learned_rule, label_of_failure
from agentkit.episodes import (
    Attribution,
    Episode,
    Evidence,
    EvidenceKind,
    FailureLabel,
    Recovery,
    RecoveryOutcome,
)
from agentkit.episodes.verdict import PENDING
from agentkit.errors import DefinitionError
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, FailureKind, ToolCall, ToolFailure, ToolResult
from agentkit.metrics.calls import canonical_calls, remembered, validator_of
from agentkit.models.call_parser import parse_calls
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentkit.composites.contracts import RuleChecker


def _refusal(call: ToolCall, library: Library, *, names_all: bool) -> ToolFailure | None:
    """Why a call would have been refused; None when it would have been run.

    Args:
        call: The call.
        library: The tools that may be called.
        names_all: Whether a tool that is not in the library cannot be called.
    """
    if call.malformed is not None:
        rule = f"It was: {call.malformed[:200]!r}."
        return ToolFailure(kind="malformed_arguments", rule=rule)
    tool = library.get(call.name)
    if tool is None:
        nearest, rule = library.nearest(call.name), "It is not in the library."
        failure = ToolFailure(kind="unknown_tool", rule=rule, nearest=nearest)
        return failure if names_all else None
    try:
        checked = validator_of(tool.definition).runnable(call.arguments)
    except DefinitionError as error:  # the schema is broken, not the call
        return ToolFailure(kind="tool_error", rule=str(error), retryable=False)
    if isinstance(checked, ToolFailure):
        return checked
    checker = _rules(tool.definition) if tool.definition.specification.rules else None
    return None if checker is None else checker.refusal(checked)


@remembered(most=512)  # making one ready costs more than to check a call, and episodes are many
def _rules(definition: ToolDefinition) -> RuleChecker:
    return composites.RuleChecker(definition)


_EVIDENCE_OF_FAILURE: Mapping[FailureKind, EvidenceKind] = {
    "malformed_arguments": "malformed_arguments",
    "unknown_tool": "wrong_tool",
}
_EVIDENCE_OF_RULE: Mapping[str | None, EvidenceKind] = {
    "requires": "missing_argument",
    "takes": "missing_argument",
    "call_before": "call_failed",
}
_EVIDENCE_OF_KEYWORD: Mapping[str | None, EvidenceKind] = {
    "required": "missing_argument",
    "additionalProperties": "unexpected_argument",
    "type": "wrong_type",
}
BROKEN_OFF = frozenset({"error", "cancelled", "blocked"})
"""Why a run stops that says nothing about the agent's work (``Episode.stop_reason``)."""

_LONGEST_ERROR = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One label of one turn, with what it is about and what it rests on.

    Attributes:
        turn: Index of the turn; -1 in an episode without turns.
        label: The label.
        evidence: What was found.
        tool: The tool that the label is about; empty when it is about none.
        parameter: The argument that it is about; empty when it is about none.
        call: The call that it is about; None when it is about none.
        failure: The failure of that call, where it is the evidence.
        is_final: Whether the run ended with it; false for an answer that was sent back.
    """

    turn: int
    label: FailureLabel
    evidence: Evidence
    tool: str = ""
    parameter: str = ""
    call: ToolCall | None = None
    failure: ToolFailure | None = None
    is_final: bool = True

    @property
    def attribution(self) -> Attribution:
        """The finding as the record keeps it."""
        return Attribution(
            label=self.label,
            tool=self.tool,
            parameter=self.parameter,
            call_id="" if self.call is None else self.call.call_id,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One call of a turn and what became of it.

    Attributes:
        turn: Index of the turn.
        call: The call.
        result: Its result; None when the run ended before there was one.
        failure: How it failed; None when it did not.
    """

    turn: int
    call: ToolCall
    result: ToolResult | None = None
    failure: ToolFailure | None = None

    @property
    def has_run(self) -> bool:
        """Whether the call did, or will do, what it says: it ran, or waits outside the run."""
        return self.failure is None and self.result is not None


def steps_of(episode: Episode, library: Library) -> tuple[tuple[Step, ...], ...]:
    """The calls of an episode with their failures, turn by turn."""
    names_all = episode.stop_reason not in BROKEN_OFF  # the runtime's own tools are in no library

    def step(turn: int, call: ToolCall, result: ToolResult | None) -> Step:
        if result is None:
            failure = _refusal(call, library, names_all=names_all)
        else:
            failure = _failure(result)
        return Step(turn=turn, call=call, result=result, failure=failure)

    return tuple(
        tuple(step(index, *made) for made in turn.steps())
        for index, turn in enumerate(episode.turns)
    )


def executable_findings(
    episode: Episode, steps: Sequence[tuple[Step, ...]], library: Library
) -> Iterator[Finding]:
    """The labels that the turns earn on their own, whatever a verifier says of the episode.

    Args:
        episode: The episode.
        steps: Its calls, turn by turn, from ``steps_of``.
        library: The tools that it ran with.
    """
    for index, turn in enumerate(episode.turns):
        for step in steps[index]:
            finding = None if step.failure is None else _of_failure(step, step.failure)
            if finding is not None:
                yield finding
        is_last = index == len(episode.turns) - 1
        is_final = is_last and episode.stop_reason == "output_invalid"
        if turn.correction or is_final:
            reason = f"the answer does not match the output schema: {turn.correction}".rstrip(": ")
            evidence = Evidence(kind="wrong_answer", message=reason, turn=index)
            label: FailureLabel = "response_mismatch"
            yield Finding(turn=index, label=label, evidence=evidence, is_final=is_final)
        if (unread := unread_call(turn.message, library)) is not None:
            text, tool = unread
            evidence = Evidence(
                kind="malformed_arguments",
                message=f"a call was written as text and not read: {text}",
                turn=index,
                tool=tool,
                actual=text,
            )
            yield Finding(turn=index, label="invalid_tool_call", evidence=evidence, tool=tool)


def parameter_of(failure: ToolFailure) -> str:
    """The argument, at the top of the call, that a failure is about; empty for the whole call."""
    return failure.path.partition("[")[0].partition(".")[0]


def _failure(result: ToolResult) -> ToolFailure | None:
    if result.failure is not None:
        return result.failure
    if result.status in {"failed", "denied"}:
        kind: FailureKind = "denied" if result.status == "denied" else "tool_error"
        return ToolFailure(kind=kind, rule=result.text[:_LONGEST_ERROR])
    error = reported_error(result.value)
    return None if error is None else ToolFailure(kind="tool_error", rule=error)


def reported_error(value: Any) -> str | None:
    """The error that a tool returned in place of a result: ``{"error": "no such file"}``.

    Many tools report so instead of raising, those of the multi-turn part of BFCL among them. An
    object that holds anything beside the error is a result.
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    error = value.get("error")
    return error[:_LONGEST_ERROR] if isinstance(error, str) and error else None


def _of_failure(step: Step, failure: ToolFailure) -> Finding | None:
    call = step.call
    label = label_of_failure(failure, call.arguments)
    if label is None:
        return None
    parameter = parameter_of(failure) or blamed_argument(failure, call.arguments) or ""
    evidence = Evidence(
        kind=_evidence_kind(failure),
        message=f"{call.name}: {failure.rule}",
        turn=step.turn,
        call_id=call.call_id,
        tool=call.name,
        parameter=parameter,
        actual=call.malformed if call.malformed is not None else call.arguments.get(parameter),
    )
    return Finding(
        turn=step.turn,
        label=label,
        evidence=evidence,
        tool=call.name,
        parameter=parameter,
        call=call,
        failure=failure,
    )


def _evidence_kind(failure: ToolFailure) -> EvidenceKind:
    if failure.kind == "invalid_arguments":
        return _EVIDENCE_OF_KEYWORD.get(failure.cause, "wrong_value")
    if breaks_learned_rule(failure):
        return _EVIDENCE_OF_RULE.get(failure.cause, "wrong_value")
    return _EVIDENCE_OF_FAILURE.get(failure.kind, "call_failed")


_LONGEST = 2_000
_SHOWN = 200
_NAME = re.compile(r"[^\W\d][\w.\-]*")
_MARKS = re.compile(
    r"</?(?:tool_calls?|function_calls?|functioncall)>|<\|(?:python_tag|tool_call\w*)\|>"
    r"|\[TOOL_CALLS\]|\"(?:tool_calls|function_call)\"\s*:",
    re.IGNORECASE,
)


def unread_call(message: AssistantMessage, library: Library) -> tuple[str, str] | None:
    """The call that a message without calls evidently tries to make: its text, and its tool.

    None when there is none. Evident is a text that is nothing but a call of a tool of the library,
    or that holds the marks with which models are taught to begin a call. A call that is quoted in
    prose is not.
    """
    text = message.text.strip()
    if message.tool_calls or not text or not len(library):
        return None
    is_marked = _MARKS.search(text) is not None
    if not is_marked and (len(text) > _LONGEST or not set(text) & set("({[")):
        return None
    text = text[:_LONGEST]
    # the tools whose names occur in the text, so that the parser need not try all of them
    named = [library[n].definition for n in dict.fromkeys(_NAME.findall(text)) if n in library]
    parsed = parse_calls(text, named) if named else None
    called = [call.name for call in parsed.calls if call.name in library] if parsed else []
    is_call = parsed is not None and not parsed.text and bool(called)
    return (text[:_SHOWN], called[0] if called else "") if is_marked or is_call else None


# --- What became of each failed call, over the turns of an episode and of a conversation ----------

Steps = Sequence[tuple[Step, ...]]
"""The calls of an episode, turn by turn."""


def recoveries(
    episode: Episode, steps: Steps, library: Library, pending: Sequence[Recovery]
) -> tuple[Recovery, ...]:
    """What the model did about each failed call, the pending ones of earlier episodes first.

    Args:
        episode: The episode.
        steps: Its calls.
        library: The tools that it ran with.
        pending: Failed calls of earlier episodes of the conversation that are still open.
    """
    carried = [
        _carried(one, steps, library)
        for one in pending
        if one.outcome in PENDING and one.episode != episode.episode_id
    ]
    own = [
        _followed(step, step.failure, episode.episode_id, steps, library)
        for turn in steps
        for step in turn
        if step.failure is not None
    ]
    return (*carried, *own)


def _followed(
    step: Step, failure: ToolFailure, episode_id: str, steps: Steps, library: Library
) -> Recovery:
    """What the model did about a failed call of this episode."""
    name = step.call.name
    names = {name, *(failure.nearest if failure.kind == "unknown_tool" else ())}
    arguments = _digest(step.call, library)
    outcome, ended = _outcome(names, (name, arguments), steps, library, after=step.turn)
    return Recovery(
        turn=step.turn,
        call_id=step.call.call_id,
        tool=name,
        kind=failure.kind,
        outcome=outcome,
        ended=ended,
        episode=episode_id,
        arguments=arguments if outcome in PENDING else "",
    )


def _carried(recovery: Recovery, steps: Steps, library: Library) -> Recovery:
    """A pending failure after this episode, in which the user may have left the matter."""
    failed = (recovery.tool, recovery.arguments)
    outcome, ended = _outcome({recovery.tool}, failed, steps, library, after=-1)
    if outcome in {*PENDING, "replaced"}:
        return recovery
    return replace(recovery, outcome=outcome, ended=ended, arguments="")


def _outcome(
    names: set[str], failed: tuple[str, str], steps: Steps, library: Library, *, after: int
) -> tuple[RecoveryOutcome, int | None]:
    """The reaction to a failed call after a turn, and the turn that settled it."""
    replaced: int | None = None
    for turn in range(after + 1, len(steps)):
        again = [step for step in steps[turn] if step.call.name in names]
        if any(step.failure is None for step in again):
            return "recovered", turn
        if again:
            made = {(step.call.name, _digest(step.call, library)) for step in again}
            is_same = failed[1] != "" and failed in made
            return "repeated" if is_same else "failed_again", turn
        if replaced is None and any(step.has_run for step in steps[turn]):
            replaced = turn
    if replaced is not None:
        return "replaced", replaced
    return "abandoned" if after + 1 < len(steps) else "open", None


def _digest(call: ToolCall, library: Library) -> str:
    """A short key that distinguishes calls of one tool; empty for invalid JSON."""
    tool = library.get(call.name)
    definitions = [] if tool is None else [tool.definition]
    try:
        text = canonical_calls([call], definitions)[0].arguments
    except (RecursionError, TypeError, ValueError):
        return ""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] if text else ""


def recovery_findings(
    episode: Episode, found: Sequence[Recovery], steps: Steps
) -> Iterator[Finding]:
    """The turns on which the model did not recover, in a failed episode.

    A call that failed again or was repeated counts at the turn that did so. Giving up counts at the
    turn after the failure, unless the model was asked not to try again: obeying is not a failure.
    """
    failures = {step.call.call_id: step.failure for turn in steps for step in turn if step.failure}
    for recovery in found:
        turn = recovery.ended
        if recovery.outcome == "abandoned" and recovery.episode == episode.episode_id:
            failure = failures.get(recovery.call_id)
            turn = recovery.turn + 1 if failure is not None and failure.retryable else None
        elif recovery.outcome not in {"repeated", "failed_again"}:
            turn = None
        if turn is not None:
            again = _again(recovery, steps[turn])
            evidence = Evidence(
                kind="not_recovered",
                message=_SENTENCES[recovery.outcome].format(tool=recovery.tool),
                turn=turn,
                call_id="" if again is None else again.call_id,
                tool=recovery.tool,
            )
            yield Finding(
                turn=turn,
                label="recovery_failure",
                evidence=evidence,
                tool=recovery.tool,
                call=again,
            )


_SENTENCES: dict[RecoveryOutcome, str] = {
    "repeated": "{tool} had failed, and the same call was made again",
    "failed_again": "{tool} had failed, and the next try failed as well",
    "abandoned": "{tool} had failed, and there was no further try",
}


def _again(recovery: Recovery, made: Sequence[Step]) -> ToolCall | None:
    """The call that failed again; None when there was none."""
    return next((step.call for step in made if step.call.name == recovery.tool), None)
