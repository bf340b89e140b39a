"""What the history of a library keeps of a change, and how a retry is recognised."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentkit.evolution.learning import LearnReport
from agentkit.evolution.repository import Transaction
from agentkit.library.event_chain import EventDraft, Operation, written
from agentkit.library.events import Author
from agentkit.library.library import Library
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
        operation: What kind of change it is.
        reason: Why.
        evidence: Ids of the episodes behind it.
    """

    identity: str
    is_new: bool
    operation: Operation
    reason: str = ""
    evidence: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        identity: str | None,
        operation: Operation,
        *,
        reason: str,
        evidence: Iterable[str] = (),
    ) -> Provenance:
        """One with an id of its own where none is given.

        Args:
            identity: The id that a caller gave, to recognise a retry.
            operation: What kind of change it is, also the beginning of an id made here.
            reason: Why.
            evidence: Ids of the episodes behind it.
        """
        return cls(
            identity=identity or f"{operation}-{uuid.uuid4().hex}",
            is_new=not identity,
            operation=operation,
            reason=reason,
            evidence=tuple(evidence),
        )

    def step(
        self,
        definitions: tuple[ToolDefinition, ...],
        library: Library,
        author: Author,
        *,
        about: Sequence[EventDraft] = (),
        replaced: Sequence[str] = (),
    ) -> Transaction:
        """The change that writes definitions, with the event that tells of it.

        Args:
            definitions: What changes, children before parents; the first is what it is about.
            library: The library before.
            author: Who writes.
            about: Further events of the same change, which come first.
            replaced: Names of tools that get other words than any proposal gave them.
        """
        event = written(
            self.operation,
            self.identity,
            definitions,
            before=library,
            author=author,
            reason=self.reason,
            evidence=self.evidence,
            replaced=replaced,
        )
        return Transaction(
            drafts=(*about, event),
            upserts=definitions,
            change_id=self.identity,
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
        operation="learn",
        reason=reason or f"learned from {count} episode{'' if count == 1 else 's'}",
        evidence=report.evidence,
    )
