"""What changes above a tool when it gets a new revision."""

from __future__ import annotations

from agentkit.composites.problems import CompositeLimits
from agentkit.errors import LibraryError
from agentkit.evolution.insertion.dry_run import DryRun
from agentkit.evolution.insertion.outcome import Witness
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.reading import check_composite
from agentkit.evolution.insertion.refusal import Refused, refuse
from agentkit.evolution.insertion.trial import example_fault
from agentkit.library.dag import ancestors, find_cycle
from agentkit.library.library import Library
from agentkit.library.pins import repinned
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def pinned_above(
    library: Library, changed: ToolDefinition, *, candidate: str
) -> tuple[ToolDefinition, ...]:
    """The composites made of a changed definition, pinned to it; children before parents.

    Raises:
        Refused: Some of them call each other in a circle, so that they can not be pinned.
    """
    try:
        moved = repinned(library, [changed])
    except LibraryError as error:
        advice = "repair the library first; agentkit check lists what is wrong"
        raise refuse("breaks_parent", candidate, str(error), advice) from error
    return tuple(found for found in moved if found.name != changed.name)


def check_acyclic(candidate: ToolDefinition, library: Library) -> None:
    """The next revision of a tool calls nothing that is made of the tool.

    A new tool can not close a cycle: what it calls is in the library already, and pinned.

    Raises:
        Refused: It does.
    """
    above = {candidate.name, *ancestors(library, candidate.name)}
    if not above.intersection(child.name for child in candidate.signature.children):
        return
    circle = find_cycle(library.with_tools([candidate])) or (candidate.name,)
    path = " -> ".join(map(repr, circle))
    raise refuse(
        "cycle",
        candidate.name,
        f"with this revision the calls would run in a circle: {path}",
        "write it without calling a tool that is made of it",
    )


async def check_parents(
    candidate: Tool, library: Library, *, policy: InsertPolicy, limits: CompositeLimits
) -> tuple[ToolDefinition, ...]:
    """The composites above a new revision, pinned to it, which still do what their calls say.

    Args:
        candidate: The new revision, which passed validation.
        library: The library that holds the earlier one.
        policy: Which tools may run, and how much.
        limits: Caps on each run.

    Raises:
        Refused: One would break.
    """
    above = pinned_above(library, candidate.definition, candidate=candidate.name)
    changed = library.with_tools([candidate, *above])
    trial = DryRun(changed.tools, policy=policy, limits=limits)
    for parent in above:
        try:
            check_composite(parent, changed, limits)
        except Refused as refused:
            raise _breaks(candidate, parent, refused.rejected.explanation) from refused
        tool = trial.safe(parent.name)
        for example in parent.worked_calls:
            fault = await example_fault(tool, example, trial, policy)
            if fault is not None:
                witness = Witness(
                    tool=parent.name, arguments=example.arguments, expected=example.result
                )
                raise _breaks(candidate, parent, fault, witness)
    return above


def _breaks(
    candidate: Tool, parent: ToolDefinition, fault: str, witness: Witness | None = None
) -> Refused:
    return refuse(
        "breaks_parent",
        candidate.name,
        f"{parent.name!r} is made of {candidate.name!r}, and would break: {fault}",
        f"keep what {parent.name!r} relies on, or revise it first",
        witness=witness,
    )
