"""What the doctor reports: kinds of findings, findings, and proposals to mend them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.library import LibraryChange
from agentkit.tools.definition import ToolDefinition

Severity: TypeAlias = Literal["error", "warning", "note"]
"""``error``: calls or whole requests fail. ``warning``: the model or the retriever is misled, or
tokens are wasted. ``note``: worth knowing; often fine as it is."""

Level: TypeAlias = Literal["L1", "L2"]
"""What a mend edits: the contract (L1) or the words (L2)."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One thing that can be wrong with a tool.

    Attributes:
        code: Its name, as ``--check`` takes it.
        severity: How much it matters.
        title: What it is, in a few words.
        why: Why it matters, in a sentence.
        advice: What to do about it.
    """

    code: str
    severity: Severity
    title: str
    why: str
    advice: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """One tool as it is and as it would be: everything that a store needs to apply it.

    Attributes:
        before: The definition that was examined.
        after: The same tool, mended.
        level: ``L2`` when only words differ, ``L1`` when the contract does.
        mends: Names of the mends that were made, see ``agentkit.evaluation.doctor.mends``.
        reason: Why, in words, for the tool's history.
        saved: Estimated prompt tokens saved each time the tool is offered; may be negative.
    """

    before: ToolDefinition
    after: ToolDefinition
    level: Level
    mends: tuple[str, ...]
    reason: str
    saved: int

    def change(self, proposal_id: str, *, author: str = "") -> LibraryChange:
        """The proposal as a step that a store can commit.

        Composites that pin the tool are not moved along; ``apply`` does that.
        """
        return LibraryChange(
            proposal_id=proposal_id, upserts=(self.after,), author=author, reason=self.reason
        )

    def to_json(self) -> dict[str, Any]:
        """The proposal as a JSON object."""
        return {
            "tool": self.before.name,
            "level": self.level,
            "mends": list(self.mends),
            "reason": self.reason,
            "saved_tokens": self.saved,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Confusion:
    """Why one tool is found before another, on a request made for the other.

    Attributes:
        query: A request that the first tool of the finding should answer.
        shared: Words of the request that speak for the second tool, the weightiest first.
        own: Words of the first tool that the second lacks: they would tell the two apart.
        other: Words of the second tool that the first lacks.
    """

    query: str
    shared: tuple[str, ...]
    own: tuple[str, ...]
    other: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing found in one tool, or in several together.

    Attributes:
        kind: What it is, why it matters, what to do.
        tools: The tools concerned; where they differ in part, the one to look at first.
        what: What was found, in a sentence with the values concerned.
        where: Places in the definition: ``summary``, ``parameters.city``, ``required``.
        tokens: Prompt tokens concerned, estimated.
        confusion: The words behind a pair that retrieval confuses.
        proposal: How to mend it, where that can be done without a person's judgement.
    """

    kind: Kind
    tools: tuple[str, ...]
    what: str
    where: tuple[str, ...] = ()
    tokens: int = 0
    confusion: Confusion | None = None
    proposal: Proposal | None = None

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "code": self.kind.code,
            "severity": self.kind.severity,
            "tools": list(self.tools),
            "what": self.what,
            "why": self.kind.why,
            "advice": self.kind.advice,
        }
        if self.where:
            record["where"] = list(self.where)
        if self.tokens:
            record["tokens"] = self.tokens
        if self.confusion is not None:
            record["query"] = self.confusion.query
            record["shared_words"] = list(self.confusion.shared)
            record["own_words"] = list(self.confusion.own)
            record["other_words"] = list(self.confusion.other)
        if self.proposal is not None:
            record["mends"] = list(self.proposal.mends)
            record["saved_tokens"] = self.proposal.saved
        return record
