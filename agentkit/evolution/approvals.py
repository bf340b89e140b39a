"""Judges and persons say yes or no to proposals; what they say becomes events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from agentkit.errors import UsageError
from agentkit.evolution.checker import RejectedBy, Screen, Screened
from agentkit.evolution.decide import LifecyclePolicy, command
from agentkit.evolution.gates import GateReport
from agentkit.evolution.ledger import COUNTED, Ledger
from agentkit.evolution.proposal import (
    Consent,
    Proposal,
    ProposalRecord,
    ProposalState,
    UnreadableProposal,
    outstanding,
)
from agentkit.evolution.repository import Position, Step
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.event_chain import EventDraft, cut
from agentkit.library.events import Author, EventKind

# --- The events of the life cycle before they have a place in the chain --------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Scribe:
    """Words the events about one proposal.

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
    def of(cls, record: ProposalRecord, author: Author, *, version: int) -> Scribe:
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


def proposed(proposal: Proposal, screened: Screened, *, version: int) -> EventDraft:
    """Somebody suggests a change."""
    return EventDraft(
        kind="proposed",
        author=proposal.author,
        reason=cut(proposal.reason),
        proposal_id=proposal.proposal_id,
        tool_name=proposal.tool_name,
        library_version=version,
        evidence=proposal.evidence,
        facts={"proposal": proposal.to_json(), **screening_facts(screened, proposal.base)},
    )


def unreadable(answer: UnreadableProposal, proposal_id: str, *, version: int) -> EventDraft:
    """Somebody answered what can not be read as a proposal."""
    return EventDraft(
        kind="proposed",
        author=answer.author,
        reason="the answer can not be read as a proposal",
        proposal_id=proposal_id,
        tool_name=cut(answer.tool_name),
        library_version=version,
        facts={"unreadable": {"stream": answer.stream, "text": cut(answer.text)}},
    )


def screening_facts(screened: Screened, base: str) -> dict[str, Any]:
    """Who must agree, and the candidate where it was moved to another revision than ``base``."""
    facts: dict[str, Any] = {"needs": list(screened.needs)} if screened.needs else {}
    if screened.base is not None and not screened.failed and screened.base.digest != base:
        facts |= {"base": screened.base.digest, "candidate": screened.candidate.to_json()}
    return facts


def told(failed: Iterable[FailedCheck]) -> str:
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


# --- Rejections, and what becomes of a proposer that earns too many in a row ---------------------


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


# --- A judge or a person says yes or no to a proposal --------------------------------------------


def record_of(ledger: Ledger, proposal_id: str) -> ProposalRecord:
    """The proposal of that id.

    Raises:
        UsageError: There is none.
    """
    record = ledger.proposals.get(proposal_id)
    if record is None:
        begun = [one for one in ledger.proposals if proposal_id and one.startswith(proposal_id)]
        if len(begun) == 1:
            return ledger.proposals[begun[0]]
        near = f"; {len(begun)} begin like that" if begun else ""
        raise UsageError(
            f"there is no proposal {proposal_id!r}{near}; 'agentkit review list --all' shows all"
        )
    return record


def require_person(author: Author, deed: str) -> None:
    """Let only persons pass.

    Raises:
        UsageError: The author is a model or a program.
    """
    if author.kind != "person":
        raise UsageError(
            f"only a person may {deed}, and {author.name!r} is a {author.kind}; give "
            "Author(kind='person', name=...)"
        )


def approval(
    on: Position, proposal_id: str, person: Author, reason: str, *, author: Author
) -> Step | None:
    """A person agrees to a proposal; None when one has agreed already.

    Raises:
        UsageError: There is no such proposal; it is decided; or the author is no person.
    """
    require_person(person, "approve a proposal")
    record = _undecided(on.ledger, proposal_id)
    if "person" in record.agreed:
        return None
    said = Scribe.of(record, person, version=on.library.version).draft("approved", reason)
    return Step(drafts=(said, *_validated(record, "person", on, author)))


