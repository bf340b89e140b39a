"""Judgements of an episode: its ``Verdict``, and turn by turn its ``Diagnosis``.

The rules that make a diagnosis are in ``agentkit.diagnosis``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from agentkit.messages import FailureKind, JsonObject
from agentkit.records import Record, from_record

EvidenceKind = Literal[
    "malformed_arguments",  # the argument text is not a JSON object
    "wrong_tool",  # a call names another tool than the expected one
    "missing_call",  # an expected call was not made
    "unexpected_call",  # a call was made that should not have been
    "missing_argument",  # an argument that must be given is not there
    "unexpected_argument",  # an argument that should not be there
    "wrong_type",  # an argument of a type that the tool does not take
    "wrong_value",  # an argument of the right type with a value that is not right
    "state_differs",  # what the calls changed is not what should have changed
    "response_differs",  # a result that should have been obtained was not
    "wrong_answer",  # the final answer is not the right one
    "missing_answer",  # there is no final answer to judge
    "test_failed",  # a test of the produced code failed
    "criterion_failed",  # a judge found a criterion not met
    "call_failed",  # a call was refused, or failed when it ran
    "not_recovered",  # after a failed call the model did not find another way
    "gold_error",  # what is held for right cannot be right
    "checker_error",  # the verifier itself failed
    "other",  # anything else, in words
]

Fault = Literal["gold_error", "checker_error"]
"""Why a verdict says nothing about the agent: the reference is broken, or the verifier is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence(Record):
    """One thing that a verifier found wrong.

    Attributes:
        kind: What sort of thing.
        message: The finding in a sentence, gold values included: for reports and for people. It is
            never shown to the model that is being judged.
        turn: Index of the episode's turn it is about; None when it is about the whole.
        call_id: The call it is about; empty when there is none.
        tool: The tool it is about: the called one, or the one that should have been.
        parameter: The argument it is about; empty for the call as a whole.
        expected: What would have been right, as JSON data.
        actual: What was there instead.
    """

    _OPTIONAL: ClassVar = ("turn", "call_id", "tool", "parameter", "expected", "actual")

    kind: EvidenceKind
    message: str
    turn: int | None = None
    call_id: str = ""
    tool: str = ""
    parameter: str = ""
    expected: Any = None
    actual: Any = None

    def __str__(self) -> str:
        return self.message

    @classmethod
    def from_json(cls, record: JsonObject | str) -> Evidence:
        """A finding from its record; a bare sentence, as older episodes have it, is read too."""
        if isinstance(record, str):
            return cls(kind="other", message=record)
        values: dict[str, Any] = dict(record)
        if values.get("kind") not in get_args(EvidenceKind):
            values["kind"] = "other"
        return from_record(cls, values)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict(Record):
    """A verifier's judgement of an episode.

    Attributes:
        passed: Whether the episode did what was asked.
        score: How well, from 0 to 1; verifiers without shades give 0 or 1.
        evidence: All that is wrong; empty when nothing is.
        verifier: Name of the verifier.
        fault: Set when the judgement says nothing about the agent, because the reference or the
            verifier is broken. Such verdicts are kept out of all statistics.
        metrics: Further numbers, by name.
        details: Anything else that the verifier wants to keep, as JSON data.
    """

    _OPTIONAL: ClassVar = ("verifier", "fault", "metrics", "details")

    passed: bool
    score: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    verifier: str = ""
    fault: Fault | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    details: JsonObject = field(default_factory=dict)

    @classmethod
    def from_json(cls, record: JsonObject) -> Verdict:
        """The inverse of ``to_json``.

        Verdicts of older episodes are read as well: without a score it is 1 or 0 as they passed,
        and what they hold beside is kept in ``details``.
        """
        passed = record.get("passed") is True
        known = {"passed", "score", "evidence", "verifier", "fault", "metrics", "details"}
        older = {name: value for name, value in record.items() if name not in known}
        values = {name: value for name, value in record.items() if name in known}
        values |= {"passed": passed, "score": record.get("score", float(passed))}
        values |= {"details": {**record.get("details", {}), **older}}
        return from_record(cls, values)


