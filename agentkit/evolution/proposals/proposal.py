"""``Proposal``: one change of one tool that somebody suggests, before anybody believes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from agentkit.evolution.validation.report import FailedCheck, OriginKind, TextOrigin
from agentkit.library.events import Author
from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

Stream = Literal[
    "evolution", "feedback", "evidence", "composite", "optimizer", "import", "person", "code"
]
"""Where a proposal comes from; see ``docs/evolution.md``. ``code`` is what was learned about a tool
whose contract then changed in code (``agentkit.library.code_binding``)."""

ProposalState = Literal[
    "proposed",  # nobody has looked at it, or somebody who must agree has not yet
    "validated",  # every check passed, and everybody agreed who must
    "shadow",  # run beside the answers of the active definition, unseen by users
    "canary",  # serves a share of the sessions
    "active",  # serves all
    "superseded",  # a later proposal took its place
    "rejected",  # a check, a gate or a person said no
    "quarantined",  # its proposer was rejected too often
    "rolled_back",  # it was active or in canary, and was taken back
]

OPEN: frozenset[ProposalState] = frozenset({"proposed", "validated", "shadow", "canary"})
"""States in which nothing is decided yet."""

NEXT: dict[ProposalState, frozenset[ProposalState]] = {
    "proposed": frozenset({"validated", "rejected", "quarantined"}),
    "validated": frozenset({"shadow", "canary", "active", "rejected", "quarantined"}),
    "shadow": frozenset({"canary", "active", "rejected", "quarantined"}),
    "canary": frozenset({"active", "rejected", "quarantined", "rolled_back"}),
    "active": frozenset({"superseded", "rolled_back"}),
    "superseded": frozenset({"rolled_back"}),
    "rejected": frozenset({"proposed"}),  # once a person has overruled what the checks said
    "quarantined": frozenset({"proposed", "rejected"}),
    "rolled_back": frozenset(),
}
"""Which state may follow which. Stages may be left out by policy, never gone through backwards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """One change of one tool, with who suggests it and why.

    Attributes:
        proposal_id: Recognises a retry. Made of the content when not given, so that the same change
            suggested twice by the same proposer is one proposal.
        stream: Where it comes from.
        author: Who suggests it.
        base: Digest of the revision that it changes; empty for a tool that is new.
        candidate: The whole definition as it would be.
        reason: Why, in words.
        evidence: Ids of the episodes behind it.
        created_at: ISO 8601 time in UTC.
        origins: Where single texts of the candidate came from; see ``written_by`` for all others.
    """

    proposal_id: str
    stream: Stream
    author: Author
    base: str
    candidate: ToolDefinition
    reason: str = ""
    evidence: tuple[str, ...] = ()
    created_at: str = ""
    origins: tuple[TextOrigin, ...] = ()

    @classmethod
    def of(
        cls,
        base: ToolDefinition | None,
        candidate: ToolDefinition,
        *,
        stream: Stream,
        author: Author,
        reason: str = "",
        evidence: Iterable[str] = (),
        proposal_id: str | None = None,
        origins: Iterable[TextOrigin] = (),
    ) -> Proposal:
        """A proposal to put ``candidate`` in the place of ``base``, made now.

        Without a base the tool is new: a composite, or a tool of another library that a person
        imports (``is_arrival``).
        """
        before = "" if base is None else base.digest
        content = [stream, author.name, before, candidate.name, candidate.digest]
        return cls(
            proposal_id=proposal_id or f"{stream}-{digest(content)[:20]}",
            stream=stream,
            author=author,
            base=before,
            candidate=candidate,
            reason=reason,
            evidence=tuple(evidence),
            created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            origins=tuple(dict.fromkeys(origins)),
        )

    @property
    def written_by(self) -> OriginKind:
        """Whose words the texts are that ``origins`` does not name; of a program nobody knows."""
        return "unknown" if self.author.kind == "program" else self.author.kind

    @property
    def tool_name(self) -> str:
        """The tool that it changes."""
        return self.candidate.name

    @property
    def is_arrival(self) -> bool:
        """Whether it brings a tool from another library, whole, on the word of a person.

        Only a person may: of a primitive there is no code here to try.
        """
        return not self.base and self.stream == "import" and self.author.kind == "person"

    def to_json(self) -> dict[str, Any]:
        """The proposal as a JSON object; no origins where none are told."""
        record: dict[str, Any] = {
            "proposal_id": self.proposal_id,
            "stream": self.stream,
            "author": self.author.to_json(),
            "base": self.base,
            "candidate": self.candidate.to_json(),
            "reason": self.reason,
            "evidence": list(self.evidence),
            "created_at": self.created_at,
        }
        if self.origins:
            record["origins"] = [origin.to_json() for origin in self.origins]
        return record

    @classmethod
    def from_json(cls, record: JsonObject) -> Proposal:
        """The inverse of ``to_json``.

        Raises:
            DefinitionError: The candidate is no definition.
            KeyError: A part is absent.
        """
        return cls(
            proposal_id=record["proposal_id"],
            stream=record["stream"],
            author=Author(**record["author"]),
            base=record["base"],
            candidate=ToolDefinition.from_json(record["candidate"]),
            reason=record["reason"],
            evidence=tuple(record["evidence"]),
            created_at=record["created_at"],
            origins=tuple(map(TextOrigin.from_json, record.get("origins", ()))),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadableProposal:
    """What a proposer answered that can not become a proposal; kept with the reasons.

    Attributes:
        author: Who answered.
        stream: Where it comes from.
        tool_name: The tool that was to be changed, as far as it is known.
        text: The answer, cut to a length that can be kept.
        failed: Why it can not be read.
    """

    author: Author
    stream: Stream
    tool_name: str
    text: str
    failed: tuple[FailedCheck, ...]
