"""``Verdict``: what a verifier found about an episode, with the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from agentkit.episodes.records import to_record
from agentkit.messages import JsonObject

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
    "gold_error",  # what is held for right can not be right
    "checker_error",  # the verifier itself failed
    "other",  # anything else, in words
]

Fault = Literal["gold_error", "checker_error"]
"""Why a verdict says nothing about the agent: the reference is broken, or the verifier is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
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
        return cls(**values)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
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

    def to_json(self) -> dict[str, Any]:
        """The verdict as a JSON object; empty parts are left out."""
        return to_record(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> Verdict:
        """The inverse of ``to_json``.

        Verdicts of older episodes are read as well: without a score it is 1 or 0 as they passed,
        and what they hold beside is kept in ``details``.
        """
        passed = record.get("passed") is True
        known = {"passed", "score", "evidence", "verifier", "fault", "metrics", "details"}
        older = {name: value for name, value in record.items() if name not in known}
        return cls(
            passed=passed,
            score=record.get("score", float(passed)),
            verifier=record.get("verifier", ""),
            fault=record.get("fault"),
            metrics=record.get("metrics", {}),
            evidence=tuple(map(Evidence.from_json, record.get("evidence", ()))),
            details={**record.get("details", {}), **older},
        )
