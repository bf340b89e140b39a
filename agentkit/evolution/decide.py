"""Where a proposal goes next, decided from what the gates and the people said. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentkit.errors import UsageError
from agentkit.evolution.gates import Decision, GateReport
from agentkit.evolution.ledger import WHOLE_LIBRARY, Ledger
from agentkit.evolution.proposal import ProposalRecord, ProposalState

# --- What a proposal has to go through before it serves everybody --------------------------------


Evidence = Literal["gate_or_person", "gate", "none"]
"""Whose word it takes to make a validated proposal active; see ``LifecyclePolicy.evidence``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifecyclePolicy:
    """The rules of the life cycle. The defaults are strict, and work where there is no traffic.

    By default a proposal that every check let pass waits, as ``validated``, until an offline
    comparison on held-out tasks says that it helps, or a person approves it. Nothing becomes active
    on its own words. Where there is traffic, ask for a shadow or a canary stage too. Who must agree
    to changes of which tools is the business of ``ValidationPolicy``.

    Attributes:
        shadow: Whether a proposal is run beside the active definition, unseen by users, before it
            may go on.
        canary: Whether it serves a share of the sessions before it serves all.
        canary_share: Share of the sessions that it serves then, kept in the event that begins the
            canary; None leaves it to the router.
        evidence: Who may let a validated proposal go on: ``gate_or_person``: an offline comparison
            that says yes, a person, or, with a stage of its own to come, that stage; ``gate``: as
            before, but never a person's word alone; ``none``: nobody is asked, which is for tests
            and for libraries that nobody uses yet.

    Raises:
        UsageError: A number is out of range.
    """

    shadow: bool = False
    canary: bool = False
    canary_share: float | None = None
    evidence: Evidence = "gate_or_person"

    def __post_init__(self) -> None:
        if self.canary_share is not None and not 0 <= self.canary_share <= 1:
            raise UsageError(
                f"LifecyclePolicy.canary_share is from 0 to 1, got {self.canary_share}"
            )


# --- Where a proposal stands, and where it goes next ----------------------------------------------


