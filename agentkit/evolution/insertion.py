"""InsertTool: whether a composite enters the library, and how (CoCoDA, Algorithm 3).

A candidate is read, tried on its worked calls with every contract checked, compared with the tools
that are there, and added, merged into one that does the same, or rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from agentkit.composites.codec import program_from_json
from agentkit.composites.problems import CompositeLimits
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, DefinitionError, LibraryError
from agentkit.evolution.dry_run import (
    BudgetSpent,
    DryRun,
    Failed,
    agree,
    call_text,
    check_children,
    check_examples,
    check_probes,
    with_examples,
)
from agentkit.evolution.duplicates import Duplicate, find_duplicate, renamed
from agentkit.evolution.insert_outcomes import (
    REJECTION_OF_FAULT,
    SAME_TOOL,
    Added,
    InsertOutcome,
    InsertPolicy,
    Merged,
    Procedure,
    Refused,
    Rejected,
    refuse,
    refuse_source,
)
from agentkit.library.dag import ancestors, depth, find_cycle, flat_size
from agentkit.library.library import Library
from agentkit.library.pins import library_faults, repinned
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool
from agentkit.tools.validation import validate_arguments

_LONGEST_NAME = 256
_REPAIR = "repair the library first; agentkit check lists what is wrong"

Candidate: TypeAlias = str | ToolDefinition
"""The text of a composite, or its definition."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertPlan:
    """What a candidate would come to, and what has to be written for it.

    Attributes:
        outcome: The outcome; of one that is written, for the next library version.
        upserts: The definitions to write, children before parents.
    """

    outcome: InsertOutcome
    upserts: tuple[ToolDefinition, ...] = ()


async def plan_insert(candidate: Candidate, library: Library, procedure: Procedure) -> InsertPlan:
    """Whether a candidate would be added, merged or rejected. Nothing is written.

    Args:
        candidate: A composite.
        library: The library as it is.
        procedure: What InsertTool works with.
    """
    name = "" if isinstance(candidate, str) else candidate.name
    try:
        definition = _read(candidate, library, procedure)
        name = definition.name
        return await _plan(definition, library, procedure)
    except Refused as refused:
        return InsertPlan(outcome=refused.rejected)
    except BudgetSpent as spent:
        rejected = Rejected(
            code="budget",
            name=name,
            explanation=f"trying {name!r} out took {spent}",
            advice="make it do less on its examples, or raise the policy's bound",
        )
        return InsertPlan(outcome=rejected)


async def _plan(definition: ToolDefinition, library: Library, procedure: Procedure) -> InsertPlan:
    policy = procedure.policy
    known = library.get(definition.name)
    if known is not None and known.definition == definition:
        own = {name: name for name in definition.signature.properties}
        return _merge(Duplicate(name=known.name, parameters=own, reason=SAME_TOOL), (), library)
    revises = known is not None and policy.allow_revisions
    if revises:
        _check_acyclic(definition, library)
    trial = DryRun(library.tools, procedure)
    try:
        tool = trial.prepared(Tool(definition=definition))
    except CompositeError as error:
        raise refuse_source(definition.name, error.problems) from error
    await check_children(definition, trial)
    await check_examples(tool, trial)
    await check_probes(tool, trial)
    if revises:
        return _add(definition, await _above(definition, library, procedure), library)
    found = await find_duplicate(tool, library, trial)
    if found is not None:
        return _merger(definition, found, library, policy)
    if known is not None:
        raise refuse(
            "name_taken",
            known.name,
            f"{known.name!r} stands for another tool ({known.definition.digest[:12]})",
            "give the function another name, or allow revisions "
            "(InsertPolicy(allow_revisions=True)) when it is to take the place of that one",
        )
    return _add(definition, (), library)


def _add(
    definition: ToolDefinition, above: tuple[ToolDefinition, ...], library: Library
) -> InsertPlan:
    upserts = (definition, *above)
    after = library.with_tools([Tool(definition=one) for one in upserts])
    outcome = Added(
        definition=definition,
        version=library.version + 1,
        depth=depth(after, definition.name),
        flat_size=flat_size(after, definition.name),
        revised=definition.name in library,
        repinned=tuple(one.name for one in above),
    )
    return InsertPlan(outcome=outcome, upserts=upserts)


