"""An artifact into a library that is in use, through the Tool Manager."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

from agentkit.errors import UsageError
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.snapshot import Snapshot
from agentkit.evolution.lifecycle.ancestors import Tried, try_composite
from agentkit.evolution.lifecycle.arriving import moved_pins, settled
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposals.proposal import Proposal
from agentkit.export.artifact import Artifact
from agentkit.export.requests import ImportedTool, ImportReport, ImportRequest, Outcome
from agentkit.export.sorting import Sorting
from agentkit.library.library import Library
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool, tools_by_name


async def import_artifact(
    artifact: Artifact,
    manager: ToolManager,
    request: ImportRequest,
    *,
    code: Mapping[str, Tool] | Iterable[Tool] = (),
    dry_run: bool = False,
) -> ImportReport:
    """Bring the definitions of an artifact into a library.

    New tools are looked through, and come in together as one library version: their texts must
    pass ``IMPORT_CHECKS``; destructive tools, those that move money and those that reach into the
    world come in when the person agrees; a composite comes in when it fits the tools that it is
    made of, and when its worked calls hold, as far as they can be tried. Where the library has
    other revisions of these tools, a person must agree that it is pinned to them.

    What does not come in becomes a proposal of the stream ``import``, and so does a tool that is
    to be replaced. Every check looks at it; where nobody else must agree, the person's import is
    its approval. The others can be approved, overruled or rejected later, with no second import.

    Args:
        artifact: What ``read_artifact`` gave.
        manager: Of the library.
        request: Who imports, and what about names that are taken.
        code: Tools of this process, with which the worked calls of composites are tried. Without
            their code, tools answer from their own worked calls, where they have any.
        dry_run: Write nothing, and say what would come of it. Of what would become a proposal it
            is then said that it would, not what further checks say.

    Raises:
        UsageError: ``request`` names a tool that the artifact does not have; or parameters in code
            differ from those of the definition.
        StoreError: The store failed. New tools are in together or not at all; proposals that were
            made before stay.
    """
    named = {*request.approved, *request.overruled}
    unknown = sorted(named - set(artifact.library.tools))
    if unknown:
        raise UsageError(f"the artifact has no tool {', '.join(map(repr, unknown))} to agree to")
    code_here = _code_for(artifact.library, manager.refresh()) | dict(tools_by_name(code))
    tried = await _try_all(artifact.library, code_here)
    sorting = Sorting(artifact.library, request, tried)
    sorting.sort(manager.library, manager.ledger)
    if dry_run:
        return sorting.report(manager.library.version)
    if sorting.accepted:
        identity = f"import-{uuid.uuid4().hex}"
        manager.edit(
            lambda held: sorting.change(held, manager.ledger, identity), operation="import"
        )
    for name, definition in sorting.proposing.items():
        sorting.note(await _propose(name, definition, manager, request))
    return sorting.report(manager.library.version)


def _code_for(library: Library, held: Library) -> dict[str, Tool]:
    """The tools of the manager that have code, and the very definition that the artifact has."""
    return {
        tool.name: tool
        for tool in held
        if tool.is_bound
        and not tool.definition.is_composite
        and tool.name in library
        and library[tool.name].definition == tool.definition
    }


async def _try_all(library: Library, code: Mapping[str, Tool]) -> dict[str, Tried]:
    """What the worked calls of each composite show, over the tools that it was made for.

    It comes in over no others, so this holds wherever it comes in.
    """
    policy, limits = InsertPolicy(), CompositeLimits()
    bound = Snapshot.of(library, code).library if code else library
    return {
        one.name: await try_composite(one, bound, policy=policy, limits=limits)
        for one in library.definitions
        if one.is_composite
    }


async def _propose(
    name: str, definition: ToolDefinition, manager: ToolManager, request: ImportRequest
) -> ImportedTool:
    """Propose a tool that is new or a new revision, and bring it on as far as it comes."""
    proposal, moved = _proposal(definition, manager, request)
    record = await manager.submit_async(proposal)
    why = ""
    if record.is_open and (not record.needs or request.agrees_to(name)):
        record = manager.approve(record.proposal_id, person=request.person, reason=request.reason)
        if record.state == "validated":
            (step,) = await manager.advance_async(record.proposal_id)
            record, why = manager.ledger.proposals[record.proposal_id], step.why
    identity = record.proposal_id
    if record.state == "active":
        outcome: Outcome = "replaced" if proposal.base else "added"
        return ImportedTool(name=name, outcome=outcome, why=moved, proposal_id=identity)
    why = why or manager.standing(identity).why
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
