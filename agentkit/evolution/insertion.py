"""InsertTool: whether a composite enters the library, and how (CoCoDA, Algorithm 3).

A candidate is read, tried on its worked calls with every contract checked, compared with the tools
that are there, and added, merged into one that does the same, or rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from agentkit.composites.composite import program_from_json
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, DefinitionError, LibraryError, SourceProblem
from agentkit.evolution.dry_run import (
    BudgetSpent,
    DryRun,
    Failed,
    InsertPolicy,
    call_text,
    cut,
    probes,
    runs_live,
    with_examples,
)
from agentkit.evolution.duplicates import Duplicate, find_duplicate, renamed
from agentkit.evolution.proposal import Consent, RejectedBy, checks_to_json
from agentkit.evolution.validation.report import FailedCheck, failed
from agentkit.library.dag import ancestors, depth, find_cycle, flat_size
from agentkit.library.library import Library
from agentkit.library.pins import library_faults, repinned
from agentkit.messages import JsonObject
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool
from agentkit.tools.validation import validate_arguments

# --- What came of a candidate ---------------------------------------------------------------------

Candidate: TypeAlias = str | ToolDefinition
"""The text of a composite, or its definition."""

SAME_TOOL = "it is the same tool, to the last example"
"""The reason of a merge of what the library holds just like that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """What a candidate comes to on the newest library.

    A new composite is added; merged into a tool that does the same, which gets its worked calls; or
    rejected (CoCoDA, Algorithm 3).

    Attributes:
        candidate: The definition as it would be, moved onto the newest revision.
        base: The revision that it would replace, or the tool that it is merged into; None when the
            library has no such tool.
        failed: Every reason against it.
        doubts: What may be wrong with its words, which a person is asked about.
        by: Who has these reasons.
        needs: Who must agree to it.
        waits_for: What has to be decided first; empty for nothing.
        duplicate: Why a composite is merged, and for each of its parameters the one of the other
            tool.
        upserts: What is written of a composite: its definition or the tool that it is merged into,
            and the composites above that are pinned to that anew. Empty where nothing changes.
        version: The library version that holds it.
        depth: Levels of composites under one that is added; 1 for one made of primitives.
        flat_size: The fewest primitive calls behind one call of it, all levels deep.
        problems: Places in its text, when the text is what is wrong.
    """

    candidate: ToolDefinition
    base: ToolDefinition | None = None
    failed: tuple[FailedCheck, ...] = ()
    doubts: tuple[FailedCheck, ...] = ()
    by: RejectedBy = "checks"
    needs: tuple[Consent, ...] = ()
    waits_for: str = ""
    duplicate: Duplicate | None = None
    upserts: tuple[ToolDefinition, ...] = ()
    version: int = 0
    depth: int = 0
    flat_size: int = 0
    problems: tuple[SourceProblem, ...] = ()

    @property
    def outcome(self) -> Literal["added", "merged", "rejected"]:
        """Which of these."""
        if self.failed:
            return "rejected"
        return "added" if self.duplicate is None else "merged"

    @property
    def definition(self) -> ToolDefinition:
        """The composite as the library has it, or the tool that it is merged into."""
        unchanged = self.base if self.duplicate is not None and self.base else self.candidate
        return self.upserts[0] if self.upserts else unchanged

    @property
    def is_revision(self) -> bool:
        """Whether it replaces an earlier revision."""
        return self.base is not None and self.duplicate is None

    @property
    def examples_moved(self) -> int:
        """How many worked calls are new to the tool that it is merged into."""
        return len(self.definition.examples) - len(self.base.examples) if self.base else 0

    @property
    def saved_calls(self) -> int:
        """Tool calls that one call of it saves."""
        return max(0, self.flat_size - 1)

    @property
    def repinned(self) -> tuple[str, ...]:
        """Composites above that are pinned anew."""
        return tuple(one.name for one in self.upserts[1:])

    def facts(self, base: str) -> dict[str, Any]:
        """Who must agree and why, and the candidate where it was moved to another revision."""
        facts: dict[str, Any] = {"needs": list(self.needs)} if self.needs else {}
        if self.doubts:
            facts["doubts"] = checks_to_json(self.doubts)
        if self.base is not None and not self.failed and self.base.digest != base:
            facts |= {"base": self.base.digest, "candidate": self.candidate.to_json()}
        return facts

    def __str__(self) -> str:
        name = self.candidate.name or "candidate"
        if self.failed:
            places = "".join(f"\n  {problem}" for problem in self.problems)
            return f"{name} rejected [{self.failed[0].code}]: {self.failed[0].message}{places}"
        into = "" if self.duplicate is None else f" into {self.duplicate.name}"
        return f"{name} {self.outcome}{into}: library version {self.version}"


