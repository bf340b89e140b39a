"""Rejections, and what becomes of a proposer that earns too many in a row."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.lifecycle.drafts import Scribe, checks_to_json, told
from agentkit.evolution.lifecycle.ledger import COUNTED, Ledger
from agentkit.evolution.lifecycle.policy import LifecyclePolicy
from agentkit.evolution.lifecycle.screening import RejectedBy
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.chain import EventDraft


def rejection(
    scribe: Scribe,
    ledger: Ledger,
    policy: LifecyclePolicy,
    *,
    proposer: str,
    is_person: bool,
    by: RejectedBy,
    failed: Iterable[FailedCheck] = (),
    reason: str = "",
) -> tuple[EventDraft, ...]:
    """A proposal is rejected; its proposer is quarantined when that was one too many.

    Args:
        scribe: Words the events about the proposal.
        ledger: Before the rejection.
        policy: How many are too many.
        proposer: Who suggested it, as ``proposer_name`` says.
        is_person: Whether that is a person. None is ever quarantined: persons are who release.
        by: Who said no.
        failed: Every reason, for a check's rejection.
        reason: Why in words, for anybody else's.
    """
    reasons = tuple(failed)
    facts = {"by": by, "failed": checks_to_json(reasons)}
    rejected = scribe.draft("rejected", reason or told(reasons), **facts)
    known = ledger.proposer(proposer)
    counts = by in COUNTED and not is_person and not known.is_quarantined
    if not counts or not 0 < policy.quarantine_after <= known.rejected_in_a_row + 1:
        return (rejected,)
    return rejected, *_quarantine(scribe, ledger, proposer, known.rejected_in_a_row + 1)


def _quarantine(
    scribe: Scribe, ledger: Ledger, proposer: str, count: int
) -> tuple[EventDraft, ...]:
    why = f"{count} proposals of {proposer!r} were rejected in a row"
    announced = EventDraft(
        kind="proposer_quarantined",
        author=scribe.author,
        reason=why,
        library_version=scribe.version,
        facts={"proposer": proposer},
    )
    open_ones = [
        Scribe.of(record, scribe.author, version=scribe.version).draft("quarantined", why)
        for record in ledger.open_of(proposer)
        if record.proposal_id != scribe.proposal_id
    ]
    return announced, *open_ones
