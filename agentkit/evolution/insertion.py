"""InsertTool: whether a composite enters the library, and how (CoCoDA, Algorithm 3).

A candidate is read, tried on its worked calls with every contract checked, compared with the tools
that are there, and added, merged into one that does the same, or rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from agentkit.composites.codec import program_from_json
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, DefinitionError, LibraryError, SourceProblem
from agentkit.evolution.dry_run import (
    BudgetSpent,
    DryRun,
    Failed,
    FailureCause,
    InsertPolicy,
    call_text,
    cut,
    probes,
    with_examples,
)
from agentkit.evolution.duplicates import Duplicate, find_duplicate, renamed
from agentkit.evolution.validation.report import FailedCheck
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
class InsertOutcome:
    """What InsertTool makes of a composite.

    It is added; merged into a tool that does the same, which gets its worked calls; or rejected.

    Attributes:
        outcome: Which of these.
        name: Name of the candidate; empty when its text has none.
        definition: The composite as the library has it, or the tool that it was merged into; None
            when it is rejected.
        version: The library version that holds it.
        upserts: What was written: that definition, and the composites above that were pinned to
            it anew. Empty where the library is as it was.
        depth: Levels of composites under one that was added; 1 for one made of primitives.
        flat_size: Primitive calls that its text spells out, all levels deep.
        is_revision: Whether it replaced an earlier revision.
        duplicate: Why it was merged, and for each of its parameters the one of the other tool.
        examples_moved: How many worked calls were new to the other tool.
        failed: Why it is rejected.
        problems: Places in its text, when the text is what is wrong.
    """

    outcome: Literal["added", "merged", "rejected"]
    name: str
    definition: ToolDefinition | None = None
    version: int = 0
    upserts: tuple[ToolDefinition, ...] = ()
    depth: int = 0
    flat_size: int = 0
    is_revision: bool = False
    duplicate: Duplicate | None = None
    examples_moved: int = 0
    failed: FailedCheck | None = None
    problems: tuple[SourceProblem, ...] = ()

    @property
    def saved_calls(self) -> int:
        """Tool calls that one call of it saves."""
        return max(0, self.flat_size - 1)

    @property
    def repinned(self) -> tuple[str, ...]:
        """Composites above that were pinned anew."""
        return tuple(one.name for one in self.upserts[1:])

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object, with the parts that this outcome has."""
        record: dict[str, Any] = {"outcome": self.outcome, "name": self.name}
        if self.definition is not None:
            record |= {"digest": self.definition.digest, "version": self.version}
            record["repinned"] = list(self.repinned)
        if self.duplicate is not None:
            record |= {"into": self.duplicate.name, "reason": self.duplicate.reason}
            record["parameters"] = dict(self.duplicate.parameters)
            record["examples_moved"] = self.examples_moved
        elif self.definition is not None:
            record |= {name: getattr(self, name) for name in ("depth", "flat_size", "saved_calls")}
            record["children"] = [one.name for one in self.definition.signature.children]
            record["revised"] = self.is_revision
        if self.failed is not None:
            record |= self.failed.to_json()
            record["problems"] = [asdict(problem) for problem in self.problems]
        return record

    def __str__(self) -> str:
        version = f"library version {self.version}"
        if self.failed is not None:
            places = "".join(f"\n  {problem}" for problem in self.problems)
            why = f"[{self.failed.code}]: {self.failed.message}"
            return f"{self.name or 'candidate'} rejected {why}{places}"
        if (found := self.duplicate) is not None:
            renamed = ", ".join(f"{a} is {b}" for a, b in found.parameters.items() if a != b)
            moved = f"{self.examples_moved} worked call{'' if self.examples_moved == 1 else 's'}"
            told = f"merged into {found.name}, {found.reason}: {moved} moved there; {version}"
            return f"{told} ({renamed})" if renamed else told
        definition = cast("ToolDefinition", self.definition)
        children = ", ".join(child.name for child in definition.signature.children)
        saved = f"saves {self.saved_calls} call{'' if self.saved_calls == 1 else 's'}"
        again = f"; also pinned to it: {', '.join(self.repinned)}" if self.repinned else ""
        return (
            f"{self.name} {'revised' if self.is_revision else 'added'}: {version}, depth "
            f"{self.depth}, {saved}, calls {children}{again}"
        )


_LONGEST = 2_000


