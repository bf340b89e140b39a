"""A person says that checks were wrong about the words of a proposal."""

from __future__ import annotations

from collections.abc import Collection

from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.consenting import record_of, require_person
from agentkit.evolution.lifecycle.drafts import Scribe, checks_to_json
from agentkit.evolution.lifecycle.moves import command
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.releasing import taken_up_again
from agentkit.evolution.lifecycle.screening import Screen
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.library.events import Author


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
