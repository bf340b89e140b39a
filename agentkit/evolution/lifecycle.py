"""The life of a proposal: taken in, agreed to, brought on until it serves everybody.

Everything here decides on one ``LibraryState`` and gives a ``Transaction``; nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.episodes import Episode
from agentkit.errors import DefinitionError, UsageError
from agentkit.evolution.checker import CandidateChecker, Judgement, source_episodes
from agentkit.evolution.decide import (
    LifecyclePolicy,
    ProposalStatus,
    Stage,
    next_step,
    recorded_reports,
)
from agentkit.evolution.gates import GateReport
from agentkit.evolution.insertion import MAX_BYTES, CheckResult, Refused, pinned_above
from agentkit.evolution.ledger import EXPERIMENTS, Ledger
from agentkit.evolution.proposal import (
    Consent,
    Proposal,
    ProposalRecord,
    ProposalState,
    RejectedBy,
    outstanding,
)
from agentkit.evolution.repository import LibraryState, Transaction
from agentkit.library.events import Author, EventDraft, cut
from agentkit.library.store import LibraryChange
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class LifecycleContext:
    """What decisions on proposals work with.

    Attributes:
        checker: What candidates are checked with.
        policy: The rules of the life cycle.
        author: Who writes what comes of a decision.
    """

    checker: CandidateChecker
    policy: LifecyclePolicy
    author: Author


# --- Taking in ------------------------------------------------------------------------------------


def check_kept(proposal: Proposal) -> None:
    """Stop a proposal that no event can keep.

    Raises:
        UsageError: The candidate is too large, no JSON, or would not be read back as a definition.
    """
    try:
        record = proposal.to_json()
        size = len(canonical_json(record))
        read = ToolDefinition.from_json(record["candidate"])
    except (DefinitionError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"the candidate is no definition: {error}; give JSON data") from error
    if read.description != proposal.candidate.description:
        raise UsageError("the candidate's description is read back as another one; give JSON data")
    if size > MAX_BYTES:
        raise UsageError(f"the candidate has {size:,} bytes, at most {MAX_BYTES:,} are kept")


async def submit(
    proposal: Proposal,
    state: LibraryState,
    context: LifecycleContext,
    *,
    episodes: Sequence[Episode] = (),
) -> Transaction | None:
    """What is written of a suggestion; None for a proposal that the ledger knows.

    A composite that does what a tool of the library does becomes a change of that tool, which gets
    its worked calls (a merge of InsertTool).

    Args:
        proposal: What a proposer suggests.
        state: The newest state.
        context: What decides, and who writes what comes of it.
        episodes: Whose accepted calls a new rule may not refuse, beside those of its evidence.
    """
    if proposal.proposal_id in state.ledger.proposals:
        return None
    named = source_episodes(context.checker.store, proposal.evidence)
    known = {one.episode_id: one for one in (*named, *episodes)}
    episodes = tuple(known.values())
    result = await context.checker.check(proposal, state, episodes=episodes)
    if result.duplicate is not None and result.base is not None:  # merged: its worked calls move
        reason = f"{proposal.reason}; {proposal.tool_name}: {result.duplicate.reason}"
        proposal = replace(
            proposal, base=result.base.digest, candidate=result.definition, reason=reason
        )
        result = await context.checker.check(proposal, state, episodes=episodes)
    record = ProposalRecord(
        proposal_id=proposal.proposal_id,
        state="proposed",
        tool_name=cut(proposal.tool_name),
        author=proposal.author,
        events=(),
    )
    facts = {"proposal": proposal.to_json(), **result.facts(proposal.base)}
    first = record.event("proposed", proposal.author, proposal.reason, **facts)
    first = replace(first, evidence=proposal.evidence)
    return Transaction(drafts=(first, *_where_checks_bring_it(record, result, context.author)))


def _where_checks_bring_it(
    record: ProposalRecord, result: CheckResult, us: Author
) -> tuple[EventDraft, ...]:
    if result.failed:
        return (record.rejected(result.by, us, failed=(*result.failed, *result.doubts)),)
    return () if result.needs else (record.event("validated", us, "every check passed"),)


# --- Yes and no -----------------------------------------------------------------------------------


def _require_person(author: Author, deed: str) -> None:
    if author.kind != "person":
        raise UsageError(
            f"only a person may {deed}, and {author.name!r} is a {author.kind}; give "
            "Author(kind='person', name=...)"
        )


def approve(
    state: LibraryState, proposal_id: str, person: Author, reason: str, context: LifecycleContext
) -> Transaction | None:
    """A person agrees to a proposal; None when one has agreed already.

    Raises:
        UsageError: There is no such proposal; it is decided; or the author is no person.
    """
    _require_person(person, "approve a proposal")
    record = _undecided(state.ledger, proposal_id)
    if "person" in record.agreed:
        return None
    said = record.event("approved", person, reason)
    return Transaction(drafts=(said, *_validated(record, "person", context.author)))


def judge(
    state: LibraryState, proposal_id: str, judgement: Judgement, context: LifecycleContext
) -> Transaction | None:
    """A judge agrees to a proposal or speaks against it, which rejects it.

    None when a judge has agreed already.

    Raises:
        UsageError: There is no such proposal; it is decided; or the judge is its proposer.
    """
    who, agrees = judgement.author, judgement.agrees
    record = _undecided(state.ledger, proposal_id)
    if (who.kind, who.name) == (record.author.kind, record.author.name):
        raise UsageError(
            f"{who.name!r} made the proposal {proposal_id!r} and cannot judge it; ask another"
        )
    if "judge" in record.agreed:
        return None
    said = record.event("judged", who, judgement.reason, agrees=agrees)
    if agrees:
        return Transaction(drafts=(said, *_validated(record, "judge", context.author)))
    return Transaction(drafts=(said, record.rejected("judge", context.author, judgement.reason)))


def reject(
    state: LibraryState, proposal_id: str, person: Author, reason: str
) -> Transaction | None:
    """A person says no to a proposal; None when it is rejected already.

    Raises:
        UsageError: There is no such proposal; it is or was active; or the author is no person.
    """
    _require_person(person, "reject a proposal")
    record = state.ledger.find(proposal_id)
    if record.state == "rejected":
        return None
    if not record.is_open and record.state != "quarantined":
        raise UsageError(
            f"the proposal {proposal_id!r} is {record.state}; what was active is taken back with "
            "roll_back ('agentkit rollback')"
        )
    return Transaction(drafts=(_ended(record, "person", person, reason),))


def _ended(record: ProposalRecord, by: RejectedBy, author: Author, why: str) -> EventDraft:
    """A proposal that serves somebody is taken back, any other one is rejected."""
    if record.state == "canary":
        return record.event("rolled_back", author, why)
    return record.rejected(by, author, why)


def _undecided(ledger: Ledger, proposal_id: str) -> ProposalRecord:
    record = ledger.find(proposal_id)
    if not record.is_open:
        raise UsageError(
            f"the proposal {proposal_id!r} is decided already: it is "
            f"{record.state.replace('_', ' ')} ({record.last_word}); 'agentkit review show "
            f"{proposal_id}' tells more"
        )
    return record


def _validated(record: ProposalRecord, agreed: Consent, us: Author) -> tuple[EventDraft, ...]:
    """The proposal goes on when nobody else has to agree."""
    if record.state != "proposed" or outstanding(record.needs, (*record.agreed, agreed)):
        return ()
    return (record.event("validated", us, "every check passed, and everybody agreed who must"),)


# --- Going on -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """One proposal, and how far it was brought.

    Attributes:
        record: Where it stands.
        before: Where it stood; ``proposed`` for one that is new.
        why: Whose word brought it on or ended it; or what it waits for.
        report: What the comparison on held-out tasks says; None where none was made.
    """

    record: ProposalRecord
    before: ProposalState = "proposed"
    why: str = ""
    report: GateReport | None = None

    @property
    def after(self) -> ProposalState:
        """Where it stands."""
        return self.record.state

    @property
    def has_moved(self) -> bool:
        """Whether it stands elsewhere than before."""
        return self.before != self.after

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "proposal_id": self.record.proposal_id,
            "tool": self.record.tool_name,
            "stream": self.record.stream,
            "before": self.before,
            "state": self.record.state,
            "why": self.why,
        }
        return record if self.report is None else record | {"held_out": self.report.to_json()}

    def __str__(self) -> str:
        moved = f"{self.before} -> {self.after}" if self.has_moved else f"still {self.after}"
        return f"{self.record.proposal_id} ({self.record.tool_name}): {moved}: {self.why}"


async def promote(
    record: ProposalRecord,
    state: LibraryState,
    reports: Sequence[GateReport],
    context: LifecycleContext,
) -> Transaction | ProposalStatus:
    """What is written to bring an open proposal on by a stage; or what it waits for.

    Args:
        record: The proposal.
        state: The newest state.
        reports: What the gates say at the stage where it is.
        context: What decides, and who writes what comes of it.
    """
    us, tool = context.author, state.library.get(record.tool_name)
    current = "" if tool is None else tool.definition.digest
    if record.state in EXPERIMENTS and current != record.base:
        why = f"{record.tool_name!r} has another revision by now, and the trial compared the old"
        return Transaction(drafts=(record.rejected("library", us, why),))
    step = next_step(record, state.ledger, context.policy, reports)
    if step.stage is None:
        return step
    known = recorded_reports(record)
    said = tuple(assessed(record, us, one) for one in reports if one not in known)
    if step.stage == "rejected":
        return Transaction(drafts=(*said, _ended(record, "gate", us, step.why)))
    entered = await _enter(record, state, step.stage, step.why, context)
    if isinstance(entered, ProposalStatus):
        return entered
    return replace(entered, drafts=(*said, *entered.drafts))


def assessed(record: ProposalRecord, author: Author, report: GateReport) -> EventDraft:
    """What a gate said at the stage of a proposal."""
    return record.event("assessed", author, report.reason, stage=record.state, **report.to_json())


async def _enter(
    record: ProposalRecord,
    state: LibraryState,
    stage: Stage,
    why: str,
    context: LifecycleContext,
) -> Transaction | ProposalStatus:
    """Check a proposal again as the library is now, and let it into its next stage."""
    result = await context.checker.check(record.current, state)
    missing = outstanding(result.needs, record.agreed)
    if result.failed:
        rejected = record.rejected("library", context.author, failed=result.failed)
        return Transaction(drafts=(rejected,))
    if result.waits_for or missing:
        agree = f"by now a {' and a '.join(missing)} must agree"
        return ProposalStatus(why=result.waits_for or agree)
    if stage == "active":
        return await _activated(record, state, result, why, context)
    facts = result.facts(record.base)
    if stage == "canary" and context.policy.canary_share is not None:
        facts["share"] = context.policy.canary_share  # which ``share_of`` reads
    return Transaction(drafts=(record.event(stage, context.author, why, **facts),))


async def _activated(
    record: ProposalRecord,
    state: LibraryState,
    result: CheckResult,
    why: str,
    context: LifecycleContext,
) -> Transaction:
    """The candidate serves everybody, with the composites above pinned to it."""
    candidate, us = result.candidate, context.author
    try:
        above = await pinned_above(candidate, state.library, context.checker.inserting)
    except Refused as refused:
        return Transaction(drafts=(record.rejected("parents", us, failed=(refused.failed,)),))
    facts = result.facts(record.base)
    facts.pop("needs", None)
    if above:
        facts["repinned"] = {one.name: one.digest for one in above}
    earlier = state.ledger.active(record.tool_name)
    superseded = (
        ()
        if earlier is None
        else (earlier.event("superseded", us, f"{record.proposal_id} took its place"),)
    )
    evidence = record.events[0].evidence
    active = replace(
        record.event("active", us, why, **facts),
        evidence=evidence,
        digest_before="" if result.base is None else result.base.digest,
        digest_after=candidate.digest,
    )
    change = LibraryChange(
        proposal_id=record.proposal_id,
        upserts=(candidate, *above),
        reason=record.reason or why,
        evidence=evidence,
    )
    return Transaction(drafts=(*superseded, active), change=change)
