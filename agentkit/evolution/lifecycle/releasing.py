"""Taking a quarantined proposer up again."""

from __future__ import annotations

from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.consenting import require_person
from agentkit.evolution.lifecycle.drafts import (
    Scribe,
    checks_to_json,
    screening_facts,
    told,
)
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.screening import Screen
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author


async def release_step(
    on: Position, proposer: str, person: Author, reason: str, *, screen: Screen, author: Author
) -> Step | None:
    """Release a proposer; its quarantined proposals are looked at anew.

    What fails then was rejected by checks, but does not count towards the next quarantine.
    None when the proposer is not in quarantine.

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
        for draft in await _taken_up(record, on, person, author, screen)
    ]
    return Step(drafts=(released, *again))


async def _taken_up(
    record: ProposalRecord, on: Position, person: Author, author: Author, screen: Screen
) -> tuple[EventDraft, ...]:
    version = on.library.version
    by_person = Scribe.of(record, person, version=version)
    checked = Scribe.of(record, author, version=version)
    why = f"{record.proposer!r} was released"
    if record.candidate is None:
        first = by_person.draft("rejected", "the answer can not be read as a proposal", by="person")
        return (first,)
    screened = await screen.look(record.candidate, record.base, on)
    first = by_person.draft("proposed", why, **screening_facts(screened, record.base))
    if screened.failed:
        facts = {"by": "library", "failed": checks_to_json(screened.failed)}
        return first, checked.draft("rejected", told(screened.failed), **facts)
    if screened.needs:
        return (first,)
    return first, checked.draft("validated", "every check passed")
