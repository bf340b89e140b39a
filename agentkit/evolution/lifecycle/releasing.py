"""Taking a quarantined proposer up again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.consenting import require_person
from agentkit.evolution.lifecycle.drafts import (
    Scribe,
    checks_to_json,
    screening_facts,
    told,
)
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.screening import Screen, Screened
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author


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
