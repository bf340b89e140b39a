"""What a round of evolution looked at, what came of it, and why nothing came of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agentkit.evolution.gates import GateReport
from agentkit.evolution.learning.report import LearnReport
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.proposals.proposal import ProposalState
from agentkit.evolution.proposals.proposer import PassedOver


@dataclass(frozen=True, kw_only=True, slots=True)
class Considered:
    """One proposal, and how far this round brought it.

    Attributes:
        record: Where it stands.
        report: What the comparison on held-out tasks says; None where none was made.
        why: Why it stands there, in words.
        before: Where it stood before the round; ``proposed`` for one that this round made.
        commands: What may be typed next.
    """

    record: ProposalRecord
    report: GateReport | None = None
    why: str = ""
    before: ProposalState = "proposed"
    commands: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "proposal_id": self.record.proposal_id,
            "tool": self.record.tool_name,
            "stream": self.record.stream,
            "before": self.before,
            "state": self.record.state,
            "why": self.why,
            "commands": list(self.commands),
        }
        if self.report is not None:
            record["held_out"] = self.report.to_json()
        return record


@dataclass(frozen=True, kw_only=True, slots=True)
class Silent:
    """A proposer, or a judge of what it suggests, that could not say anything, or not all.

    Attributes:
        proposer: Its name.
        error: Why.
    """

    proposer: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failing:
    """How often a tool failed, and how.

    Attributes:
        tool: The tool.
        failures: How many of its calls.
        calls: How many calls it had, those that were missing among them.
        labels: How many failures by label, the most frequent first.
    """

    tool: str
    failures: int
    calls: int
    labels: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """The counts as a JSON object."""
        return {**asdict(self), "labels": dict(self.labels)}


@dataclass(frozen=True, kw_only=True, slots=True)
class LookedAt:
    """What a round looked at.

    Attributes:
        episodes: How many episodes, without shadow runs and views.
        runs: How many of them by the name of their evaluation run; the empty name is traffic.
        calls: How many calls they made.
        judged: How many have a verdict.
        went_wrong: How many failed their verdict or had a call that failed.
        failing: Tools that failed, the worst first.
    """

    episodes: int = 0
    runs: Mapping[str, int] = field(default_factory=dict)
    calls: int = 0
    judged: int = 0
    went_wrong: int = 0
    failing: tuple[Failing, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What was looked at as a JSON object."""
        return {
            "episodes": self.episodes,
            "runs": dict(self.runs),
            "calls": self.calls,
            "judged": self.judged,
            "went_wrong": self.went_wrong,
            "failing": [one.to_json() for one in self.failing],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """What came of one round.

    Attributes:
        before: Library version that it began with.
        after: Library version that it ended with.
        looked_at: What it looked at.
        considered: The proposals that it made or that waited, in the order of their making.
        passed_over: What went wrong and brought no proposal, with the reason.
        learned: What tools learned from episodes that went well; None where that was not asked for.
        silent: Proposers and judges whose model could not be reached.
    """

    before: int
    after: int
    looked_at: LookedAt = field(default_factory=LookedAt)
    considered: tuple[Considered, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    learned: LearnReport | None = None
    silent: tuple[Silent, ...] = ()

    @property
    def episodes(self) -> int:
        """How many episodes were looked at, without shadow runs and views."""
        return self.looked_at.episodes

    @property
    def promoted(self) -> tuple[Considered, ...]:
        """Those that became active."""
        return tuple(one for one in self.considered if one.record.state == "active")

    @property
    def waiting(self) -> tuple[Considered, ...]:
        """Those that are not decided yet."""
        return tuple(one for one in self.considered if one.record.is_open)

    @property
    def has_learned(self) -> bool:
        """Whether anything came of it: a proposal, or an example."""
        return bool(self.considered or (self.learned is not None and self.learned.added))

    @property
    def most_earlier_uses(self) -> int:
        """How often held-out tasks of this round have decided before, at most."""
        reports = [one.report for one in self.considered if one.report is not None]
        return max((int(one.statistics.get("earlier_uses", 0)) for one in reports), default=0)

    def to_json(self) -> dict[str, Any]:
        """The round as a JSON object."""
        return {
            "before": self.before,
            "after": self.after,
            "looked_at": self.looked_at.to_json(),
            "proposals": [one.to_json() for one in self.considered],
            "passed_over": [one.to_json() for one in self.passed_over],
            "learned": None if self.learned is None else self.learned.to_json(),
            "silent": [{"proposer": one.proposer, "error": one.error} for one in self.silent],
        }
