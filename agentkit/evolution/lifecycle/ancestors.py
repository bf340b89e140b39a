"""Composites above a tool that changes: pinned anew, and tried as far as that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentkit.composites.problems import CompositeLimits
from agentkit.evolution.insertion.agreement import agree
from agentkit.evolution.insertion.budget import BudgetSpent
from agentkit.evolution.insertion.dry_run import DryRun, Failed
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.reading import check_composite
from agentkit.evolution.insertion.refusal import Refused
from agentkit.evolution.insertion.trial import call_text
from agentkit.library.library import Library
from agentkit.library.pins import repinned
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """What trying one composite showed.

    Attributes:
        broken: How it broke; empty when it did not.
        unknown: Why nobody knows whether it holds; empty when somebody does.
    """

    broken: str = ""
    unknown: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Above:
    """The composites above a changed tool.

    Attributes:
        repinned: They, pinned to the change; children before parents.
        broken: By name: how one would break.
        unknown: By name: why nobody knows whether it holds.
    """

    repinned: tuple[ToolDefinition, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)


async def look_above(
    changed: ToolDefinition, library: Library, *, policy: InsertPolicy, limits: CompositeLimits
) -> Above:
    """Pin the composites above a change anew, and try each of them with it.

    A change of words and examples alone can not change what a composite does, so nothing is tried
    for it.

    Args:
        changed: The new revision of a tool of the library.
        library: The library that holds the earlier one, with the code that there is.
        policy: Which tools may run, and how much.
        limits: Caps on each run.

    Raises:
        LibraryError: Composites above call each other in a circle, so no pin can be moved.
    """
    above = tuple(one for one in repinned(library, [changed]) if one.name != changed.name)
    if not above or is_wording(library[changed.name].definition, changed):
        return Above(repinned=above)
    tools = [library[one.name].with_definition(one) for one in (changed, *above)]
    after = library.with_tools(tools)
    broken, unknown = {}, {}
    for parent in above:
        tried = await try_composite(parent, after, policy=policy, limits=limits)
        if tried.broken:
            before = library[parent.name].definition
            earlier = await try_composite(before, library, policy=policy, limits=limits)
            if earlier.broken:
                tried = Tried(unknown=f"it was broken before: {earlier.broken}")
        if tried.broken:
            broken[parent.name] = tried.broken
        elif tried.unknown:
            unknown[parent.name] = tried.unknown
    return Above(repinned=above, broken=broken, unknown=unknown)


async def try_composite(
    composite: ToolDefinition, library: Library, *, policy: InsertPolicy, limits: CompositeLimits
) -> Tried:
    """Whether a composite of the library does what its worked calls say, as far as it can be tried.

    Nothing outside is touched: children that are not pure answer from their worked calls.

    Args:
        composite: As the library holds it.
        library: With the code that there is.
        policy: Which tools may run, and how much.
        limits: Caps on each run.
    """
    try:
        check_composite(composite, library, limits)
    except Refused as refused:
        return Tried(broken=refused.rejected.explanation)
    if not composite.worked_calls:
        return Tried(unknown="it has no worked call to try")
    trial = DryRun(library.tools, policy=policy, limits=limits)
    try:
        return await _worked_calls_hold(composite, trial, policy)
    except BudgetSpent as spent:
        return Tried(unknown=str(spent))


async def _worked_calls_hold(
    composite: ToolDefinition, trial: DryRun, policy: InsertPolicy
) -> Tried:
    tool = trial.safe(composite.name)
    for example in composite.worked_calls:
        ran = await trial.run(tool, example.arguments)
        if isinstance(ran, Failed):
            if ran.cause == "no_stub":
                return Tried(unknown=ran.message)
            return Tried(broken=ran.message)
        if not agree(example.result, ran.value, tolerance=policy.tolerance):
            call = call_text(composite.name, example.arguments)
            return Tried(broken=f"{call} gave {ran.value!r:.200}, not {example.result!r:.200}")
    return Tried()


def is_wording(before: ToolDefinition, after: ToolDefinition) -> bool:
    """Whether two revisions differ in words and examples alone, which no program depends on.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.tools.definition import Description, Specification
        >>> ping = ToolDefinition(name="ping")
        >>> is_wording(ping, replace(ping, description=Description(summary="Ping a host.")))
        True
        >>> is_wording(ping, replace(ping, specification=Specification(pre=("n > 0",))))
        False
    """
    told = before.specification
    return before == replace(
        after,
        description=before.description,
        specification=replace(after.specification, text=told.text, complexity=told.complexity),
        examples=before.examples,
    )