class Refused(Exception):  # noqa: N818 - not an error of the caller; it carries a reason
    """Inside InsertTool: stops a candidate.

    Args:
        code: What is wrong, see ``docs/insert-tool.md``; of a text that of its first problem.
        message: What is wrong, with values.
        advice: What to do.
        problems: Places in its text.
    """

    def __init__(
        self,
        code: str,
        message: str,
        advice: str,
        *,
        problems: Iterable[SourceProblem] = (),
    ) -> None:
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]}…"
        self.failed = FailedCheck(code=code, layer="structural", message=message, advice=advice)
        self.problems = tuple(problems)
        super().__init__(str(self.failed))

    @classmethod
    def text(cls, problems: Iterable[SourceProblem]) -> Refused:
        """For a text that is no program: its first problem, with all others."""
        first, *others = found = tuple(problems)
        more = f" (and {len(others)} more)" if others else ""
        return cls(first.code, f"{first.message}{more}", first.advice, problems=found)


# --- Add, merge or reject -------------------------------------------------------------------------

_LONGEST_NAME = 256
MAX_BYTES = 262_144
"""Largest definition that is taken, in bytes of its canonical JSON."""

_REPAIR = "repair the library first; agentkit check lists what is wrong"


async def plan_insert(
    candidate: Candidate, library: Library, policy: InsertPolicy
) -> InsertOutcome:
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
        advice = "make it do less on its examples, or raise the policy's bound"
        refused = Refused("budget", f"trying {name!r} out took {spent}", advice)
    return InsertOutcome(
        outcome="rejected",
        name=name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…",
        failed=refused.failed,
        problems=refused.problems,
    )


async def _decide(
    definition: ToolDefinition, library: Library, policy: InsertPolicy
) -> InsertOutcome:
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
        raise Refused(
            "name_taken",
            f"{known.name!r} stands for another tool ({known.definition.digest[:12]})",
            "give the function another name, or allow revisions "
            "(InsertPolicy(allow_revisions=True)) when it is to take the place of that one",
        )
    upserts = (definition, *await pinned_above(definition, library, policy))
    after = library.with_tools([Tool(definition=one) for one in upserts])
    return InsertOutcome(
        outcome="added",
        name=definition.name,
        definition=definition,
        version=library.version + 1,
        upserts=upserts,
        depth=depth(after, definition.name),
        flat_size=flat_size(after, definition.name),
        is_revision=revises,
    )


async def _merged(
    candidate: ToolDefinition, found: Duplicate, library: Library, policy: InsertPolicy
) -> InsertOutcome:
    known = library[found.name].definition
    moved = (
        replace(example, arguments=renamed(example.arguments, found.parameters))
        for example in candidate.examples
    )
    into = with_examples(known, moved)
    is_changed = into is not known
    above = await pinned_above(into, library, policy) if is_changed else ()
    return InsertOutcome(
        outcome="merged",
        name=candidate.name,
        definition=into,
        version=library.version + is_changed,
        upserts=(into, *above) if is_changed else (),
        duplicate=found,
        examples_moved=len(into.examples) - len(known.examples),
    )


# --- Read a candidate: is it data, is it a program, and does it fit the library -------------------


def _check_place(definition: ToolDefinition, library: Library, *, is_composed: bool) -> None:
    """Stop what is no composite of tools that can be called; what was composed from text fits."""
    if not is_composed:
        check_data(definition)
    if not definition.is_composite or not definition.signature.children:
        raise _childless(definition.name)
    if not is_composed:
        held = library.get(definition.name)
        is_new = held is None or held.definition.body != definition.body
        check_composite(definition, library, is_new=is_new)
    for child in definition.signature.children:
        if child.name not in library.dag.depths:
            raise Refused("broken_child", library.dag.why_unknown(child.name), _REPAIR)


def check_data(definition: ToolDefinition) -> None:
    """Stop a definition that is no JSON data, too large, or has no usable name or schema.

    Raises:
        Refused: With the code ``malformed``.
    """
    name = definition.name
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise Refused(
            "malformed",
            f"the name has {len(name):,} characters, or one that cannot be printed",
            f"give it a name of at most {_LONGEST_NAME} printable characters",
        )
    try:
        size = len(canonical_json(definition.to_json()))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        explanation = f"the definition cannot be stored: {type(error).__name__}: {error}"
        advice = "definitions hold JSON data only"
        raise Refused("malformed", explanation, advice) from error
    if size > MAX_BYTES:
        explanation = f"the definition has {size:,} bytes, more than {MAX_BYTES:,}"
        raise Refused("malformed", explanation, "shorten its words and its examples")
    try:
        validate_arguments(definition, {})
    except DefinitionError as error:
        advice = "correct the schema of the parameters"
        raise Refused("malformed", str(error), advice) from error


