"""An artifact into a library that is in use, through the Tool Manager."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from agentkit.errors import UsageError
from agentkit.evolution.checker import (
    moved_pins,
    needs_person,
    settled,
    text_faults,
)
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import Proposal, ProposalRecord
from agentkit.evolution.validation.report import FailedCheck
from agentkit.interop.export.artifact import Artifact
from agentkit.library.dag import in_order
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.merging import ConflictPolicy, plan_import
from agentkit.library.store import LibraryChange
from agentkit.records import Record
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import without_claims

Outcome = Literal["added", "replaced", "unchanged", "skipped", "refused", "held"]
"""What came of a definition. ``skipped`` and ``refused``: its name is taken; ``held``: a check or
somebody who must agree stands against it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedTool(Record):
    """The outcome for one definition of an artifact.

    Attributes:
        name: Its name in the artifact.
        outcome: What came of it.
        why: Why it is not in the library; or of which tools here it is made, when these are other
            revisions than those it came with.
        failed: The checks that speak against it.
        proposal_id: The proposal that brought it, waits or was rejected; empty for none.
    """

    _OPTIONAL: ClassVar = ("why", "failed", "proposal_id")

    name: str
    outcome: Outcome
    why: str = ""
    failed: tuple[FailedCheck, ...] = ()
    proposal_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """The outcome of importing an artifact.

    Attributes:
        version: The library version afterwards.
        tools: Every definition of the artifact, in its order.
    """

    version: int
    tools: tuple[ImportedTool, ...]

    def of(self, outcome: Outcome) -> tuple[ImportedTool, ...]:
        """The definitions with this outcome."""
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
    """How an artifact is imported.

    Attributes:
        person: Who imports it and is responsible for it.
        on_conflict: What happens to a name that another definition has, as for
            ``agentkit tools import``.
        approves_all: Whether the person agrees to every tool to which a person must agree.
        reason: Why, for the history.
    """

    person: Author
    on_conflict: ConflictPolicy = "error"
    approves_all: bool = False
    reason: str = "import an artifact"

    def __post_init__(self) -> None:
        if self.person.kind != "person":
            raise UsageError(
                f"a person imports an artifact, and {self.person.name!r} is a {self.person.kind}"
            )


async def import_artifact(
    artifact: Artifact, manager: ToolManager, request: ImportRequest
) -> ImportReport:
    """Bring the definitions of an artifact into a library.

    New primitives are screened, and are added together as one library version: their texts
    must pass ``IMPORT_CHECKS``; destructive tools, those that move money and those that reach into
    the world come in when the person agrees.

    Composites, what does not come in, and what is to be replaced become proposals of the stream
    ``import``. Every check looks at them, with the code that the manager knows; where nobody else
    must agree, the person's import is their approval. The others, and those whose words a check
    doubts, can be approved or rejected later, with no second import. A composite over other
    revisions of the tools that it calls waits for a person who agrees that it is pinned to them.

    Args:
        artifact: What ``read_artifact`` gave.
        manager: The library's Tool Manager.
        request: Who imports, and how conflicting names are resolved.

    Raises:
        StoreError: The store failed. New primitives are in together or not at all; proposals that
            were made before stay.
    """
    given = artifact.library
    coming = given.with_tools([without_claims(one) for one in given.definitions])
    doubted = {one.name for one in coming.definitions if not one.is_composite and text_faults(one)}
    manager.refresh()
    entry = _Entry.of(coming, manager.library, manager.ledger, request, doubted)
    if entry.accepted:
        identity = f"import-{uuid.uuid4().hex}"

        def change(held: Library) -> LibraryChange | None:
            nonlocal entry
            entry = _Entry.of(coming, held, manager.ledger, request, doubted)
            return entry.change(identity, request)

        manager.edit(change, operation="import")
    outcomes = dict(entry.outcomes)
    for definition in entry.proposed:
        name = definition.name
        agrees = name in entry.harmless or request.approves_all or None
        outcomes[name] = await _propose(definition, manager, request, agrees=agrees)
    tools = [outcomes[name] for name in coming.tools]
    tools += [ImportedTool(name=n, outcome="skipped", why=_NO_TOOL) for n in given.instructions]
    return ImportReport(version=manager.library.version, tools=tuple(tools))


async def propose_tools(
    definitions: Iterable[ToolDefinition], manager: ToolManager, request: ImportRequest
) -> tuple[ImportedTool, ...]:
    """Propose tools that wait for a person, such as those that act through others.

    That they were imported is nobody's approval, unless the request approves all.

    Args:
        definitions: The tools, children first.
        manager: The library's Tool Manager.
        request: Who imports them.
    """
    return tuple(
        [await _propose(one, manager, request, agrees=request.approves_all) for one in definitions]
    )