Stage = Literal["shadow", "canary", "active", "rejected"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalStatus:
    """Where a proposal stands, for people.

    Attributes:
        why: What it waits for, whose word it has, or why it ended.
        commands: What may be typed next, one of them or all; none when nothing is to be done.
        stage: Where it goes now, ``rejected`` where a gate speaks against it; None: it stays.
    """

    why: str
    commands: tuple[str, ...] = ()
    stage: Stage | None = None


def next_step(
    record: ProposalRecord, ledger: Ledger, policy: LifecyclePolicy, reports: Sequence[GateReport]
) -> ProposalStatus:
    """Where an open proposal goes next.

    Args:
        record: The proposal.
        ledger: All others.
        policy: Which stages there are, and whose word it takes.
        reports: What the gates say at the stage where it is.
    """
    if record.state == "proposed":
        return consent_awaited(record)
    allowed = _by_evidence(record, policy, reports)
    if allowed.stage in {None, "rejected"}:
        return allowed
    tool, pinned = record.tool_name, ledger.pinned_version(record.tool_name)
    if pinned is not None:
        only = () if WHOLE_LIBRARY in ledger.pins else ("--tool", tool)
        return ProposalStatus(
            why=f"{tool!r} is pinned to library version {pinned}",
            commands=(command("rollback", "--unpin", *only),),
        )
    other = ledger.experiment(tool)
    if other is not None and other.proposal_id != record.proposal_id:
        return ProposalStatus(
            why=f"{other.proposal_id!r} is being tried on {tool!r}",
            commands=(command("review", "show", other.proposal_id),),
        )
    return allowed


def consent_awaited(record: ProposalRecord) -> ProposalStatus:
    """Who has to agree to a proposal before it can be validated."""
    asked = {
        "judge": (
            "a judge of another model",
            command("review", "approve", record.proposal_id, "--judge", "MODEL"),
        ),
        "person": ("a person", command("review", "approve", record.proposal_id)),
    }
    who = [asked[one] for one in record.awaits]
    between = " and "
    if record.needs == ("judge",):
        who, between = list(asked.values()), " or "
    return ProposalStatus(
        why=f"waits for {between.join(name for name, _ in who)} to agree",
        commands=tuple(command for _, command in who),
    )


def together(reports: Sequence[GateReport]) -> Decision:
    """What several gates say together: one that fails is enough, and all must pass."""
    decisions = {report.decision for report in reports}
    if "fail" in decisions:
        return "fail"
    return "pass" if decisions == {"pass"} else "wait"


def recorded_reports(record: ProposalRecord) -> tuple[GateReport, ...]:
    """What each gate said last at the stage where a proposal is."""
    last: dict[str, GateReport] = {}
    for event in record.events:
        if event.kind == record.state:
            last = {}
        elif event.kind == "assessed":
            report = GateReport.from_json(event.facts)
            last[report.gate] = report
    return tuple(last.values())


def _by_evidence(
    record: ProposalRecord, policy: LifecyclePolicy, reports: Sequence[GateReport]
) -> ProposalStatus:
    """Whether it may go on, as far as it is a matter of evidence."""
    verdict, approved = together(reports), "person" in record.agreed
    said = "; ".join(one.reason for one in reports if one.decision == verdict)
    takes_person = policy.evidence == "gate_or_person"
    target: Stage = "active"
    if record.state == "validated" and policy.shadow:
        target = "shadow"
    elif record.state != "canary" and policy.canary:
        target = "canary"
    stage: Stage | None = None
    commands: tuple[str, ...] = ()
    if verdict == "fail":
        stage, why = "rejected", said
    elif record.is_arrival and approved:  # there is nothing to compare it with
        stage, why = "active", "a person approved it"
    elif verdict == "pass":
        stage, why = target, said
    elif record.state != "validated":
        why = said or f"is in {record.state}, with no numbers yet"
        commands = (command("evolve"),)
    elif policy.evidence == "none":
        stage, why = target, "nobody has to be asked"
    elif target != "active":
        stage, why = target, f"every check passed; {target} will tell"
    elif takes_person and approved:
        stage, why = target, "a person approved it"
    else:
        asked = " or a person's approval" if takes_person else ""
        why = said or f"waits for a comparison on held-out tasks{asked}"
        approve = command("review", "approve", record.proposal_id)
        commands = (*((approve,) if takes_person else ()), command("evolve", "--tasks", "FILE"))
    return ProposalStatus(why=why, commands=commands, stage=stage)


def command(*words: str) -> str:
    """A command as a shell takes it.

    Example:
        >>> command("review", "show", "my idea")
        "agentkit review show 'my idea'"
    """
    return " ".join(["agentkit", *map(shlex.quote, words)])


_TRIALS: Mapping[ProposalState, str] = {
    "shadow": "is run beside the answers, unseen, until its numbers decide",
    "canary": "serves a share of the sessions until its numbers decide",
}
"""What happens at a stage whose numbers are not recorded while it lasts."""


def status_of(record: ProposalRecord, ledger: Ledger, policy: LifecyclePolicy) -> ProposalStatus:
    """Where a proposal stands, from what is recorded of it.

    It asks what ``advance`` asks, so that the two cannot say different things; but it reads no
    episodes, so that for shadow and canary the numbers are left to ``advance``.

    Args:
        record: The proposal.
        ledger: All others.
        policy: Which stages there are, and whose word it takes.
    """
    why, proposal_id = record.last_word if not record.is_open else "", record.proposal_id
    if record.state == "active":
        return ProposalStatus(why=why, commands=(command("rollback", proposal_id),))
    if not record.is_open:
        return ProposalStatus(why=why)
    reports = recorded_reports(record)
    step = next_step(record, ledger, policy, reports)
    if step.stage is None:
        trial = "" if reports else _TRIALS.get(record.state, "")
        return ProposalStatus(why=trial or step.why, commands=step.commands)
    ready = f"{step.why}; it {'will end' if step.stage == 'rejected' else 'can go on'}"
    return ProposalStatus(why=ready, commands=(command("review", "approve", proposal_id),))