def judgement(
    on: Position,
    proposal_id: str,
    judge: Author,
    reason: str,
    *,
    agrees: bool,
    policy: LifecyclePolicy,
    author: Author,
) -> Step | None:
    """A judge agrees to a proposal or speaks against it, which rejects it.

    None when a judge has agreed already.

    Raises:
        UsageError: There is no such proposal; it is decided; or the judge is its proposer.
    """
    record = _undecided(on.ledger, proposal_id)
    if judge.kind == record.author.kind and judge.name == record.author.name:
        raise UsageError(
            f"{judge.name!r} made the proposal {proposal_id!r} and can not judge it; ask another"
        )
    if "judge" in record.agreed:
        return None
    version = on.library.version
    said = Scribe.of(record, judge, version=version).draft("judged", reason, agrees=agrees)
    if agrees:
        return Step(drafts=(said, *_validated(record, "judge", on, author)))
    no = rejection(
        Scribe.of(record, author, version=version),
        on.ledger,
        policy,
        proposer=record.proposer,
        is_person=record.author.kind == "person",
        by="judge",
        reason=reason,
    )
    return Step(drafts=(said, *no))


def refusal(
    on: Position, proposal_id: str, person: Author, reason: str, *, policy: LifecyclePolicy
) -> Step | None:
    """A person says no to an open or quarantined proposal; None when it is rejected already.

    Raises:
        UsageError: There is no such proposal; it is or was active; or the author is no person.
    """
    require_person(person, "reject a proposal")
    record = record_of(on.ledger, proposal_id)
    if record.state == "rejected":
        return None
    if not record.is_open and record.state != "quarantined":
        raise UsageError(
            f"the proposal {proposal_id!r} is {record.state}; what was active is taken back with "
            "roll_back ('agentkit rollback')"
        )
    scribe = Scribe.of(record, person, version=on.library.version)
    if record.state == "canary":
        return Step(drafts=(scribe.draft("rolled_back", reason),))
    return Step(
        drafts=rejection(
            scribe,
            on.ledger,
            policy,
            proposer=record.proposer,
            is_person=record.author.kind == "person",
            by="person",
            reason=reason,
        )
    )


def _undecided(ledger: Ledger, proposal_id: str) -> ProposalRecord:
    record = record_of(ledger, proposal_id)
    if not record.is_open:
        raise UsageError(
            f"the proposal {proposal_id!r} is decided already: it is "
            f"{record.state.replace('_', ' ')} ({record.last_word}); 'agentkit review show "
            f"{proposal_id}' tells more"
        )
    return record


def _validated(
    record: ProposalRecord, agreed: Consent, on: Position, author: Author
) -> tuple[EventDraft, ...]:
    """The proposal comes on when nobody else has to agree."""
    if record.state != "proposed" or outstanding(record.needs, (*record.agreed, agreed)):
        return ()
    scribe = Scribe.of(record, author, version=on.library.version)
    return (scribe.draft("validated", "every check passed, and everybody agreed who must"),)


# --- Taking a quarantined proposer up again ------------------------------------------------------


async def release_step(
    on: Position,
    proposer: str,
    person: Author,
    reason: str,
    *,
    screen: Screen,
    author: Author,
    sources: Callable[[ProposalRecord], tuple[str, ...]],
) -> Step | None:
    """Release a proposer; its quarantined proposals are looked at anew.

    What fails then was rejected by checks, but does not count towards the next quarantine.
    None when the proposer is not in quarantine.

    Args:
        on: The newest position.
        proposer: Its name.
        person: Who releases it.
        reason: Why.
        screen: What candidates are looked at with.
        author: Who writes what comes of the checks.
        sources: Texts that the candidate of a proposal must not copy from.

    Raises:
        UsageError: The author is no person; or nobody of that name ever proposed anything.
    """
    require_person(person, "release a proposer")
    if proposer not in on.ledger.proposers:
        known = ", ".join(map(repr, sorted(on.ledger.proposers))) or "nobody yet"
        raise UsageError(f"{proposer!r} never proposed anything; proposers are {known}")
    if not on.ledger.is_quarantined(proposer):
        return None
    released = EventDraft(
        kind="proposer_released",
        author=person,
        reason=reason,
        library_version=on.library.version,
        facts={"proposer": proposer},
    )
    again = [
        draft
        for record in on.ledger.proposals.values()
        if record.state == "quarantined" and record.proposer == proposer
        for draft in await _looked_at_anew(
            record, on, person, author, screen, sources=sources(record)
        )
    ]
    return Step(drafts=(released, *again))


