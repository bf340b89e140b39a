"""InsertTool: whether a candidate enters the library, and how (CoCoDA, Algorithm 3).

Nothing here writes; ``ToolManager`` commits what is decided. The steps, in order: read and bind,
place in the DAG, the children's worked calls, the candidate's own, generated calls against all
contracts, duplicates, name.
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
    example_fault,
    with_examples,
)
from agentkit.evolution.duplicates import Duplicate, Judge, ToolIndex, find_duplicate, renamed
from agentkit.evolution.insert_outcomes import (
    REJECTION_OF_FAULT,
    SAME_TOOL,
    AddPlan,
    InsertPlan,
    InsertPolicy,
    MergePlan,
    Refused,
    Rejected,
    Witness,
    refuse,
    refuse_source,
)
from agentkit.library.dag import ancestors, find_cycle
from agentkit.library.event_chain import EventDraft
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.pins import library_faults, repinned
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool
from agentkit.tools.validation import validate_arguments

# --- Whether a definition that came as data can be kept at all: it may come from anywhere --------


_LONGEST_NAME = 256  # of a child in a program


def check_data(definition: ToolDefinition, policy: InsertPolicy) -> None:
    """The definition is JSON data of bounded size, with a name and a schema that can be used.

    Raises:
        Refused: It is not.
    """
    name = definition.name
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise _malformed(
            name,
            f"the name has {len(name):,} characters, or one that can not be printed",
            f"give it a name of at most {_LONGEST_NAME} printable characters",
        )
    size = _size(definition)
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


def _size(definition: ToolDefinition) -> int:
    try:
        return len(canonical_json(definition.to_json()))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(
            definition.name,
            f"the definition can not be stored: {type(error).__name__}: {error}",
            "definitions hold JSON data only",
        ) from error


def _malformed(name: str, explanation: str, advice: str) -> Refused:
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}\u2026"
    return refuse("malformed", shown, explanation, advice)


# --- From what was handed in to a definition whose place in the library is sound -----------------
# Everything here is static: nothing runs.


Candidate: TypeAlias = str | ToolDefinition | Tool
"""The text of one function, a definition with a program, or a tool with code of its own."""


def read_candidate(
    candidate: Candidate, library: Library, *, policy: InsertPolicy, limits: CompositeLimits
) -> Tool:
    """The candidate as a tool; a composite has no function yet.

    Raises:
        Refused: It is outside the language, or does not fit its children.
    """
    if isinstance(candidate, str):
        try:
            definition = compose(candidate, library.tools, limits=limits)
        except CompositeError as error:
            raise refuse_source(error.tool_name or "", error.problems) from error
        if not definition.signature.children:
            raise _without_children(definition.name)
        _check_grounded(definition, library)
        return Tool(definition=definition)
    tool = candidate if isinstance(candidate, Tool) else Tool(definition=candidate)
    check_data(tool.definition, policy)
    if tool.definition.is_composite:
        check_composite(tool.definition, library, limits)
        _check_grounded(tool.definition, library)
        return Tool(definition=tool.definition)
    _check_primitive(tool, policy)
    return tool


def _without_children(name: str) -> Refused:
    return refuse(
        "childless",
        name,
        f"{name!r} calls no tool, so it is no composite",
        "call at least one tool of the library; a primitive is code, which a person adds",
    )


def _check_primitive(tool: Tool, policy: InsertPolicy) -> None:
    if policy.allow_primitives and tool.is_bound:
        return
    if policy.allow_primitives:
        explanation = f"{tool.name!r} calls no tool and has no code in this process"
        advice = "give a Tool made from a function, for instance with @tool"
    else:
        explanation = f"{tool.name!r} calls no tool, so it would be a primitive"
        advice = (
            "primitives are code, which a person adds: agentkit tools add, ToolManager.register, "
            "or InsertPolicy(allow_primitives=True)"
        )
    raise refuse("childless", tool.name, explanation, advice)


def check_composite(definition: ToolDefinition, library: Library, limits: CompositeLimits) -> None:
    """What ``compose`` guarantees for text, for a definition that came as data.

    Raises:
        Refused: Its program is outside the language or does not fit its children, or its
            signature is not what follows from them.
    """
    name = definition.name
    try:
        program_from_json(definition.body or {}, name=name, limits=limits)
    except CompositeError as error:
        raise refuse_source(name, error.problems) from error
    with_candidate = library.with_tools([definition])
    if not with_candidate.dag.children[name]:
        raise _without_children(name)
    for fault in library_faults(with_candidate, [name]):
        code = REJECTION_OF_FAULT.get(fault.code, "outside_language")
        raise refuse(code, name, fault.message, f"{fault.advice}; or hand in its text")


def _check_grounded(definition: ToolDefinition, library: Library) -> None:
    """Everything below the candidate is there, and ends in primitives."""
    for child in definition.signature.children:
        if child.name not in library.dag.depths:
            explanation = library.dag.why_unknown(child.name)
            advice = "repair the library first; agentkit check lists what is wrong"
            raise refuse("broken_child", definition.name, explanation, advice)


# --- What changes above a tool when it gets a new revision ---------------------------------------


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


# --- Composites above a tool that changes: pinned anew, and tried as far as that is possible -----


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


def marks(
    author: Author, changed: ToolDefinition, above: Above, *, version: int
) -> tuple[EventDraft, ...]:
    """That the composites above that nobody could try wait for re-validation."""
    after = {definition.name: definition for definition in above.repinned}
    return tuple(
        EventDraft(
            kind="marked",
            author=author,
            reason=f"{changed.name!r} changed, and {why}",
            tool_name=name,
            library_version=version,
            digest_after=after[name].digest,
            facts={"child": changed.name},
        )
        for name, why in above.unknown.items()
    )


# --- InsertTool: whether a candidate enters the library, and how (CoCoDA, Algorithm 3) -----------
# Nothing here writes; ``ToolManager`` commits what is decided. The steps, in order: read and bind,
# place in the DAG, the children's worked calls, the candidate's own, generated calls against all
# contracts, duplicates, name.


@dataclass(frozen=True, kw_only=True, slots=True)
class Procedure:
    """How candidates are judged.

    Attributes:
        policy: What is asked of a candidate.
        limits: Caps on its text and its runs.
        judge: Decides on duplicates whose words differ; None keeps both.
    """

    policy: InsertPolicy = field(default_factory=InsertPolicy)
    limits: CompositeLimits = field(default_factory=CompositeLimits)
    judge: Judge | None = None


async def plan_insert(
    candidate: Candidate, library: Library, index: ToolIndex, procedure: Procedure
) -> InsertPlan:
    """What is to happen with a candidate; the library is not changed.

    Args:
        candidate: Text of one function, a definition with a program, or a tool with code.
        library: The library, with the code of its primitives.
        index: Of that library.
        procedure: How to judge.

    Raises:
        ModelError: The judge could not answer.
    """
    name = _name_of(candidate)
    try:
        tool = read_candidate(candidate, library, policy=procedure.policy, limits=procedure.limits)
        name = tool.name
        return await _plan(tool, library, index, procedure)
    except Refused as refused:
        return refused.rejected
    except BudgetSpent as spent:
        return Rejected(
            code="budget",
            name=name,
            explanation=f"trying {name!r} out took {spent}",
            advice="make it do less on its examples, or raise the policy's bound",
        )


async def _plan(tool: Tool, library: Library, index: ToolIndex, procedure: Procedure) -> InsertPlan:
    policy = procedure.policy
    known = library.get(tool.name)
    if known is not None and known.definition == tool.definition:
        own = {name: name for name in tool.definition.signature.properties}
        reason = SAME_TOOL
        return MergePlan(
            into=known.definition, moved=0, parameters=own, reason=reason, is_itself=True
        )
    revises = known is not None and policy.allow_revisions
    if revises:
        check_acyclic(tool.definition, library)
    trial = DryRun(library.tools, policy=policy, limits=procedure.limits)
    prepared = _prepared(tool, trial)
    await check_children(tool.definition, trial, policy)
    await check_examples(prepared, trial, policy)
    await check_probes(prepared, trial, policy)
    if revises:
        above = await check_parents(tool, library, policy=policy, limits=procedure.limits)
        return AddPlan(tool=tool, revised=True, repinned=above)
    found = await find_duplicate(
        prepared, library, index, trial, policy=policy, judge=procedure.judge
    )
    if found is not None:
        return _merger(tool.definition, found, library, policy)
    if known is not None:
        raise _name_taken(known.definition)
    return AddPlan(tool=tool)


def _prepared(tool: Tool, trial: DryRun) -> Tool:
    try:
        return trial.prepared(tool)
    except CompositeError as error:
        raise refuse_source(tool.name, error.problems) from error


def _merger(
    candidate: ToolDefinition, found: Duplicate, library: Library, policy: InsertPolicy
) -> MergePlan:
    known = library[found.name].definition
    examples = [
        replace(example, arguments=renamed(example.arguments, found.parameters))
        for example in candidate.examples
    ]
    into = with_examples(known, examples, most=policy.max_examples)
    moved = len(into.examples) - len(known.examples)
    above = pinned_above(library, into, candidate=candidate.name) if moved else ()
    return MergePlan(
        into=into, moved=moved, parameters=found.parameters, reason=found.reason, repinned=above
    )


def _name_taken(known: ToolDefinition) -> Refused:
    return refuse(
        "name_taken",
        known.name,
        f"{known.name!r} stands for another tool ({known.digest[:12]})",
        "give the function another name, or allow revisions "
        "(InsertPolicy(allow_revisions=True)) when it is to take the place of that one",
    )


def _name_of(candidate: Candidate) -> str:
    return "" if isinstance(candidate, str) else candidate.name
