"""InsertTool: whether a composite enters the library, and how (CoCoDA, Algorithm 3).

A candidate is read, tried on its worked calls with every contract checked, compared with the tools
that are there, and added, merged into one that does the same, or rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from agentkit.composites.codec import program_from_json
from agentkit.composites.problems import CompositeLimits
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, DefinitionError, LibraryError, SourceProblem
from agentkit.evolution.dry_run import (
    BudgetSpent,
    DryRun,
    Failed,
    FailureCause,
    Procedure,
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

RejectionCode = Literal[
    "outside_language",
    "type_mismatch",
    "bad_example",
    "bad_contract",
    "malformed",
    "unknown_child",
    "changed_child",
    "unbound_child",
    "broken_child",
    "children_mismatch",
    "effects_mismatch",
    "childless",
    "cycle",
    "name_taken",
    "no_examples",
    "child_examples_failed",
    "no_stub",
    "child_precondition",
    "child_postcondition",
    "precondition",
    "postcondition",
    "example_failed",
    "run_failed",
    "breaks_parent",
    "budget",
]
"""Why a candidate was rejected; ``docs/insert-tool.md`` says of each what to do."""

REJECTION_OF_FAULT: Mapping[str, RejectionCode] = {
    "unknown_tool": "unknown_child",
    "missing_child": "unknown_child",
    "changed_child": "changed_child",
    "unbound_child": "unbound_child",
    "recursive_call": "cycle",
    "argument_type": "type_mismatch",
    "result_type": "type_mismatch",
    "annotation": "type_mismatch",
    "example": "bad_example",
    "unpinned_call": "children_mismatch",
    "uncalled_pin": "children_mismatch",
    "effects": "effects_mismatch",
    "parameters": "type_mismatch",
    "condition": "bad_contract",
    "cycle": "cycle",
}
"""The code that stands for a problem of a program's text or for a fault of a library."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """The candidate is in the library.

    Attributes:
        definition: As it was stored.
        version: The library version that holds it.
        depth: Levels of composites under it; 1 for one made of primitives.
        flat_size: Primitive calls that its text spells out, all levels deep.
        revised: Whether it replaced an earlier revision.
        repinned: Composites above it that were pinned to it anew.
    """

    definition: ToolDefinition
    version: int
    depth: int
    flat_size: int
    revised: bool = False
    repinned: tuple[str, ...] = ()

    @property
    def saved_calls(self) -> int:
        """Tool calls that one call of it saves."""
        return self.flat_size - 1

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        return {
            "outcome": "added",
            "name": self.definition.name,
            "digest": self.definition.digest,
            "version": self.version,
            "depth": self.depth,
            "flat_size": self.flat_size,
            "saved_calls": self.saved_calls,
            "children": [child.name for child in self.definition.signature.children],
            "revised": self.revised,
            "repinned": list(self.repinned),
        }

    def __str__(self) -> str:
        return (
            f"{self.definition.name} {'revised' if self.revised else 'added'}: library version "
            f"{self.version}, depth {self.depth}, flat size {self.flat_size}"
        )


SAME_TOOL = "it is the same tool, to the last example"
"""``Merged.reason`` of a candidate that the library holds just like that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """The library has a tool that does the same; the candidate's worked calls went there.

    Attributes:
        into: Name of that tool.
        definition: That tool, with the worked calls that were new.
        version: The library version that holds it.
        examples_moved: How many worked calls were new to it.
        parameters: For each parameter of the candidate the parameter of the tool.
        reason: Why the two are one.
        repinned: Composites above it that were pinned to it anew.
    """

    into: str
    definition: ToolDefinition
    version: int
    examples_moved: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    repinned: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        return {
            "outcome": "merged",
            "into": self.into,
            "digest": self.definition.digest,
            "version": self.version,
            "examples_moved": self.examples_moved,
            "parameters": dict(self.parameters),
            "reason": self.reason,
            "repinned": list(self.repinned),
        }

    def __str__(self) -> str:
        return (
            f"merged into {self.into}, {self.reason}: {self.examples_moved} worked calls moved, "
            f"library version {self.version}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """The candidate is not taken, and why.

    Attributes:
        code: What is wrong.
        name: Name of the candidate; empty when its text has none.
        explanation: What is wrong, with values.
        advice: What to do.
        problems: Places in its text, when the text is what is wrong.
        witness: The call that failed, where one did.
    """

    code: RejectionCode
    name: str
    explanation: str
    advice: str
    problems: tuple[SourceProblem, ...] = ()
    witness: Failed | None = None

    @property
    def failed(self) -> FailedCheck:
        """The same as a check that a proposal did not pass."""
        return FailedCheck(
            code=self.code, layer="structural", message=self.explanation, advice=self.advice
        )

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        record = {"outcome": "rejected"} | asdict(self)
        return {name: value for name, value in record.items() if value not in (None, ())}

    def __str__(self) -> str:
        places = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.name or 'candidate'} rejected [{self.code}]: {self.explanation}{places}"


InsertOutcome: TypeAlias = Added | Merged | Rejected
"""What came of a candidate."""

_LONGEST = 2_000


class Refused(Exception):  # noqa: N818 - not an error of the caller; it carries an outcome
    """Inside InsertTool: stops a candidate, with the outcome.

    Args:
        code: What is wrong.
        name: The candidate.
        explanation: What is wrong, with values.
        advice: What to do.
        problems: Places in its text.
        witness: The call that failed.
    """

    def __init__(
        self,
        code: RejectionCode,
        name: str,
        explanation: str,
        advice: str,
        *,
        problems: Iterable[SourceProblem] = (),
        witness: Failed | None = None,
    ) -> None:
        if len(explanation) > _LONGEST:
            explanation = f"{explanation[:_LONGEST]}…"
        self.rejected = Rejected(
            code=code,
            name=name,
            explanation=explanation,
            advice=advice,
            problems=tuple(problems),
            witness=witness,
        )
        super().__init__(str(self.rejected))

    @classmethod
    def text(cls, name: str, problems: Iterable[SourceProblem]) -> Refused:
        """For a text that is no program: the code that its problems share."""
        found = tuple(problems)
        codes = {REJECTION_OF_FAULT.get(problem.code, "outside_language") for problem in found}
        code = codes.pop() if len(codes) == 1 else "outside_language"
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return cls(code, name, f"{found[0].message}{more}", found[0].advice, problems=found)


# --- Add, merge or reject -------------------------------------------------------------------------

_LONGEST_NAME = 256
MAX_BYTES = 262_144
"""Largest definition that is taken, in bytes of its canonical JSON."""

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
        explanation = f"trying {name!r} out took {spent}"
        advice = "make it do less on its examples, or raise the policy's bound"
        return InsertPlan(outcome=Refused("budget", name, explanation, advice).rejected)


async def _plan(definition: ToolDefinition, library: Library, procedure: Procedure) -> InsertPlan:
    known = library.get(definition.name)
    if known is not None and known.definition == definition:
        own = {name: name for name in definition.signature.properties}
        return _merge(Duplicate(name=known.name, parameters=own, reason=SAME_TOOL), (), library)
    revises = known is not None and procedure.policy.allow_revisions
    if revises:
        _check_acyclic(definition, library)
    trial = DryRun(library.tools, procedure)
    try:
        tool = trial.prepared(Tool(definition=definition))
    except CompositeError as error:
        raise Refused.text(definition.name, error.problems) from error
    await _check_children(definition, trial)
    await _check_examples(tool, trial)
    await _check_probes(tool, trial)
    if revises:
        return _add(definition, await _above(definition, library, procedure), library)
    found = await find_duplicate(tool, library, trial)
    if found is not None:
        return _merger(definition, found, library)
    if known is not None:
        raise Refused(
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


def _merger(candidate: ToolDefinition, found: Duplicate, library: Library) -> InsertPlan:
    examples = [
        replace(example, arguments=renamed(example.arguments, found.parameters))
        for example in candidate.examples
    ]
    known = library[found.name].definition
    into = with_examples(known, examples)
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
        parameters=found.parameters,
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
            raise Refused.text(error.tool_name or "", error.problems) from error
    else:
        definition = candidate
        check_data(definition)
    if not definition.is_composite or not definition.signature.children:
        raise _childless(definition.name)
    if not isinstance(candidate, str):
        check_composite(definition, library, procedure.limits)
    for child in definition.signature.children:
        if child.name not in library.dag.depths:
            explanation = library.dag.why_unknown(child.name)
            raise Refused("broken_child", definition.name, explanation, _REPAIR)
    return definition


def check_data(definition: ToolDefinition) -> None:
    """Stop a definition that is no JSON data, too large, or has no usable name or schema.

    Raises:
        Refused: With the code ``malformed``.
    """
    name = definition.name
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise Refused(
            "malformed",
            name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…",
            f"the name has {len(name):,} characters, or one that can not be printed",
            f"give it a name of at most {_LONGEST_NAME} printable characters",
        )
    try:
        size = len(canonical_json(definition.to_json()))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        explanation = f"the definition can not be stored: {type(error).__name__}: {error}"
        advice = "definitions hold JSON data only"
        raise Refused("malformed", name, explanation, advice) from error
    if size > MAX_BYTES:
        explanation = f"the definition has {size:,} bytes, more than {MAX_BYTES:,}"
        raise Refused("malformed", name, explanation, "shorten its words and its examples")
    try:
        validate_arguments(definition, {})
    except DefinitionError as error:
        advice = "correct the schema of the parameters"
        raise Refused("malformed", name, str(error), advice) from error


def _childless(name: str) -> Refused:
    return Refused(
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
        raise Refused.text(name, error.problems) from error
    with_candidate = library.with_tools([definition])
    if not with_candidate.dag.children[name]:
        raise _childless(name)
    for fault in library_faults(with_candidate, [name]):
        code = REJECTION_OF_FAULT.get(fault.code, "outside_language")
        raise Refused(code, name, fault.message, f"{fault.advice}; or hand in its text")


def _check_acyclic(candidate: ToolDefinition, library: Library) -> None:
    """Stop a revision that would call, somewhere below, a tool that is made of it."""
    above = {candidate.name, *ancestors(library, candidate.name)}
    if not above.intersection(child.name for child in candidate.signature.children):
        return
    circle = find_cycle(library.with_tools([candidate])) or (candidate.name,)
    raise Refused(
        "cycle",
        candidate.name,
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
                    candidate.name,
                    f"the child {child.name!r} does not do what its own worked call says: "
                    f"{fault.message}",
                    f"repair {child.name!r}, or correct its examples, before building on it",
                    witness=fault,
                )


async def _check_examples(candidate: Tool, trial: DryRun) -> None:
    """The candidate's own worked calls fit its parameters, run, and give what they say."""
    definition = candidate.definition
    if not definition.worked_calls:
        raise Refused(
            "no_examples",
            definition.name,
            f"{definition.name!r} has no worked call, so nothing shows that it works",
            "give one to three examples with arguments and result",
        )
    for example in definition.examples:
        found = validate_arguments(definition, example.arguments)
        if found:
            raise Refused(
                "bad_example",
                definition.name,
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
    code, advice = _meaning(definition, failed, trial)
    explanation = f"{call_text(definition.name, arguments)}: {cut(failed.message)}"
    if failed.cause == "other_result":
        explanation = f"the worked call {failed.message}"
    return Refused(
        cast("RejectionCode", code), definition.name, explanation, advice, witness=failed
    )


def _meaning(definition: ToolDefinition, failed: Failed, trial: DryRun) -> tuple[str, str]:
    if failed.cause == "no_stub":
        return trial.lacking(failed.tool)
    is_own = failed.tool == definition.name or failed.cause in {"other_result", "error"}
    code, advice = (_OWN if is_own else _OF_CHILD)[failed.cause]
    return code, advice.format(condition=repr(failed.condition), tool=repr(failed.tool))


_OWN: Mapping[FailureCause, tuple[RejectionCode, str]] = {
    "precondition": ("precondition", "correct the example, or relax the precondition"),
    "postcondition": ("postcondition", "correct the program, or promise less"),
    "other_result": ("example_failed", "correct the program, or the result in the example"),
    "error": (
        "run_failed",
        "correct the program, or say in a precondition that these arguments are not allowed",
    ),
}
_OF_CHILD: Mapping[FailureCause, tuple[RejectionCode, str]] = {
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


def _pinned_above(library: Library, changed: ToolDefinition) -> tuple[ToolDefinition, ...]:
    try:
        return tuple(one for one in repinned(library, [changed]) if one.name != changed.name)
    except LibraryError as error:
        raise Refused("breaks_parent", changed.name, str(error), _REPAIR) from error


async def _above(
    candidate: ToolDefinition, library: Library, procedure: Procedure
) -> tuple[ToolDefinition, ...]:
    """The composites above a revision, pinned to it; refused when one of them would break."""
    _pinned_above(library, candidate)
    above = await look_above(candidate, library, procedure)
    for failed in above.broken:
        raise Refused("breaks_parent", candidate.name, failed.message, failed.advice)
    return above.repinned


@dataclass(frozen=True, kw_only=True, slots=True)
class Above:
    """The composites above a changed tool.

    Attributes:
        repinned: As they are with the change, children before parents.
        broken: A reason for each that the change breaks.
    """

    repinned: tuple[ToolDefinition, ...] = ()
    broken: tuple[FailedCheck, ...] = ()


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
    broken = []
    for parent in above:
        how = await broken_by(parent, after, procedure)
        before = library[parent.name].definition
        if how and not await broken_by(before, library, procedure):
            broken.append(breaks(changed, parent.name, how))
    return Above(repinned=above, broken=tuple(broken))


def breaks(changed: ToolDefinition, parent: str, how: str) -> FailedCheck:
    """That a change breaks a composite above it."""
    return FailedCheck(
        code="breaks_parent",
        layer="semantic",
        message=f"{parent!r} is made of {changed.name!r}, and would break: {how}",
        advice=f"keep what {parent!r} relies on, or revise it first",
    )


def _is_wording(before: ToolDefinition, after: ToolDefinition) -> bool:
    """Whether only words differ, which no program can notice."""
    told = before.specification
    return before == replace(
        after,
        description=before.description,
        specification=replace(after.specification, text=told.text, complexity=told.complexity),
        examples=before.examples,
    )


async def broken_by(composite: ToolDefinition, library: Library, procedure: Procedure) -> str:
    """How a composite fails in a library, by its program or by a worked call.

    Empty where its worked calls hold, and where they can not be tried here.
    """
    try:
        check_composite(composite, library, procedure.limits)
    except Refused as refused:
        return refused.rejected.explanation
    trial = DryRun(library.tools, procedure)
    tool = trial.safe(composite.name)
    for example in composite.worked_calls:
        try:
            fault = await trial.fault_of(tool, example)
        except BudgetSpent:
            return ""
        if fault is not None:
            return "" if fault.cause == "no_stub" else fault.message
    return ""
