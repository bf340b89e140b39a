"""Where a proposal stands, and what whoever is on duty can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.lifecycle.moves import Enter, Wait, command, next_move, recorded_reports
from agentkit.evolution.lifecycle.policy import LifecyclePolicy
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.proposals.proposal import ProposalState

_TRIALS: Mapping[ProposalState, str] = {
    "shadow": "is run beside the answers, unseen, until its numbers decide",
    "canary": "serves a share of the sessions until its numbers decide",
}
"""What happens at a stage whose numbers are not recorded while it lasts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where a proposal stands, for people.

    Attributes:
        why: What it waits for, whose word it has, or why it ended.
        commands: What may be typed next, one of them or all; none when nothing is to be done.
    """

    why: str
    commands: tuple[str, ...] = ()


def standing(record: ProposalRecord, ledger: Ledger, policy: LifecyclePolicy) -> Standing:
    """Where a proposal stands, from what is recorded of it.

    It asks what ``advance`` asks, so that the two can not say different things; but it reads no
    episodes, so that for shadow and canary the numbers are left to ``advance``.

    Args:
        record: The proposal.
        ledger: All others.
        policy: Which stages there are, and whose word it takes.
    """
    if not record.is_open:
        return _ended(record)
    reports = recorded_reports(record)
    move = next_move(record, ledger, policy, reports)
    if isinstance(move, Wait):
        trial = "" if reports else _TRIALS.get(record.state, "")
        return Standing(why=trial or move.why, commands=move.commands)
    ready = f"{move.why}; it can go on" if isinstance(move, Enter) else f"{move.why}; it will end"
    return Standing(why=ready, commands=(command("review", "approve", record.proposal_id),))


def _ended(record: ProposalRecord) -> Standing:
    if record.state == "quarantined":
        release = command("review", "approve", "--proposer", record.proposer)
        return Standing(why=record.last_word, commands=(release,))
    if record.state == "active":
        return Standing(why=record.last_word, commands=(command("rollback", record.proposal_id),))
    if record.overrulable:
        codes = [word for code in record.overrulable for word in ("--overrule", code)]
        overrule = command("review", "approve", record.proposal_id, *codes, "--reason", "WHY")
        return Standing(why=record.last_word, commands=(overrule,))
    return Standing(why=record.last_word)
