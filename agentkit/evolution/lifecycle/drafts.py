"""The events of the life cycle before they have a place in the chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agentkit.evolution.gates import GateReport
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.screening import Screened
from agentkit.evolution.proposals.proposal import Proposal, ProposalState, UnreadableProposal
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author, EventKind
from agentkit.library.written import cut


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