_LONGEST = 2_000


class Refused(Exception):  # noqa: N818 - not an error of the caller; it carries a reason
    """Stops a candidate, for a reason of ``phrases/reasons.toml`` or for problems of its text."""

    def __init__(
        self, reason: str, *, problems: Iterable[SourceProblem] = (), **values: Any
    ) -> None:
        self.problems = tuple(problems)
        found = failed(reason, **values)
        if len(found.message) > _LONGEST:
            found = replace(found, message=f"{found.message[:_LONGEST]}…")
        self.failed = found
        super().__init__(str(found))

    @classmethod
    def text(cls, problems: Iterable[SourceProblem]) -> Refused:
        """For a text that is no program: its first problem, with all others."""
        first, *others = found = tuple(problems)
        more = f" (and {len(others)} more)" if others else ""
        message = f"{first.message}{more}"
        return cls("text", code=first.code, message=message, advice=first.advice, problems=found)


# --- Add, merge or reject -------------------------------------------------------------------------

_LONGEST_NAME = 256
MAX_BYTES = 262_144
"""Largest definition that is taken, in bytes of its canonical JSON."""


async def plan_insert(candidate: Candidate, library: Library, policy: InsertPolicy) -> CheckResult:
    """Whether a candidate would be added, merged or rejected. Nothing is written.

    Args:
        candidate: A composite.
        library: The library as it is; the outcome is that of its next version.
        policy: What a candidate has to show.
    """
    name = "" if isinstance(candidate, str) else candidate.name
    try:
        definition = candidate
        if isinstance(definition, str):
            definition = compose(definition, library.tools)
        name = definition.name
        _check_place(definition, library, is_composed=isinstance(candidate, str))
        return await _decide(definition, library, policy)
    except Refused as error:
        refused = error
    except CompositeError as error:
        name, refused = name or error.tool_name or "", Refused.text(error.problems)
    except BudgetSpent as spent:
        refused = Refused("budget", name=name, spent=spent)
    short = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    return CheckResult(
        candidate=ToolDefinition(name=short), failed=(refused.failed,), problems=refused.problems
    )


async def _decide(
    definition: ToolDefinition, library: Library, policy: InsertPolicy
) -> CheckResult:
    known = library.get(definition.name)
    if known is not None and known.definition == definition:
        own = {name: name for name in definition.signature.properties}
        same = Duplicate(name=known.name, parameters=own, reason=SAME_TOOL)
        return await _merged(definition, same, library, policy)
    revises = known is not None and policy.allow_revisions
    if revises:
        _check_acyclic(definition, library)
    trial = DryRun(library.tools, policy)
    tool = trial.prepared(Tool(definition=definition))
    await _check_children(definition, trial)
    await _check_examples(tool, trial)
    await _check_probes(tool, trial)
    found = None if revises else await find_duplicate(tool, library, trial)
    if found is not None:
        return await _merged(definition, found, library, policy)
    if known is not None and not revises:
        raise Refused("name_taken", name=known.name, revision=known.definition.digest[:12])
    upserts = (definition, *await pinned_above(definition, library, policy))
    after = library.with_tools([Tool(definition=one) for one in upserts])
    return CheckResult(
        candidate=definition,
        base=None if known is None else known.definition,
        upserts=upserts,
        version=library.version + 1,
        depth=depth(after, definition.name),
        flat_size=flat_size(after, definition.name),
    )


