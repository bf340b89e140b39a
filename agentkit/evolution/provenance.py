"""What the history of a library keeps of a change, and how a retry is recognised."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentkit.evolution.learning.report import LearnReport
from agentkit.evolution.lifecycle.drafts import cut
from agentkit.evolution.lifecycle.step import Step
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

LESSON = "learn-"
"""How ids of proposals begin that came from learning."""

Operation = Literal[
    "register", "record", "learn", "insert", "import", "mend", "repin", "rollback", "edit"
]
"""What kind of change it is that no proposal made."""

_ABOUT_ONE: frozenset[Operation] = frozenset({"insert", "rollback"})
"""Operations that are about one tool; what else they write are new pins above it."""

_MOST_TOOLS = 1_000  # that one event lists with their digests


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
    ) -> Step:
        """The change that writes definitions, with the event that tells of it.

        Args:
            definitions: What changes, children before parents; the first is what it is about.
            library: The library before.
            author: Who writes.
            about: Further events of the same change, which come first.
            replaced: Names of tools that get other words than any proposal gave them.
        """
        facts: dict[str, Any] = {"operation": self.operation, "change": self.identity}
        if replaced:
            facts["replaced"] = list(replaced)
        written = EventDraft(
            kind="written",
            author=author,
            reason=cut(self.reason),
            library_version=library.version + 1,
            evidence=self.evidence,
            facts=facts,
        )
        if len(definitions) == 1 or (definitions and self.operation in _ABOUT_ONE):
            written = _of_one(written, definitions, library)
        elif definitions:
            facts |= _of_many(definitions)
        return Step(
            drafts=(*about, written),
            upserts=definitions,
            change_id=self.identity,
            reason=self.reason,
            evidence=self.evidence,
        )


def _of_one(
    written: EventDraft, definitions: Sequence[ToolDefinition], library: Library
) -> EventDraft:
    """A change of one tool, with composites above it that got new pins."""
    changed, *above = definitions
    before = library.get(changed.name)
    facts = dict(written.facts)
    if above:
        facts["repinned"] = {definition.name: definition.digest for definition in above}
    return replace(
        written,
        tool_name=changed.name,
        digest_before="" if before is None else before.definition.digest,
        digest_after=changed.digest,
        facts=facts,
    )


def _of_many(definitions: Sequence[ToolDefinition]) -> dict[str, Any]:
    """A change of several tools: each with its digest, or of very many the digest of all."""
    digests = {definition.name: definition.digest for definition in definitions}
    if len(digests) <= _MOST_TOOLS:
        return {"tools": digests}
    return {"count": len(digests), "digest": digest(digests)}


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
