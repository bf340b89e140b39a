"""What the history of a library keeps of a change, and how a retry is recognised."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from agentkit.evolution.learning.report import LearnReport
from agentkit.library.store import LibraryChange
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

LESSON = "learn-"
"""How ids of proposals begin that came from learning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """What a tool's history keeps of a change.

    Attributes:
        identity: Recognises a retry.
        is_new: Whether nobody can have used the identity before.
        reason: Why.
        evidence: Ids of the episodes behind it.
    """

    identity: str
    is_new: bool
    reason: str = ""
    evidence: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, identity: str | None, kind: str, *, reason: str, evidence: Iterable[str] = ()
    ) -> Provenance:
        """One with an id of its own where none is given.

        Args:
            identity: The id that a caller gave, to recognise a retry.
            kind: What is proposed, as the beginning of an id made here.
            reason: Why.
            evidence: Ids of the episodes behind it.
        """
        return cls(
            identity=identity or f"{kind}-{uuid.uuid4().hex}",
            is_new=not identity,
            reason=reason,
            evidence=tuple(evidence),
        )

    def change(self, definitions: tuple[ToolDefinition, ...], *, author: str) -> LibraryChange:
        """The change that writes it."""
        return LibraryChange(
            proposal_id=self.identity,
            upserts=definitions,
            author=author,
            reason=self.reason,
            evidence=self.evidence,
        )


def lesson(identity: str | None, report: LearnReport, reason: str) -> Provenance:
    """The provenance of what was learned. Two that learn the same of one version have one id."""
    count = len(report.evidence)
    content = [report.version, sorted(report.added), list(report.evidence)]
    return Provenance(
        identity=LESSON + (identity or digest(content)[:32]),
        is_new=False,
        reason=reason or f"learned from {count} episode{'' if count == 1 else 's'}",
        evidence=report.evidence,
    )