async def _propose(
    definition: ToolDefinition, manager: ToolManager, request: ImportRequest, *, agrees: bool | None
) -> ImportedTool:
    """Propose a tool that is new or a new revision, and bring it on as far as it comes.

    Args:
        definition: The tool.
        manager: The library's Tool Manager.
        request: Who imports it.
        agrees: Whether the person agrees to it; None where that is left to whether anybody must.
    """
    proposal, moved = _proposal(definition, manager, request)
    try:
        record = await manager.submit_async(proposal)
    except UsageError as error:  # no proposal can hold it
        faults = text_faults(definition)
        return ImportedTool(name=definition.name, outcome="held", why=str(error), failed=faults)
    why = ""
    if agrees is None:
        agrees = not record.needs
    if record.is_open and not record.doubts and agrees:
        record = manager.approve(record.proposal_id, person=request.person, reason=request.reason)
        if record.state == "validated":
            (step,) = await manager.advance_async(record.proposal_id)
            record, why = manager.ledger.proposals[record.proposal_id], step.why
    name, identity = definition.name, record.proposal_id
    if record.state == "active":
        outcome: Outcome = "replaced" if proposal.base else "added"
        return ImportedTool(name=name, outcome=outcome, why=moved, proposal_id=identity)
    why = why or manager.status(identity).why
    why = f"{why}; {moved}" if moved else why
    return ImportedTool(
        name=name,
        outcome="held",
        why=why,
        failed=record.failed or record.doubts,
        proposal_id=identity,
    )


def _proposal(
    definition: ToolDefinition, manager: ToolManager, request: ImportRequest
) -> tuple[Proposal, str]:
    """The proposal for a definition, and the other children it would be pinned to."""
    held = manager.library.get(definition.name)
    here = settled(definition, manager.library)
    moved = moved_pins(definition, here)
    proposal = Proposal.of(
        None if held is None else held.definition,
        # Of a tool that is new, what came is kept; where it lands may have moved on by then.
        definition if held is None else here,
        stream="import",
        author=request.person,
        reason=f"{request.reason}; {moved}" if moved else request.reason,
    )
    known = manager.ledger.proposals.get(proposal.proposal_id)
    if held is not None or (known is not None and _lost_its_place(known)):
        # A replacement that was taken back may be tried again, and so may what did not fit.
        proposal = replace(proposal, proposal_id=f"import-{uuid.uuid4().hex[:20]}")
    return proposal, moved


def _lost_its_place(record: ProposalRecord) -> bool:
    """Whether it was rejected for what the library was then, not for what it says."""
    return record.state == "rejected" and record.rejection.facts.get("by") in {"library", "parents"}


_TAKEN = "the library has another definition of that name"
_NO_TOOL = "instructions speak for their agent, so they are not imported; write the text in code"


@dataclass(kw_only=True)
class _Entry:
    """How the definitions of an artifact enter a library; rebuilt on a newer one.

    Attributes:
        accepted: What comes in at once; children before parents.
        proposed: What becomes a proposal; children before parents.
        harmless: Names of what needs nobody but the person who imports.
        outcomes: What came of the others.
    """

    accepted: list[ToolDefinition] = field(default_factory=list)
    proposed: list[ToolDefinition] = field(default_factory=list)
    harmless: set[str] = field(default_factory=set)
    outcomes: dict[str, ImportedTool] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        coming: Library,
        held: Library,
        ledger: Ledger,
        request: ImportRequest,
        doubted: Collection[str],
    ) -> _Entry:
        """Sort the definitions on a library; checks doubt the words of ``doubted``."""
        entry = cls()
        plan = plan_import(_in_order(coming, held), held, on_conflict=request.on_conflict)
        entry._note(coming.tools, "unchanged")
        entry._note(plan.skipped, "skipped", _TAKEN)
        entry._note(plan.refused, "refused", _TAKEN)
        waiting = {
            one.candidate.digest
            for one in ledger.proposals.values()
            if one.is_open and one.is_arrival and one.candidate is not None
        }
        here, known = held.with_tools(plan.upserts.values()), {**coming.tools, **held.tools}
        for name, definition in plan.upserts.items():
            if name in plan.replaced:
                entry.proposed.append(coming[name].definition)
            elif definition.digest in waiting:
                entry.proposed.append(definition)
            elif definition.is_composite:
                moved = moved_pins(definition, settled(definition, here))
                if not moved and not needs_person(definition, known):
                    entry.harmless.add(name)
                entry.proposed.append(definition)
            elif name in doubted or (needs_person(definition, known) and not request.approves_all):
                entry.proposed.append(definition)
            else:
                entry.accepted.append(definition)
                entry._note([name], "added")
        return entry

    def change(self, identity: str, request: ImportRequest) -> LibraryChange | None:
        """The change to write; None for nothing."""
        if not self.accepted:
            return None
        return LibraryChange(
            proposal_id=identity,
            upserts=tuple(self.accepted),
            author=request.person.name,
            reason=request.reason,
        )

    def _note(self, names: Iterable[str], outcome: Outcome, why: str = "") -> None:
        self.outcomes |= {name: ImportedTool(name=name, outcome=outcome, why=why) for name in names}


def _in_order(coming: Library, held: Library) -> Iterator[ToolDefinition]:
    """The definitions, children first; earlier imports that were repinned are recognised."""
    names = in_order(list(coming.tools), coming.dag.children)
    for name in dict.fromkeys((*names, *coming.tools)):
        definition = coming[name].definition
        yield settled(definition, held) if name in held else definition
