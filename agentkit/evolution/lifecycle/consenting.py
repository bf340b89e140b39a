"""A judge or a person says yes or no to a proposal."""

from __future__ import annotations

from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.drafts import Scribe
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.lifecycle.policy import LifecyclePolicy
from agentkit.evolution.lifecycle.record import Consent, ProposalRecord, outstanding
from agentkit.evolution.lifecycle.rejecting import rejection
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author


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