async def _merged(
    candidate: ToolDefinition, found: Duplicate, library: Library, policy: InsertPolicy
) -> CheckResult:
    known = library[found.name].definition
    moved = (
        replace(example, arguments=renamed(example.arguments, found.parameters))
        for example in candidate.examples
    )
    into = with_examples(known, moved)
    is_changed = into is not known
    return CheckResult(
        candidate=candidate,
        base=known,
        duplicate=found,
        upserts=(into, *await pinned_above(into, library, policy)) if is_changed else (),
        version=library.version + is_changed,
    )


# --- Read a candidate: is it data, is it a program, and does it fit the library -------------------


def _check_place(definition: ToolDefinition, library: Library, *, is_composed: bool) -> None:
    """Stop what is no composite of tools that can be called; what was composed from text fits."""
    if not is_composed:
        check_data(definition)
    if not definition.is_composite or not definition.signature.children:
        raise Refused("childless", name=definition.name)
    if not is_composed:
        held = library.get(definition.name)
        is_new = held is None or held.definition.body != definition.body
        check_composite(definition, library, is_new=is_new)
    for child in definition.signature.children:
        if child.name not in library.dag.depths:
            why = library.dag.why_unknown(child.name)
            raise Refused("broken_child", problem=why)


def check_data(definition: ToolDefinition) -> None:
    """Stop a definition that is no JSON data, too large, or has no usable name or schema.

    Raises:
        Refused: With the code ``malformed``.
    """
    name = definition.name
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise Refused("malformed.name", length=len(name), allowed=_LONGEST_NAME)
    try:
        size = len(canonical_json(definition.to_json()))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise Refused("malformed.data", problem=problem) from error
    if size > MAX_BYTES:
        raise Refused("malformed.size", size=size, allowed=MAX_BYTES)
    try:
        validate_arguments(definition, {})
    except DefinitionError as error:
        raise Refused("malformed.schema", problem=error) from error


def check_composite(definition: ToolDefinition, library: Library, *, is_new: bool = False) -> None:
    """Stop a composite that is no program, or does not fit the library.

    Args:
        definition: The composite.
        library: The library, with it or without it.
        is_new: As for ``program_from_json``.

    Raises:
        Refused: With the code of the first fault.
    """
    name = definition.name
    try:
        program_from_json(definition.body or {}, name=name)
    except CompositeError as error:
        raise Refused.text(error.problems) from error
    with_candidate = library.with_tools([definition])
    if not with_candidate.dag.children[name]:
        raise Refused("childless", name=name)
    for fault in library_faults(with_candidate, [name]):
        advice = f"{fault.advice}; or hand in its text"
        raise Refused("text", code=fault.code, message=fault.message, advice=advice)
    if is_new:
        try:
            program_from_json(
                definition.body or {}, tools=with_candidate.tools, name=name, is_new=True
            )
        except CompositeError as error:
            raise Refused.text(error.problems) from error


def _check_acyclic(candidate: ToolDefinition, library: Library) -> None:
    """Stop a revision that would call, somewhere below, a tool that is made of it."""
    above = {candidate.name, *ancestors(library, candidate.name)}
    if not above.intersection(child.name for child in candidate.signature.children):
        return
    circle = find_cycle(library.with_tools([candidate])) or (candidate.name,)
    raise Refused("cycle", circle=" -> ".join(map(repr, circle)))


# --- Try it out: its children's worked calls, its own, and generated ones -------------------------


async def _check_children(candidate: ToolDefinition, trial: DryRun) -> None:
    """Every child still does what its own worked calls say (L3 and L4 of each child)."""
    for child in candidate.signature.children:
        tool = trial.safe(child.name)
        for example in tool.definition.worked_calls:
            fault = await trial.fault_of(tool, example)
            if fault is not None:
                raise Refused("child_examples_failed", child=child.name, problem=fault.message)