def _merger(
    candidate: ToolDefinition, found: Duplicate, library: Library, policy: InsertPolicy
) -> InsertPlan:
    examples = [
        replace(example, arguments=renamed(example.arguments, found.parameters))
        for example in candidate.examples
    ]
    known = library[found.name].definition
    into = with_examples(known, examples, most=policy.max_examples)
    if into is known:
        return _merge(found, (), library)
    return _merge(found, (into, *_pinned_above(library, into)), library)


def _merge(found: Duplicate, upserts: tuple[ToolDefinition, ...], library: Library) -> InsertPlan:
    known = library[found.name].definition
    into = upserts[0] if upserts else known
    outcome = Merged(
        into=into.name,
        definition=into,
        version=library.version + bool(upserts),
        examples_moved=len(into.examples) - len(known.examples),
        parameters=dict(found.parameters),
        reason=found.reason,
        repinned=tuple(one.name for one in upserts[1:]),
    )
    return InsertPlan(outcome=outcome, upserts=upserts)


# --- Read a candidate: is it data, is it a program, and does it fit the library -------------------


def _read(candidate: Candidate, library: Library, procedure: Procedure) -> ToolDefinition:
    """The definition of a candidate that is a composite of tools that can be called."""
    if isinstance(candidate, str):
        try:
            definition = compose(candidate, library.tools, limits=procedure.limits)
        except CompositeError as error:
            raise refuse_source(error.tool_name or "", error.problems) from error
        if not definition.signature.children:
            raise _childless(definition.name)
    else:
        definition = candidate
        check_data(definition, procedure.policy)
        if not definition.is_composite:
            raise _childless(definition.name)
        check_composite(definition, library, procedure.limits)
    for child in definition.signature.children:
        if child.name not in library.dag.depths:
            explanation = library.dag.why_unknown(child.name)
            raise refuse("broken_child", definition.name, explanation, _REPAIR)
    return definition


def check_data(definition: ToolDefinition, policy: InsertPolicy) -> None:
    """Stop a definition that is no JSON data, too large, or has no usable name or schema.

    Raises:
        Refused: With the code ``malformed``.
    """
    name = definition.name
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise _malformed(
            name,
            f"the name has {len(name):,} characters, or one that can not be printed",
            f"give it a name of at most {_LONGEST_NAME} printable characters",
        )
    try:
        size = len(canonical_json(definition.to_json()))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(
            name,
            f"the definition can not be stored: {type(error).__name__}: {error}",
            "definitions hold JSON data only",
        ) from error
    if size > policy.max_bytes:
        raise _malformed(
            name,
            f"the definition has {size:,} bytes, more than {policy.max_bytes:,} "
            "(InsertPolicy.max_bytes)",
            "shorten its words and its examples",
        )
    try:
        validate_arguments(definition, {})
    except DefinitionError as error:
        raise _malformed(name, str(error), "correct the schema of the parameters") from error


def _malformed(name: str, explanation: str, advice: str) -> Refused:
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    return refuse("malformed", shown, explanation, advice)


def _childless(name: str) -> Refused:
    return refuse(
        "childless",
        name,
        f"{name!r} calls no tool, so it is no composite",
        "call at least one tool of the library; a primitive is code, which a person adds: "
        "agentkit tools add, or ToolManager.register",
    )


def check_composite(definition: ToolDefinition, library: Library, limits: CompositeLimits) -> None:
    """Stop a composite that is no program, or does not fit the library.

    Raises:
        Refused: With the code of the first fault.
    """
    name = definition.name
    try:
        program_from_json(definition.body or {}, name=name, limits=limits)
    except CompositeError as error:
        raise refuse_source(name, error.problems) from error
    with_candidate = library.with_tools([definition])
    if not with_candidate.dag.children[name]:
        raise _childless(name)
    for fault in library_faults(with_candidate, [name]):
        code = REJECTION_OF_FAULT.get(fault.code, "outside_language")
        raise refuse(code, name, fault.message, f"{fault.advice}; or hand in its text")


