"""An artifact into a library that is in use, through the Tool Manager."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.errors import UsageError
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposals.proposal import Proposal
from agentkit.evolution.validation.report import FailedCheck
from agentkit.export.artifact import Artifact
from agentkit.export.screening import consent_needed, suspicions
from agentkit.library.conflicts import ConflictPolicy, ImportPlan, plan_import
from agentkit.library.events import Author
from agentkit.library.graph import in_order
from agentkit.library.library import Library
from agentkit.library.soundness import library_faults
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import ToolDefinition

Outcome = Literal["added", "replaced", "renamed", "unchanged", "skipped", "refused", "held"]
"""What came of a definition. ``skipped`` and ``refused``: its name is taken; ``held``: a check or
somebody who must agree stands against it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedTool:
    """What came of one definition of an artifact.

    Attributes:
        name: Its name in the artifact.
        outcome: What came of it.
        why: Why it is not in the library; or the name that it has there, when it was renamed.
        failed: The checks that speak against it.
        proposal_id: The proposal that waits or was rejected, where there is one.
    """

    name: str
    outcome: Outcome
    why: str = ""
    failed: tuple[FailedCheck, ...] = ()
    proposal_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "name": self.name,
            "outcome": self.outcome,
            "why": self.why,
            "failed": [check.to_json() for check in self.failed],
            "proposal_id": self.proposal_id,
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


async def import_artifact(
    artifact: Artifact, manager: ToolManager, request: ImportRequest, *, dry_run: bool = False
) -> ImportReport:
    """Bring the definitions of an artifact into a library.

    New tools are looked through, and come in together as one library version: their texts must
    pass the checks of ``agentkit.export.screening``; destructive tools, those that move money and
    those that reach into the world come in when the person agrees; a composite comes in when it
    fits the tools that it is made of, which must be those that it was made for. Its worked calls
    are not tried: ``agentkit tools check --tools`` does.

    A tool that is to be replaced becomes a proposal of the stream ``import``, which every check
    looks at; when nobody else must agree, the person's import is its approval.

    Args:
        artifact: What ``read_artifact`` gave.
        manager: Of the library.
        request: Who imports, and what about names that are taken.
        dry_run: Write nothing, and say what would come of it. Of replacements it is then said
            that they would be proposed, not what the checks say.

    Raises:
        StoreError: The store failed. New tools are in together or not at all; replacements that
            were made before stay.
    """
    named = {*request.approved, *request.overruled}
    unknown = sorted(named - set(artifact.library.tools))
    if unknown:
        raise UsageError(f"the artifact has no tool {', '.join(map(repr, unknown))} to agree to")
    sorting = _Sorting(artifact, request)
    if dry_run:
        sorting.sort(manager.library)
        return sorting.report(manager.library.version)
    if _has_new(sorting, manager.refresh()):
        identity = f"import-{uuid.uuid4().hex}"
        manager.edit(lambda held: sorting.change(held, identity), operation="import")
    for definition in sorting.replacing:
        sorting.outcomes[definition.name] = await _replace(definition, manager, request)
    return sorting.report(manager.library.version)


def _has_new(sorting: _Sorting, library: Library) -> bool:
    sorting.sort(library)
    return bool(sorting.accepted)


@dataclass(kw_only=True)
class _Sorted:
    """What is to be done with each definition, on one library."""

    outcomes: dict[str, ImportedTool] = field(default_factory=dict)
    accepted: dict[str, ToolDefinition] = field(default_factory=dict)
    overruled: list[str] = field(default_factory=list)
    replacing: tuple[ToolDefinition, ...] = ()


