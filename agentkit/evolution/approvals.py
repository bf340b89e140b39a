"""Judges and persons say yes or no to proposals; what they say becomes events."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from agentkit.errors import UsageError
from agentkit.evolution.checker import CandidateChecker, CheckResult, Judgement, RejectedBy
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateReport
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.proposal import Consent, ProposalRecord, ProposalState, outstanding
from agentkit.evolution.repository import LibraryState, Transaction
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author, EventDraft, EventKind, cut

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


def _where_checks_bring_it(result: CheckResult, writer: EventWriter) -> tuple[EventDraft, ...]:
    if result.failed:
        return (writer.rejected("library", failed=result.failed),)
    return () if result.needs else (writer.draft("validated", "every check passed"),)


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