async def _looked_at_anew(
    record: ProposalRecord,
    on: Position,
    person: Author,
    author: Author,
    screen: Screen,
    *,
    sources: tuple[str, ...],
) -> tuple[EventDraft, ...]:
    by_person = Scribe.of(record, person, version=on.library.version)
    why = f"{record.proposer!r} was released"
    if record.candidate is None:
        unread = "the answer can not be read as a proposal"
        return (by_person.draft("rejected", unread, by="library"),)  # which is not counted
    screened = await screen.look(
        record.candidate,
        record.base,
        on,
        sources=sources,
        overruled=record.overruled,
        proposal=record.proposal,
    )
    return taken_up_again(record, screened, by_person, author, why)


def taken_up_again(
    record: ProposalRecord, screened: Screened, by_person: Scribe, author: Author, why: str
) -> tuple[EventDraft, ...]:
    """A proposal that a person lets in again stands where the checks bring it now.

    What they reject does not count against its proposer.

    Args:
        record: The proposal.
        screened: What it comes to on the newest library.
        by_person: Words the events of that person.
        author: Who writes what comes of the checks.
        why: What the person did.
    """
    first = by_person.draft("proposed", why, **screening_facts(screened, record.base))
    checked = replace(by_person, author=author)
    if screened.failed:
        facts = {"by": "library", "failed": checks_to_json(screened.failed)}
        return first, checked.draft("rejected", told(screened.failed), **facts)
    if screened.needs:
        return (first,)
    return first, checked.draft("validated", "every check passed")


# --- A person says that checks were wrong about the words of a proposal --------------------------


async def overruling_step(
    on: Position,
    proposal_id: str,
    codes: Collection[str],
    person: Author,
    reason: str,
    *,
    screen: Screen,
    author: Author,
    sources: tuple[str, ...] = (),
) -> Step | None:
    """A person overrules every check that rejected a proposal, which is then taken up again.

    It stands where it would stand had these checks passed: whoever must agree is asked, and every
    gate decides. None when that was done already.

    Args:
        on: The newest position.
        proposal_id: Which.
        codes: The codes that the person overrules: all for which it is rejected.
        person: Who overrules.
        reason: Why.
        screen: What candidates are looked at with.
        author: Who writes what comes of the checks.
        sources: Texts that the candidate must not copy from.

    Raises:
        UsageError: There is no such proposal, or it is not rejected; codes are missing, or may not
            be overruled; its proposer is in quarantine; the author is no person; no reason is
            given.
    """
    require_person(person, "overrule a check")
    record = record_of(on.ledger, proposal_id)
    if record.state != "rejected" and codes and _did(record).issuperset(codes):
        return None
    _require_overrulable(record, frozenset(codes))
    if not reason.strip():
        raise UsageError("say why the checks are wrong: a reason is kept with every overruling")
    if on.ledger.is_quarantined(record.proposer):
        release = command("review", "approve", "--proposer", record.proposer)
        raise UsageError(
            f"nothing is taken from {record.proposer!r}, which is in quarantine; look at what else "
            f"it suggested, then '{release}'"
        )
    if record.candidate is None:
        raise AssertionError("what can not be read is rejected with codes that stand")
    failed = record.failed
    screened = await screen.look(
        record.candidate,
        record.base,
        on,
        sources=sources,
        overruled=(*record.overruled, *failed),
        proposal=record.proposal,
    )
    by_person = Scribe.of(record, person, version=on.library.version)
    said = by_person.draft("overruled", reason, overruled=checks_to_json(failed))
    why = f"{person.name} overruled {', '.join(record.overrulable)}"
    return Step(drafts=(said, *taken_up_again(record, screened, by_person, author, why)))


def _did(record: ProposalRecord) -> frozenset[str]:
    """The codes that were overruled before."""
    return frozenset(check.code for check in record.overruled)


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