class _Sorting:
    """Sorts the definitions of an artifact; anew when another writer was faster."""

    def __init__(self, artifact: Artifact, request: ImportRequest) -> None:
        self._library = artifact.library
        self._request = request
        self._failed: dict[str, tuple[FailedCheck, ...]] = {}  # they do not depend on the library
        self._now = _Sorted()

    @property
    def outcomes(self) -> dict[str, ImportedTool]:
        return self._now.outcomes

    @property
    def accepted(self) -> dict[str, ToolDefinition]:
        return self._now.accepted

    @property
    def replacing(self) -> tuple[ToolDefinition, ...]:
        return self._now.replacing

    def report(self, version: int) -> ImportReport:
        tools = (self._now.outcomes[name] for name in self._library.tools)
        return ImportReport(version=version, tools=tuple(tools))

    def change(self, held: Library, identity: str) -> LibraryChange | None:
        """What is to be written on the newest library; None for nothing."""
        self.sort(held)
        if not self.accepted:
            return None
        return LibraryChange(
            proposal_id=identity,
            upserts=tuple(self.accepted.values()),
            author=self._request.person.name,
            reason="; ".join((self._request.reason, *self._now.overruled)),
        )

    def sort(self, held: Library) -> None:
        self._now = _Sorted()
        plan = plan_import(self._children_first(), held, on_conflict=self._request.on_conflict)
        self._note_conflicts(plan)
        old_name = {new: old for old, new in plan.renamed}
        replaced = set(plan.replaced)
        self._now.replacing = tuple(plan.upserts[name] for name in plan.replaced)
        for name, definition in plan.upserts.items():
            if name in replaced:
                self._note(name, "replaced", "it would become a proposal")
            else:
                self._take(old_name.get(name, name), definition, held)

    def _children_first(self) -> Iterator[ToolDefinition]:
        library = self._library
        names = list(in_order(list(library.tools), library.dag.children))
        rest = [name for name in library.tools if name not in set(names)]
        return (library[name].definition for name in (*names, *rest))

    def _note(
        self, name: str, outcome: Outcome, why: str = "", failed: Sequence[FailedCheck] = ()
    ) -> None:
        self._now.outcomes[name] = ImportedTool(
            name=name, outcome=outcome, why=why, failed=tuple(failed)
        )

    def _note_conflicts(self, plan: ImportPlan) -> None:
        for definition in self._library.definitions:
            self._note(definition.name, "unchanged")
        for name in plan.skipped:
            self._note(name, "skipped", "the library has another definition of that name")
        for name in plan.refused:
            self._note(name, "refused", "the library has another definition of that name")

    def _take(self, name: str, definition: ToolDefinition, held: Library) -> None:
        """A new tool: in, or held with the reason."""
        if name not in self._failed:
            self._failed[name] = suspicions(definition)
        failed = self._failed[name]
        if failed and name not in self._request.overruled:
            self._note(name, "held", "; ".join(map(str, failed)), failed)
            return
        if consent_needed(definition) and not self._request.agrees_to(name):
            self._note(name, "held", "a person must agree to it: it may do harm, or reach outside")
            return
        wrong = self._unfit(definition, held)
        if wrong:
            self._note(name, "held", wrong)
            return
        self._now.accepted[definition.name] = definition
        if failed:
            codes = ", ".join(dict.fromkeys(check.code for check in failed))
            self._now.overruled.append(f"overruled of {name!r}: {codes}")
        was_renamed = definition.name != name
        self._note(
            name, "renamed" if was_renamed else "added", definition.name if was_renamed else ""
        )

    def _unfit(self, definition: ToolDefinition, held: Library) -> str:
        """Why a composite does not fit the library; empty for one that does, and for others."""
        if not definition.is_composite:
            return ""
        after = held.with_tools([*self._now.accepted.values(), definition])
        for pin in definition.signature.children:
            child = after.get(pin.name)
            if child is None:
                return f"it calls {pin.name!r}, which did not come in"
            if child.definition.digest != pin.digest:
                return (
                    f"it was made for revision {pin.digest[:12]} of {pin.name!r}, and the library "
                    f"has {child.definition.digest[:12]}"
                )
        faults = library_faults(after, [definition.name])
        return "; ".join(f"[{fault.code}]: {fault.message}" for fault in faults)


async def _replace(
    definition: ToolDefinition, manager: ToolManager, request: ImportRequest
) -> ImportedTool:
    """Propose a new revision, and bring it on as far as it comes."""
    name = definition.name
    base = manager.library[name].definition
    proposal = Proposal.of(
        base,
        definition,
        stream="import",
        author=request.person,
        reason=request.reason,
        proposal_id=f"import-{uuid.uuid4().hex[:20]}",
    )
    record = await manager.submit_async(proposal)
    if record.is_open and (not record.needs or request.agrees_to(name)):
        record = manager.approve(record.proposal_id, person=request.person, reason=request.reason)
        if record.state == "validated":
            (moved,) = await manager.advance_async(record.proposal_id)
            if moved.after == "active":
                return ImportedTool(name=name, outcome="replaced", proposal_id=record.proposal_id)
            record = manager.ledger.proposals[record.proposal_id]
            return _held(record, moved.why)
    return _held(record, manager.standing(record.proposal_id).why)


def _held(record: ProposalRecord, why: str) -> ImportedTool:
    return ImportedTool(
        name=record.tool_name,
        outcome="held",
        why=why,
        failed=record.failed,
        proposal_id=record.proposal_id,
    )
