"""``Diagnosis``: why an episode failed, turn by turn, as a record.

The rules that make one are in ``agentkit.diagnosis``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from agentkit.episodes.records import from_record, to_record
from agentkit.episodes.verdict import Evidence
from agentkit.messages import FailureKind, JsonObject

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
class Attribution:
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
class TurnDiagnosis:
    """What one turn is labelled with.

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
class Recovery:
    """What became of one failed call.

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
class Diagnosis:
    """Why an episode failed, or that it did not.

    Attributes:
        label: The label of the episode as a whole.
        turns: One entry a turn, in order.
        recoveries: What became of each failed call, in order; those of earlier episodes of the
            conversation that were pending come first.
    """

    _OPTIONAL: ClassVar = ()

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

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as a JSON object."""
        return to_record(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> Diagnosis:
        """The inverse of ``to_json``."""
        return from_record(cls, record)
