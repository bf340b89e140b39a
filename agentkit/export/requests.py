"""How an artifact is taken in, and what came of each of its tools."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.errors import UsageError
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.conflicts import ConflictPolicy
from agentkit.library.events import Author

Outcome = Literal["added", "replaced", "renamed", "unchanged", "skipped", "refused", "held"]
"""What came of a definition. ``skipped`` and ``refused``: its name is taken; ``held``: a check or
somebody who must agree stands against it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedTool:
    """What came of one definition of an artifact.

    Attributes:
        name: Its name in the artifact.
        outcome: What came of it.
        why: Why it is not in the library; or the name that it has there, when it was renamed; or
            of which tools here it is made, when these are other revisions than those it came with.
        failed: The checks that speak against it.
        proposal_id: The proposal that brought it, waits or was rejected; empty for none.
        untried: Why nobody knows whether the worked calls of a composite hold here; empty for one
            whose calls were tried, and for a primitive.
    """

    name: str
    outcome: Outcome
    why: str = ""
    failed: tuple[FailedCheck, ...] = ()
    proposal_id: str = ""
    untried: str = ""

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "name": self.name,
            "outcome": self.outcome,
            "why": self.why,
            "failed": [check.to_json() for check in self.failed],
            "proposal_id": self.proposal_id,
            "untried": self.untried,
        }
        return {name: value for name, value in record.items() if value not in ("", [])}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """What came of an artifact.

    Attributes:
        version: The library version afterwards.
        tools: Every definition of the artifact, in its order.
    """

    version: int
    tools: tuple[ImportedTool, ...]

    @property
    def untried(self) -> tuple[ImportedTool, ...]:
        """The composites whose worked calls nobody could try."""
        return tuple(tool for tool in self.tools if tool.untried)

    def of(self, outcome: Outcome) -> tuple[ImportedTool, ...]:
        """The definitions of which this came."""
        return tuple(tool for tool in self.tools if tool.outcome == outcome)

    @property
    def is_complete(self) -> bool:
        """Whether every definition is in the library, or was to be left out."""
        return not self.of("held") and not self.of("refused")

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "library_version": self.version,
            "tools": [tool.to_json() for tool in self.tools],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportRequest:
    """How an artifact is taken in.

    Attributes:
        person: Who imports it, and answers for it.
        on_conflict: What happens to a name that stands for another definition, as for
            ``agentkit tools import``.
        approved: Tools that the person agrees to, of those to which a person must agree.
        approves_all: Whether that is all of them.
        overruled: New tools whose words the person has read and vouches for, although checks speak
            against them. The history says so.
        reason: Why, for the history.
    """

    person: Author
    on_conflict: ConflictPolicy = "error"
    approved: Collection[str] = ()
    approves_all: bool = False
    overruled: Collection[str] = ()
    reason: str = "import an artifact"

    def __post_init__(self) -> None:
        if self.person.kind != "person":
            raise UsageError(
                f"a person imports an artifact, and {self.person.name!r} is a {self.person.kind}"
            )

    def agrees_to(self, name: str) -> bool:
        """Whether the person agrees to a tool."""
        return self.approves_all or name in self.approved
