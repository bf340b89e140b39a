"""Take proposals in, and bring them from one state to the next, up to serving everybody.

Everything here decides on one ``LibraryState`` and gives a ``Transaction``; nothing is written.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentkit.episodes import Episode
from agentkit.errors import DefinitionError, LibraryError
from agentkit.evolution.approvals import EventWriter, LifecycleContext
from agentkit.evolution.checker import CheckResult
from agentkit.evolution.decide import (
    Move,
    ProposalStatus,
    next_step,
    recorded_reports,
)
from agentkit.evolution.gates import GateReport
from agentkit.evolution.insertion import MAX_BYTES, Above, breaks, look_above
from agentkit.evolution.ledger import EXPERIMENTS
from agentkit.evolution.proposal import (
    Proposal,
    ProposalRecord,
    ProposalState,
    Suggestion,
    UnreadableProposal,
    outstanding,
)
from agentkit.evolution.repository import LibraryState, Transaction
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import cut
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    """What came of bringing a proposal on.

    Attributes:
        proposal_id: Which.
        tool_name: The tool that it changes.
        before: Where it stood.
        after: Where it stands.
        why: Whose word brought it on or ended it; or what it waits for.
    """

    proposal_id: str
    tool_name: str
    before: ProposalState
    after: ProposalState
    why: str

    @classmethod
    def between(cls, before: ProposalRecord, after: ProposalRecord, why: str) -> Transition:
        """From one record of a proposal to a later one."""
        return cls(
            proposal_id=after.proposal_id,
            tool_name=after.tool_name,
            before=before.state,
            after=after.state,
            why=why,
        )

    @property
    def has_moved(self) -> bool:
        """Whether it stands elsewhere than before."""
        return self.before != self.after

    def __str__(self) -> str:
        moved = f"{self.before} -> {self.after}" if self.has_moved else f"still {self.after}"
        return f"{self.proposal_id} ({self.tool_name}): {moved}: {self.why}"


# --- Taking in ------------------------------------------------------------------------------------


def identified(suggestion: Suggestion) -> tuple[str, Suggestion]:
    """A suggestion in a form that an event can keep, and the id that the ledger gives it.

    A candidate that is too large, no JSON, or would not be read back as a definition is unreadable.
    An answer that can not be read has no id of its own: the same rubbish twice is two answers.

    Args:
        suggestion: What a proposer suggests.
    """
    kept = _readable(suggestion) if isinstance(suggestion, Proposal) else suggestion
    if isinstance(kept, Proposal):
        return kept.proposal_id, kept
    return f"unreadable-{uuid.uuid4().hex[:20]}", kept


def _readable(proposal: Proposal) -> Suggestion:
    try:
        record = proposal.to_json()
        size = len(canonical_json(record))
        ToolDefinition.from_json(record["candidate"])
    except DefinitionError as error:
        code, message = "malformed", f"the candidate is no definition: {error}"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        code, message = "not_json", f"the candidate is no JSON data: {error}"
    else:
        if size <= MAX_BYTES:
            return proposal
        code = "too_large"
        message = f"the candidate has {size:,} bytes, at most {MAX_BYTES:,} are kept"
    failed = FailedCheck(
        code=code,
        layer="lexical",
        message=message,
        advice="answer with the changed texts alone, as JSON data",
    )
    return UnreadableProposal(
        author=proposal.author,
        stream=proposal.stream,
        tool_name=proposal.tool_name,
        text=str(getattr(proposal.candidate.description, "summary", "")),
        failed=(failed,),
    )


async def submit(
    proposal_id: str,
    suggestion: Suggestion,
    state: LibraryState,
    context: LifecycleContext,
    *,
    sources: tuple[str, ...] = (),
    episodes: Sequence[Episode] = (),
) -> Transaction | None:
    """What is written of a suggestion; None for a proposal that the ledger knows.

    Args:
        proposal_id: The id that ``identified`` gave it.
        suggestion: What a proposer suggests.
        state: The newest state.
        context: What decides, and who writes what comes of it.
        sources: Texts that a candidate must not copy from.
        episodes: Whose accepted calls a new rule may not refuse.
    """
    if proposal_id in state.ledger.proposals:
        return None
    version = state.library.version
    writer = EventWriter(
        author=context.author,
        proposal_id=proposal_id,
        tool_name=cut(suggestion.tool_name),
        version=version,
    )
    if isinstance(suggestion, UnreadableProposal):
        unread = {"stream": suggestion.stream, "text": cut(suggestion.text)}
        why = "the answer can not be read as a proposal"
        first = replace(writer, author=suggestion.author).draft("proposed", why, unreadable=unread)
        return Transaction(drafts=(first, writer.rejected("unreadable", failed=suggestion.failed)))
    result = await context.checker.check(
        suggestion.candidate,
        suggestion.base,
        state,
        sources=sources,
        proposal=suggestion,
        episodes=episodes,
    )
    facts = {"proposal": suggestion.to_json(), **result.facts(suggestion.base)}
    first = replace(
        writer.draft("proposed", suggestion.reason, **facts),
        author=suggestion.author,
        evidence=suggestion.evidence,
    )
    if result.failed:
        return Transaction(drafts=(first, writer.rejected(result.by, failed=result.failed)))
    if result.needs:
        return Transaction(drafts=(first,))
    return Transaction(drafts=(first, writer.draft("validated", "every check passed")))


# --- Going on -------------------------------------------------------------------------------------


async def promote(
    record: ProposalRecord,
    state: LibraryState,
    reports: Sequence[GateReport],
    context: LifecycleContext,
    *,
    sources: tuple[str, ...] = (),
) -> Transaction | ProposalStatus:
    """What is written to bring an open proposal on by a stage; or what it waits for.

    Args:
        record: The proposal.
        state: The newest state.
        reports: What the gates say at the stage where it is.
        context: What decides, and who writes what comes of it.
        sources: Texts that the candidate must not copy from.
    """
    writer = EventWriter.of(record, context.author, version=state.library.version)
    tool = state.library.get(record.tool_name)
    current = "" if tool is None else tool.definition.digest
    if record.state in EXPERIMENTS and current != record.base:
        why = f"{record.tool_name!r} has another revision by now, and the trial compared the old"
        return Transaction(drafts=(writer.rejected("library", reason=why),))
    step = next_step(record, state.ledger, context.policy, reports)
    if isinstance(step, ProposalStatus):
        return step
    known = recorded_reports(record)
    said = tuple(writer.assessed(record.state, one) for one in reports if one not in known)
    if step.stage == "rejected":
        if record.state == "canary":
            return Transaction(drafts=(*said, writer.draft("rolled_back", step.why)))
        return Transaction(drafts=(*said, writer.rejected("gate", reason=step.why)))
    entered = await _enter(writer, record, state, step, context=context, sources=sources)
    if isinstance(entered, ProposalStatus):
        return entered
    return replace(entered, drafts=(*said, *entered.drafts))


async def _enter(
    writer: EventWriter,
    record: ProposalRecord,
    state: LibraryState,
    step: Move,
    *,
    context: LifecycleContext,
    sources: tuple[str, ...],
) -> Transaction | ProposalStatus:
    """Check a proposal again as the library is now, and let it into its next stage."""
    if record.candidate is None:  # an answer that could not be read is never validated
        return ProposalStatus(why="it has no candidate")
    result = await context.checker.check_record(record, state, sources)
    missing = outstanding(result.needs, record.agreed)
    if result.failed:
        return Transaction(drafts=(writer.rejected("library", failed=result.failed),))
    if result.waits_for or missing:
        agree = f"by now a {' and a '.join(missing)} must agree"
        return ProposalStatus(why=result.waits_for or agree)
    if step.stage == "active":
        return await _activated(writer, record, state, result, step.why, context=context)
    facts = result.facts(record.base)
    if step.stage == "canary" and context.policy.canary_share is not None:
        facts["share"] = context.policy.canary_share  # which ``experiment_of`` reads
    return Transaction(drafts=(writer.draft(step.stage, step.why, **facts),))


async def _activated(
    writer: EventWriter,
    record: ProposalRecord,
    state: LibraryState,
    result: CheckResult,
    why: str,
    *,
    context: LifecycleContext,
) -> Transaction:
    """The candidate serves everybody, with the composites above pinned to it."""
    candidate = result.candidate
    try:
        above = await look_above(candidate, state.library, context.checker.inserting)
    except LibraryError as error:
        above = Above(broken=(breaks(candidate, candidate.name, str(error)),))
    if above.broken:
        return Transaction(drafts=(writer.rejected("parents", failed=above.broken),))
    after = replace(writer, version=state.library.version + 1)
    facts = result.facts(record.base)
    facts.pop("needs", None)
    if above.repinned:
        facts["repinned"] = {one.name: one.digest for one in above.repinned}
    drafts = []
    earlier = state.ledger.active(record.tool_name)
    if earlier is not None:
        about = replace(after, proposal_id=earlier.proposal_id)
        drafts.append(about.draft("superseded", f"{record.proposal_id} took its place"))
    evidence = record.events[0].evidence
    drafts.append(
        replace(
            after.draft("active", why, **facts),
            evidence=evidence,
            digest_before="" if result.base is None else result.base.digest,
            digest_after=candidate.digest,
        )
    )
    return Transaction(
        drafts=tuple(drafts),
        upserts=(candidate, *above.repinned),
        change_id=record.proposal_id,
        reason=record.reason or why,
        evidence=evidence,
    )
