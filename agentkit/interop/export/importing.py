"""An artifact into a library that is in use, through the Tool Manager."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentkit.errors import UsageError
from agentkit.evolution.checker import (
    moved_pins,
    needs_person,
    settled,
    text_faults,
)
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import Proposal, ProposalRecord, checks_text
from agentkit.evolution.validation.report import FailedCheck
from agentkit.interop.export.artifact import Artifact
from agentkit.library.dag import in_order
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.merging import ConflictPolicy, ImportPlan, plan_import
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
        why: Why it is not in the library; or the name that it has there, when it was renamed; or
            of which tools here it is made, when these are other revisions than those it came with.
        failed: The checks that speak against it.
        proposal_id: The proposal that brought it, waits or was rejected; empty for none.
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
        overruled: New primitives whose words the person has read and vouches for, although checks
            speak against them. The history says so.
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
    artifact: Artifact,
    manager: ToolManager,
    request: ImportRequest,
    *,
    dry_run: bool = False,
) -> ImportReport:
    """Bring the definitions of an artifact into a library.

    New primitives are looked through, and come in together as one library version: their texts
    must pass ``IMPORT_CHECKS``; destructive tools, those that move money and those that reach into
    the world come in when the person agrees.

    Composites, what does not come in, and what is to be replaced become proposals of the stream
    ``import``. Every check looks at them, with the code that the manager knows; where nobody else
    must agree, the person's import is their approval. The others can be approved, overruled or
    rejected later, with no second import. A composite over other revisions of the tools that it
    calls waits for a person who agrees that it is pinned to them.

    Args:
        artifact: What ``read_artifact`` gave.
        manager: Of the library.
        request: Who imports, and what about names that are taken.
        dry_run: Write nothing, and say what would come of it. Of what would become a proposal it
            is then said that it would, not what further checks say.

    Raises:
        UsageError: ``request`` names a tool that the artifact does not have.
        StoreError: The store failed. New primitives are in together or not at all; proposals that
            were made before stay.
    """
    named = {*request.approved, *request.overruled}
    unknown = sorted(named - set(artifact.library.tools))
    if unknown:
        raise UsageError(f"the artifact has no tool {', '.join(map(repr, unknown))} to agree to")
    manager.refresh()
    sorting = Sorting(artifact.library, request)
    sorting.sort(manager.library, manager.ledger)
    if dry_run:
        return sorting.report(manager.library.version)
    if sorting.accepted:
        identity = f"import-{uuid.uuid4().hex}"
        manager.edit(
            lambda held: sorting.change(held, manager.ledger, identity), operation="import"
        )
    for name, definition in sorting.proposing.items():
        agrees = sorting.agrees_to(name)
        sorting.note(await _propose(name, definition, manager, request, agrees=agrees))
    return sorting.report(manager.library.version)


async def propose_tools(
    definitions: Iterable[ToolDefinition], manager: ToolManager, request: ImportRequest
) -> tuple[ImportedTool, ...]:
    """Propose tools that wait for a person, such as those that act through others.

    Args:
        definitions: Under the names that they are to have, children first.
        manager: Of the library.
        request: Who imports them.
    """
    return tuple(
        [
            await _propose(one.name, one, manager, request, agrees=request.agrees_to(one.name))
            for one in definitions
        ]
    )


async def _propose(
    name: str,
    definition: ToolDefinition,
    manager: ToolManager,
    request: ImportRequest,
    *,
    agrees: bool,
) -> ImportedTool:
    """Propose a tool that is new or a new revision, and bring it on as far as it comes."""
    proposal, moved = _proposal(definition, manager, request)
    record = await manager.submit_async(proposal)
    why = ""
    if record.is_open and (agrees or not record.needs):
        record = manager.approve(record.proposal_id, person=request.person, reason=request.reason)
        if record.state == "validated":
            (step,) = await manager.advance_async(record.proposal_id)
            record, why = manager.ledger.proposals[record.proposal_id], step.why
    identity = record.proposal_id
    if record.state == "active":
        outcome: Outcome = "replaced" if proposal.base else "added"
        if definition.name != name:
            outcome, moved = "renamed", definition.name
        return ImportedTool(name=name, outcome=outcome, why=moved, proposal_id=identity)
    why = why or manager.status(identity).why
    why = f"{why}; {moved}" if moved else why
    return ImportedTool(
        name=name, outcome="held", why=why, failed=record.failed, proposal_id=identity
    )


def _proposal(
    definition: ToolDefinition, manager: ToolManager, request: ImportRequest
) -> tuple[Proposal, str]:
    """What is proposed of a definition, and to which other children it would be pinned."""
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


class Sorting:
    """Sorts the definitions of an artifact; anew when another writer was faster.

    Args:
        library: The definitions.
        request: Who imports them, and how.

    Attributes:
        accepted: What comes in at once, by the name that it gets; children before parents.
        proposing: What becomes a proposal, by its name in the artifact; children before parents.
    """

    def __init__(self, library: Library, request: ImportRequest) -> None:
        self._library = library
        self._request = request
        self._failed: dict[str, tuple[FailedCheck, ...]] = {}  # they do not depend on the library
        self._start()

    def _start(self) -> None:
        self.accepted: dict[str, ToolDefinition] = {}
        self.proposing: dict[str, ToolDefinition] = {}
        self._outcomes: dict[str, ImportedTool] = {}
        self._overruled: list[str] = []
        self._harmless: set[str] = set()

    def agrees_to(self, name: str) -> bool:
        """Whether the person who imports agrees to a tool: by name, or because nobody need ask."""
        return name in self._harmless or self._request.agrees_to(name)

    def report(self, version: int) -> ImportReport:
        """What came of each definition, in the order of the artifact."""
        tools = tuple(self._outcomes[name] for name in self._library.tools)
        return ImportReport(version=version, tools=tools)

    def change(self, held: Library, ledger: Ledger, identity: str) -> LibraryChange | None:
        """What is to be written on the newest library; None for nothing."""
        self.sort(held, ledger)
        if not self.accepted:
            return None
        return LibraryChange(
            proposal_id=identity,
            upserts=tuple(self.accepted.values()),
            author=self._request.person.name,
            reason="; ".join((self._request.reason, *self._overruled)),
        )

    def sort(self, held: Library, ledger: Ledger) -> None:
        """Sort the definitions on a library."""
        self._start()
        self._known = {**self._library.tools, **held.tools}
        plan = plan_import(self._coming(held), held, on_conflict=self._request.on_conflict)
        self._note_conflicts(plan)
        waiting = {
            record.candidate.digest
            for record in ledger.proposals.values()
            if record.is_open and record.is_arrival and record.candidate is not None
        }
        old_name = {new: old for old, new in plan.renamed}
        here = held.with_tools(plan.upserts.values())
        for new, definition in plan.upserts.items():
            name = old_name.get(new, new)
            if new in plan.replaced:
                came = self._library[name].definition
                self._let_propose(name, came, "replaced", "it would become a proposal")
            elif definition.digest in waiting:
                agrees = self.agrees_to(name)
                why = "" if agrees else "the proposal to add it is not decided"
                self._let_propose(name, definition, "added" if agrees else "held", why)
            elif definition.is_composite:
                moved = moved_pins(definition, settled(definition, here))
                if not moved and not needs_person(definition, self._known):
                    self._harmless.add(name)
                self._let_propose(
                    name, definition, "added" if self.agrees_to(name) else "held", moved
                )
            else:
                self._take(name, definition)

    def note(self, came: ImportedTool) -> None:
        """Note what came of a definition."""
        self._outcomes[came.name] = came

    def _coming(self, held: Library) -> Iterator[ToolDefinition]:
        """The definitions, children first; what came earlier and was pinned anew is known again."""
        library = self._library
        names = list(in_order(list(library.tools), library.dag.children))
        rest = [name for name in library.tools if name not in set(names)]
        for name in (*names, *rest):
            definition = library[name].definition
            yield settled(definition, held) if name in held else definition

    def _note_conflicts(self, plan: ImportPlan) -> None:
        for name in self._library.tools:
            self.note(ImportedTool(name=name, outcome="unchanged"))
        for name in plan.skipped:
            self.note(ImportedTool(name=name, outcome="skipped", why=_TAKEN))
        for name in plan.refused:
            self.note(ImportedTool(name=name, outcome="refused", why=_TAKEN))

    def _take(self, name: str, definition: ToolDefinition) -> None:
        """A new primitive: in, or held with the reason."""
        if name not in self._failed:
            self._failed[name] = text_faults(definition)
        failed = self._failed[name]
        if failed and name not in self._request.overruled:
            self._let_propose(name, definition, "held", failed=failed)
            return
        if needs_person(definition, self._known) and not self._request.agrees_to(name):
            why = "a person must agree to it: it may do harm, reach outside, or make others do so"
            self._let_propose(name, definition, "held", why)
            return
        self.accepted[definition.name] = definition
        if failed:
            codes = ", ".join(dict.fromkeys(check.code for check in failed))
            self._overruled.append(f"overruled of {name!r}: {codes}")
        if definition.name == name:
            self.note(ImportedTool(name=name, outcome="added"))
        else:
            self.note(ImportedTool(name=name, outcome="renamed", why=definition.name))

    def _let_propose(
        self,
        name: str,
        definition: ToolDefinition,
        outcome: Outcome,
        why: str = "",
        *,
        failed: Iterable[FailedCheck] = (),
    ) -> None:
        """Let a definition become a proposal."""
        checks = tuple(failed)
        self.proposing[name] = definition
        self.note(
            ImportedTool(name=name, outcome=outcome, why=why or checks_text(checks), failed=checks)
        )