def _childless(name: str) -> Refused:
    return Refused(
        "childless",
        f"{name!r} calls no tool, so it is no composite",
        "call at least one tool of the library; a primitive is code, which a person adds: "
        "agentkit tools add, or ToolManager.register",
    )


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
        raise _childless(name)
    for fault in library_faults(with_candidate, [name]):
        raise Refused(fault.code, fault.message, f"{fault.advice}; or hand in its text")
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
    raise Refused(
        "cycle",
        f"with this revision the calls would run in a circle: {' -> '.join(map(repr, circle))}",
        "write it without calling a tool that is made of it",
    )


# --- Try it out: its children's worked calls, its own, and generated ones -------------------------


async def _check_children(candidate: ToolDefinition, trial: DryRun) -> None:
    """Every child still does what its own worked calls say (L3 and L4 of each child)."""
    for child in candidate.signature.children:
        tool = trial.safe(child.name)
        for example in tool.definition.worked_calls:
            fault = await trial.fault_of(tool, example)
            if fault is not None:
                raise Refused(
                    "child_examples_failed",
                    f"the child {child.name!r} does not do what its own worked call says: "
                    f"{fault.message}",
                    f"repair {child.name!r}, or correct its examples, before building on it",
                )


async def _check_examples(candidate: Tool, trial: DryRun) -> None:
    """The candidate's own worked calls fit its parameters, run, and give what they say."""
    definition = candidate.definition
    if not definition.worked_calls:
        raise Refused(
            "no_examples",
            f"{definition.name!r} has no worked call, so nothing shows that it works",
            "give one to three examples with arguments and result",
        )
    for example in definition.examples:
        found = validate_arguments(definition, example.arguments)
        if found:
            raise Refused(
                "example",
                f"the worked call {call_text(definition.name, example.arguments)} does not fit "
                f"the parameters: {found[0].rule}",
                "correct the example, or the parameter's type",
            )
        fault = await trial.fault_of(candidate, example) if example.is_whole else None
        if fault is not None:
            raise _explained(definition, example.arguments, fault, trial)


async def _check_probes(candidate: Tool, trial: DryRun) -> None:
    """No generated call that the candidate allows breaks a child's contract, or its own promise.

    Errors without a contract say nothing here: nobody promised that there are none.
    """
    definition = candidate.definition
    if not trial.is_pure(definition):
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
    definition: ToolDefinition, arguments: JsonObject, failed: Failed, trial: DryRun
) -> Refused:
    """The reason to reject a candidate one of whose calls failed."""
    if failed.cause == "no_stub":
        code, advice = trial.lacking(failed.tool)
    else:
        is_own = failed.tool == definition.name or failed.cause in {"other_result", "error"}
        code, advice = (_OWN if is_own else _OF_CHILD)[failed.cause]
        advice = advice.format(condition=repr(failed.condition), tool=repr(failed.tool))
    message = f"{call_text(definition.name, arguments)}: {cut(failed.message)}"
    if failed.cause == "other_result":
        message = f"the worked call {failed.message}"
    return Refused(code, message, advice)


_OWN: Mapping[FailureCause, tuple[str, str]] = {
    "precondition": ("precondition", "correct the example, or relax the precondition"),
    "postcondition": ("postcondition", "correct the program, or promise less"),
    "other_result": ("example_failed", "correct the program, or the result in the example"),
    "error": (
        "run_failed",
        "correct the program, or say in a precondition that these arguments are not allowed",
    ),
}
_OF_CHILD: Mapping[FailureCause, tuple[str, str]] = {
    "precondition": (
        "child_precondition",
        "test that {condition} holds before {tool} is called, or make it a precondition",
    ),
    "postcondition": (
        "child_postcondition",
        "{tool} itself is at fault; repair it before building on it",
    ),
}


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
        raise Refused("breaks_parent", str(error), _REPAIR) from error
    if not above or _is_wording(library[changed.name].definition, changed):
        return above
    after = library.with_tools(library[one.name].with_definition(one) for one in (changed, *above))
    for parent in above:
        how = await broken_by(parent, after, policy)
        before = library[parent.name].definition
        if how and not await broken_by(before, library, policy):
            raise Refused(
                "breaks_parent",
                f"{parent.name!r} is made of {changed.name!r}, and would break: {how}",
                f"keep what {parent.name!r} relies on, or revise it first",
            )
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