def _check_acyclic(candidate: ToolDefinition, library: Library) -> None:
    """Stop a revision that would call, somewhere below, a tool that is made of it."""
    above = {candidate.name, *ancestors(library, candidate.name)}
    if not above.intersection(child.name for child in candidate.signature.children):
        return
    circle = find_cycle(library.with_tools([candidate])) or (candidate.name,)
    raise refuse(
        "cycle",
        candidate.name,
        f"with this revision the calls would run in a circle: {' -> '.join(map(repr, circle))}",
        "write it without calling a tool that is made of it",
    )


# --- What stands above a changed tool, pinned to it anew and tried --------------------------------


def _pinned_above(library: Library, changed: ToolDefinition) -> tuple[ToolDefinition, ...]:
    try:
        return tuple(one for one in repinned(library, [changed]) if one.name != changed.name)
    except LibraryError as error:
        raise refuse("breaks_parent", changed.name, str(error), _REPAIR) from error


async def _above(
    candidate: ToolDefinition, library: Library, procedure: Procedure
) -> tuple[ToolDefinition, ...]:
    """The composites above a revision, pinned to it; refused when one of them would break."""
    _pinned_above(library, candidate)
    above = await look_above(candidate, library, procedure)
    for name, how in above.broken.items():
        raise refuse(
            "breaks_parent",
            candidate.name,
            f"{name!r} is made of {candidate.name!r}, and would break: {how}",
            f"keep what {name!r} relies on, or revise it first",
        )
    return above.repinned


@dataclass(frozen=True, kw_only=True, slots=True)
class Above:
    """The composites above a changed tool.

    Attributes:
        repinned: As they are with the change, children before parents.
        broken: For each that the change breaks, how.
    """

    repinned: tuple[ToolDefinition, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)


async def look_above(changed: ToolDefinition, library: Library, procedure: Procedure) -> Above:
    """Pin the composites above a change to it, and try their worked calls.

    A composite that was broken before is not broken by the change, and one whose calls can not be
    tried here is left to ``agentkit check``.

    Raises:
        LibraryError: Composites above call each other in a circle.
    """
    above = tuple(one for one in repinned(library, [changed]) if one.name != changed.name)
    if not above or _is_wording(library[changed.name].definition, changed):
        return Above(repinned=above)
    after = library.with_tools(library[one.name].with_definition(one) for one in (changed, *above))
    broken = {}
    for parent in above:
        how = (await try_composite(parent, after, procedure)).broken
        before = library[parent.name].definition
        if how and not (await try_composite(before, library, procedure)).broken:
            broken[parent.name] = how
    return Above(repinned=above, broken=broken)


def _is_wording(before: ToolDefinition, after: ToolDefinition) -> bool:
    """Whether only words differ, which no program can notice."""
    told = before.specification
    return before == replace(
        after,
        description=before.description,
        specification=replace(after.specification, text=told.text, complexity=told.complexity),
        examples=before.examples,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """What trying a composite shows; nothing where its worked calls hold.

    Attributes:
        broken: How it fails, by its program or by a worked call.
        unknown: Why its worked calls can not be tried here.
    """

    broken: str = ""
    unknown: str = ""


async def try_composite(composite: ToolDefinition, library: Library, procedure: Procedure) -> Tried:
    """Whether a composite does in a library what its worked calls say."""
    try:
        check_composite(composite, library, procedure.limits)
    except Refused as refused:
        return Tried(broken=refused.rejected.explanation)
    if not composite.worked_calls:
        return Tried(unknown="it has no worked call to try")
    trial = DryRun(library.tools, procedure)
    tool = trial.safe(composite.name)
    for example in composite.worked_calls:
        try:
            ran = await trial.run(tool, example.arguments)
        except BudgetSpent as spent:
            return Tried(unknown=str(spent))
        if isinstance(ran, Failed):
            is_unknown = ran.cause == "no_stub"
            return Tried(unknown=ran.message) if is_unknown else Tried(broken=ran.message)
        if not agree(example.result, ran.value, tolerance=procedure.policy.tolerance):
            call = call_text(composite.name, example.arguments)
            return Tried(broken=f"{call} gave {ran.value!r:.200}, not {example.result!r:.200}")
    return Tried()