async def _check_examples(candidate: Tool, trial: DryRun) -> None:
    """The candidate's own worked calls fit its parameters, run, and give what they say."""
    definition = candidate.definition
    if not definition.worked_calls:
        raise Refused("no_examples", name=definition.name)
    for example in definition.examples:
        found = validate_arguments(definition, example.arguments)
        if found:
            call = call_text(definition.name, example.arguments)
            raise Refused("example", call=call, problem=found[0].rule)
        fault = await trial.fault_of(candidate, example) if example.is_whole else None
        if fault is not None:
            raise _explained(definition, example.arguments, fault, trial)


async def _check_probes(candidate: Tool, trial: DryRun) -> None:
    """No generated call that the candidate allows breaks a child's contract, or its own promise.

    Errors without a contract say nothing here: nobody promised that there are none.
    """
    definition = candidate.definition
    if not runs_live(definition):
        return
    worked = [example.arguments for example in definition.worked_calls]
    for arguments in probes(definition.signature, worked):
        ran = await trial.run(candidate, arguments)
        if not isinstance(ran, Failed) or ran.cause not in {"precondition", "postcondition"}:
            continue
        if ran.cause == "precondition" and ran.tool == definition.name:
            continue  # outside of what the candidate allows
        raise _explained(definition, arguments, ran, trial)


def _explained(
    definition: ToolDefinition, arguments: JsonObject, fault: Failed, trial: DryRun
) -> Refused:
    """The reason to reject a candidate one of whose calls failed."""
    message = f"{call_text(definition.name, arguments)}: {cut(fault.message)}"
    if fault.cause == "no_stub":
        code, advice = trial.lacking(fault.tool)
        return Refused("text", code=code, message=message, advice=advice)
    if fault.cause == "other_result":
        return Refused("example_failed", problem=fault.message)
    reason: str = "run_failed" if fault.cause == "error" else fault.cause
    if fault.cause != "error" and fault.tool != definition.name:
        reason = f"child_{reason}"
    return Refused(reason, message=message, condition=fault.condition, tool=fault.tool)


# --- What stands above a changed tool, pinned to it anew and tried --------------------------------


async def pinned_above(
    changed: ToolDefinition, library: Library, policy: InsertPolicy
) -> tuple[ToolDefinition, ...]:
    """The composites above a change, pinned to it, children before parents, and tried.

    A composite that was broken before is not broken by the change, and one whose calls cannot be
    tried here is left to ``agentkit check``.

    Raises:
        Refused: One of them would break, or they call each other in a circle.
    """
    try:
        above = tuple(one for one in repinned(library, [changed]) if one.name != changed.name)
    except LibraryError as error:
        raise Refused("breaks_parent.circle", problem=error) from error
    if not above or _is_wording(library[changed.name].definition, changed):
        return above
    after = library.with_tools(library[one.name].with_definition(one) for one in (changed, *above))
    for parent in above:
        how = await broken_by(parent, after, policy)
        before = library[parent.name].definition
        if how and not await broken_by(before, library, policy):
            raise Refused("breaks_parent", parent=parent.name, child=changed.name, problem=how)
    return above


def _is_wording(before: ToolDefinition, after: ToolDefinition) -> bool:
    """Whether only words differ, which no program can notice."""
    told = before.specification
    return before == replace(
        after,
        description=before.description,
        specification=replace(after.specification, text=told.text, complexity=told.complexity),
        examples=before.examples,
    )


async def broken_by(composite: ToolDefinition, library: Library, policy: InsertPolicy) -> str:
    """How a composite fails in a library, by its program or by a worked call.

    Empty where its worked calls hold, and where they cannot be tried here.
    """
    try:
        check_composite(composite, library)
    except Refused as refused:
        return refused.failed.message
    trial = DryRun(library.tools, policy)
    tool = trial.safe(composite.name)
    for example in composite.worked_calls:
        try:
            fault = await trial.fault_of(tool, example)
        except BudgetSpent:
            return ""
        if fault is not None:
            return "" if fault.cause == "no_stub" else fault.message
    return ""
