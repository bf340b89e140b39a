"""The life of a proposal: taken in, agreed to, overruled, brought on until it serves everybody.

Everything here decides on one ``LibraryState`` and gives a ``Transaction``; nothing is written.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.episodes import Episode
from agentkit.errors import DefinitionError, UsageError
from agentkit.evolution.checker import CandidateChecker, CheckResult, Judgement, RejectedBy
from agentkit.evolution.decide import (
    LifecyclePolicy,
    Move,
    ProposalStatus,
    next_step,
    recorded_reports,
)
from agentkit.evolution.gates import GateReport
from agentkit.evolution.insertion import MAX_BYTES, Refused, pinned_above
from agentkit.evolution.ledger import EXPERIMENTS, Ledger
from agentkit.evolution.proposal import (
    Consent,
    Proposal,
    ProposalRecord,
    ProposalState,
    Suggestion,
    UnreadableProposal,
    outstanding,
)
from agentkit.evolution.repository import LibraryState, Transaction
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author, EventDraft, EventKind, cut
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition

# --- Events about one proposal --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class EventWriter:
    """Writes the events about one proposal.

    Attributes:
        author: Who does what is told.
        proposal_id: The proposal.
        tool_name: The tool that it would change.
        version: The newest library version once it has happened.
    """

    author: Author
    proposal_id: str
    tool_name: str
    version: int

    @classmethod
    def of(cls, record: ProposalRecord, author: Author, *, version: int) -> EventWriter:
        """One for a proposal that the ledger knows."""
        return cls(
            author=author,
            proposal_id=record.proposal_id,
            tool_name=record.tool_name,
            version=version,
        )

    def draft(self, kind: EventKind, why: str, **facts: Any) -> EventDraft:
        """That something happened, and why."""
        return EventDraft(
            kind=kind,
            author=self.author,
            reason=cut(why),
            proposal_id=self.proposal_id,
            tool_name=self.tool_name,
            library_version=self.version,
            facts=facts,
        )

    def assessed(self, stage: ProposalState, report: GateReport) -> EventDraft:
        """What a gate said at a stage."""
        return self.draft("assessed", report.reason, stage=stage, **report.to_json())

    def rejected(
        self, by: RejectedBy, *, failed: Iterable[FailedCheck] = (), reason: str = ""
    ) -> EventDraft:
        """The proposal is rejected.

        Args:
            by: Who said no.
            failed: Every reason, for a check's rejection.
            reason: Why in words, for anybody else's.
        """
        reasons = tuple(failed)
        why = reason or checks_text(reasons)
        return self.draft("rejected", why, by=by, failed=checks_to_json(reasons))


def checks_text(failed: Iterable[FailedCheck]) -> str:
    """Failed checks as one sentence; what is said of several fields is said once."""
    fields: dict[tuple[str, str], list[str]] = {}
    for check in failed:
        fields.setdefault((check.code, check.message), []).append(check.field)
    return "; ".join(
        f"[{code}]{' in ' if any(places) else ''}{', '.join(places)}: {message}"
        for (code, message), places in fields.items()
    )


def checks_to_json(failed: Iterable[FailedCheck]) -> list[dict[str, str]]:
    """Failed checks as an event keeps them; they quote foreign text."""
    empty = {"message": "", "advice": ""}  # which reading asks for
    return [
        {name: cut(value) for name, value in (empty | check.to_json()).items()} for check in failed
    ]


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
    except (DefinitionError, ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f"the candidate is no definition: {error}"
    else:
        if size <= MAX_BYTES:
            return proposal
        message = f"the candidate has {size:,} bytes, at most {MAX_BYTES:,} are kept"
    failed = FailedCheck(
        code="malformed",
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
    return Transaction(drafts=(first, *_where_checks_bring_it(result, writer)))


def _where_checks_bring_it(result: CheckResult, writer: EventWriter) -> tuple[EventDraft, ...]:
    if result.failed:
        return (writer.rejected(result.by, failed=result.failed),)
    return () if result.needs else (writer.draft("validated", "every check passed"),)


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
    said = EventWriter.of(record, person, version=state.library.version).draft("approved", reason)
    return Transaction(drafts=(said, *_validated(record, "person", state, context.author)))


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
            f"{who.name!r} made the proposal {proposal_id!r} and can not judge it; ask another"
        )
    if "judge" in record.agreed:
        return None
    by_judge = EventWriter.of(record, who, version=state.library.version)
    said = by_judge.draft("judged", judgement.reason, agrees=agrees)
    if agrees:
        return Transaction(drafts=(said, *_validated(record, "judge", state, context.author)))
    by_us = replace(by_judge, author=context.author)
    return Transaction(drafts=(said, by_us.rejected("judge", reason=judgement.reason)))


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
    writer = EventWriter.of(record, person, version=state.library.version)
    if record.state == "canary":
        return Transaction(drafts=(writer.draft("rolled_back", reason),))
    return Transaction(drafts=(writer.rejected("person", reason=reason),))


def _undecided(ledger: Ledger, proposal_id: str) -> ProposalRecord:
    record = ledger.find(proposal_id)
    if not record.is_open:
        raise UsageError(
            f"the proposal {proposal_id!r} is decided already: it is "
            f"{record.state.replace('_', ' ')} ({record.last_word}); 'agentkit review show "
            f"{proposal_id}' tells more"
        )
    return record


def _validated(
    record: ProposalRecord, agreed: Consent, state: LibraryState, author: Author
) -> tuple[EventDraft, ...]:
    """The proposal goes on when nobody else has to agree."""
    if record.state != "proposed" or outstanding(record.needs, (*record.agreed, agreed)):
        return ()
    writer = EventWriter.of(record, author, version=state.library.version)
    return (writer.draft("validated", "every check passed, and everybody agreed who must"),)


# --- A person overrules the checks ----------------------------------------------------------------


async def overrule(
    state: LibraryState,
    proposal_id: str,
    codes: Collection[str],
    person: Author,
    reason: str,
    *,
    context: LifecycleContext,
    sources: tuple[str, ...] = (),
) -> Transaction | None:
    """A person overrules every check that rejected a proposal, which is then taken up again.

    It stands where it would stand had these checks passed: whoever must agree is asked, and every
    gate decides. None when that was done already.

    Args:
        state: The newest state.
        proposal_id: Which.
        codes: The codes that the person overrules: all for which it is rejected.
        person: Who overrules.
        reason: Why.
        context: What the candidate is checked with, and who writes what comes of it.
        sources: Texts that the candidate must not copy from.

    Raises:
        UsageError: There is no such proposal, or it is not rejected; codes are missing, or may not
            be overruled; the author is no person; no reason is given.
    """
    _require_person(person, "overrule a check")
    record = state.ledger.find(proposal_id)
    before = {check.code for check in record.overruled}
    if record.state != "rejected" and codes and before.issuperset(codes):
        return None
    _require_overrulable(record, frozenset(codes))
    if not reason.strip():
        raise UsageError("say why the checks are wrong: a reason is kept with every overruling")
    failed = record.failed
    result = await context.checker.check_record(record, state, sources, overruled=failed)
    by_person = EventWriter.of(record, person, version=state.library.version)
    said = by_person.draft("overruled", reason, overruled=checks_to_json(failed))
    why = f"{person.name} overruled {', '.join(record.overrulable)}"
    first = by_person.draft("proposed", why, **result.facts(record.base))
    after = _where_checks_bring_it(result, replace(by_person, author=context.author))
    return Transaction(drafts=(said, first, *after))


def _require_overrulable(record: ProposalRecord, codes: frozenset[str]) -> None:
    name = repr(record.proposal_id)
    if record.state != "rejected":
        raise UsageError(f"the proposal {name} is {record.state}: no check stands against it")
    if not record.failed:
        raise UsageError(
            f"the proposal {name} was rejected by a {record.rejection.facts.get('by')} "
            f"({record.last_word}); only what checks say of its words can be overruled"
        )
    found = {check.code for check in record.failed}
    final = found - record.may_be_overruled
    if final:
        raise UsageError(
            f"nobody may overrule {_listed(final)}, for which the proposal {name} is rejected too; "
            "let it be suggested in other words"
        )
    if codes != found:
        raise UsageError(
            f"the proposal {name} is rejected for {_listed(found)}; name each of them, and no "
            f"others (got {_listed(codes) or 'none'}): you answer for what you overrule"
        )


def _listed(codes: Collection[str]) -> str:
    return ", ".join(sorted(codes))


# --- Going on -------------------------------------------------------------------------------------


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
        above = await pinned_above(candidate, state.library, context.checker.inserting)
    except Refused as refused:
        return Transaction(drafts=(writer.rejected("parents", failed=(refused.failed,)),))
    after = replace(writer, version=state.library.version + 1)
    facts = result.facts(record.base)
    facts.pop("needs", None)
    if above:
        facts["repinned"] = {one.name: one.digest for one in above}
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
        upserts=(candidate, *above),
        change_id=record.proposal_id,
        reason=record.reason or why,
        evidence=evidence,
    )