FailureLabel = Literal[
    "invalid_tool_call",  # not readable as a call, or a tool that is not offered
    "argument_mismatch",  # the tool is right, but arguments are missing, unknown or wrong
    "state_mismatch",  # the calls ran, but did not change what should have changed
    "recovery_failure",  # an error was reported, and the model did not recover from it
    "spurious_tool_call",  # a call that should not have been made
    "missing_tool_call",  # a call that should have been made was not
    "response_mismatch",  # the calls are acceptable, the final answer is not
    "correct_abstention",  # no call, and none was wanted
    "pass",  # nothing wrong
    "unjudged",  # nothing is known to be wrong, but nobody judged it, or the run was broken off
    "checker_error",  # the verifier failed: says nothing about the agent
    "gold_error",  # the reference is broken: says nothing about the agent
]

RecoveryOutcome = Literal[
    "recovered",  # a later call of the tool succeeded
    "replaced",  # the model went on with another tool, which succeeded
    "repeated",  # the same call was made again and failed again
    "failed_again",  # another call of the tool failed as well
    "abandoned",  # no further call of the tool, nor one of another tool that succeeded
    "open",  # the run ended before the model could react
]

PENDING: frozenset[RecoveryOutcome] = frozenset({"abandoned", "open"})
"""Outcomes that may change when the conversation goes on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribution(Record):
    """One label of a turn and what it is about.

    Attributes:
        label: The label.
        tool: The called tool, or for a missing call the one that should have been called; empty
            when that is not known.
        parameter: The argument; empty for a call as a whole.
        call_id: The call; empty when there is none.
    """

    _OPTIONAL: ClassVar = ("tool", "parameter", "call_id")

    label: FailureLabel
    tool: str = ""
    parameter: str = ""
    call_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnDiagnosis(Record):
    """The labels of one turn.

    Attributes:
        turn: Its index in the episode.
        label: The dominant label.
        labels: Every label that the evidence supports, the dominant one first.
        tool: The tool that the dominant label is about; empty when it is about none.
        parameter: The argument that it is about; empty when it is about none.
        evidence: What the labels rest on. It may hold gold values, as the hint never does.
        hint: How to repair it, in words that reveal nothing of the gold; empty for a turn without
            a fault.
        attributions: What each label is about, in the order of ``labels``; a label that several
            calls have earned comes up several times.
    """

    _OPTIONAL: ClassVar = ("labels", "tool", "parameter", "evidence", "hint", "attributions")

    turn: int
    label: FailureLabel
    labels: tuple[FailureLabel, ...] = ()
    tool: str = ""
    parameter: str = ""
    evidence: tuple[Evidence, ...] = ()
    hint: str = ""
    attributions: tuple[Attribution, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovery(Record):
    """The outcome of one failed call.

    Attributes:
        turn: The turn whose call failed.
        call_id: The call.
        tool: Its tool.
        kind: How it failed.
        outcome: What the model did about it.
        ended: The turn that settled it; None when nothing did.
        episode: The episode whose call failed: that of the diagnosis, or an earlier one of the
            same conversation, whose failure was open when the user spoke again. ``turn`` is a turn
            of that episode; ``ended`` is one of the episode that is diagnosed.
        arguments: Digest of the arguments, by which a repetition is recognised.
    """

    _OPTIONAL: ClassVar = ("ended", "episode", "arguments")

    turn: int
    call_id: str
    tool: str
    kind: FailureKind
    outcome: RecoveryOutcome
    ended: int | None = None
    episode: str = ""
    arguments: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis(Record):
    """Why an episode failed, or that it did not.

    Attributes:
        label: The label of the episode as a whole.
        turns: One entry a turn, in order.
        recoveries: What became of each failed call, in order; those of earlier episodes of the
            conversation that were pending come first.
    """

    label: FailureLabel
    turns: tuple[TurnDiagnosis, ...] = ()
    recoveries: tuple[Recovery, ...] = ()

    @property
    def is_excluded(self) -> bool:
        """Whether the diagnosis says nothing about the agent and stays out of all statistics."""
        return self.label in {"checker_error", "gold_error"}

    @property
    def pending(self) -> tuple[Recovery, ...]:
        """Failed calls that the next episode of the conversation may still make good."""
        return tuple(one for one in self.recoveries if one.outcome in PENDING)
