"""What was said of the proposals that the tools of a library came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agentkit.errors import ArtifactError
from agentkit.evolution.gates.decision import GateReport
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.library.events import LibraryEvent
from agentkit.messages import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class GateEvidence:
    """Why one proposal serves.

    Attributes:
        tool: The tool that it changed.
        proposal_id: The proposal.
        state: Where it stands: ``active``, or what became of it since.
        digest: Of the definition that it brought.
        author: Who suggested it.
        reason: Why, in words.
        agreed: Who agreed to it: ``judge``, ``person``.
        reports: What each gate said, oldest first.
    """

    tool: str
    proposal_id: str
    state: str
    digest: str
    author: str
    reason: str = ""
    agreed: tuple[str, ...] = ()
    reports: tuple[GateReport, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The evidence as a JSON object."""
        return {
            "tool": self.tool,
            "proposal_id": self.proposal_id,
            "state": self.state,
            "digest": self.digest,
            "author": self.author,
            "reason": self.reason,
            "agreed": list(self.agreed),
            "reports": [report.to_json() for report in self.reports],
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> GateEvidence:
        """The inverse of ``to_json``.

        Raises:
            ArtifactError: The record holds something else.
            StoreFormatError: A report in it is none.
        """
        texts = ("tool", "proposal_id", "state", "digest", "author", "reason")
        try:
            return cls(
                **{name: _text(record[name]) for name in texts},
                agreed=tuple(_text(one) for one in record["agreed"]),
                reports=tuple(map(GateReport.from_json, record["reports"])),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ArtifactError(f"not gate evidence ({error}): {str(record)[:200]}") from error


def gate_evidence(events: Iterable[LibraryEvent]) -> tuple[GateEvidence, ...]:
    """The evidence of every proposal that became active, in the order of the proposals.

    Raises:
        StoreFormatError: The events are no chain, or of a kind that this agentkit does not know.
    """
    records = Ledger().after(events).proposals.values()
    return tuple(_evidence(record) for record in records if record.activation is not None)


def _evidence(record: ProposalRecord) -> GateEvidence:
    activation = record.activation
    reports = (
        GateReport.from_json({key: value for key, value in event.facts.items() if key != "stage"})
        for event in record.assessments
    )
    return GateEvidence(
        tool=record.tool_name,
        proposal_id=record.proposal_id,
        state=record.state,
        digest="" if activation is None else activation.digest_after,
        author=record.author.name,
        reason=record.reason,
        agreed=record.agreed,
        reports=tuple(reports),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r:.80}")
    return value
