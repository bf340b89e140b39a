"""What InsertTool asks of a candidate, and what came of it: added, merged or rejected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentkit.errors import SourceProblem, UsageError
from agentkit.library.dag import depth, flat_size
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

# --- What the Tool Manager asks of a candidate ---------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertPolicy:
    """The knobs of InsertTool (CoCoDA, Algorithm 3). The defaults are the strict ones.

    Attributes:
        allow_primitives: Take a bound ``Tool`` that calls no other tool, as code given by a
            person. Text and definitions without a program are refused whatever this says.
        allow_revisions: Take a candidate whose name stands for another tool as its next revision.
        allow_without_examples: Take a candidate that has no worked call.
        run_undeclared: Run tools live that declare no effects, on the caller's word that they are
            pure. By default they are answered from their worked calls, as effectful ones are.
        probe_contracts: Try a pure candidate on generated arguments too, and reject it when one
            that its own preconditions allow breaks a child's precondition or its own promise.
        probes: Generated arguments to try, in the check of contracts and for each possible
            duplicate.
        min_agreements: Calls with equal results that make two tools duplicates.
        description_similarity: How alike the words of two tools that behave alike must be to make
            them duplicates, from 0 to 1; see ``similarity``. A judge is asked below it.
        compared: Tools of the same signature that a candidate is compared with, the most alike
            in words first.
        mappings: Ways to map parameters of one tool to those of another that are tried.
        max_examples: Worked calls that one tool keeps; further ones are not moved in a merge.
        max_bytes: Largest definition that is taken as data, in bytes of its canonical JSON; a text
            is bounded by ``CompositeLimits.source_bytes``.
        tolerance: How far numbers in results may differ, as in ``is_close`` of the language.
        seconds: Longest time that trying one candidate may take.
        runs: Most runs of the candidate, its children and possible duplicates, all together.
        child_calls: Most calls of tools in all these runs.
        attempts: How often the candidate is checked again when another writer was faster.
    """

    allow_primitives: bool = False
    allow_revisions: bool = False
    allow_without_examples: bool = False
    run_undeclared: bool = False
    probe_contracts: bool = True
    probes: int = 12
    min_agreements: int = 3
    description_similarity: float = 0.25
    compared: int = 8
    mappings: int = 24
    max_examples: int = 64
    max_bytes: int = 262_144
    tolerance: float = 1e-9
    seconds: float = 10.0
    runs: int = 1_000
    child_calls: int = 20_000
    attempts: int = 10

    def __post_init__(self) -> None:
        counts = ("min_agreements", "compared", "mappings", "max_examples", "max_bytes", "runs")
        for name in (*counts, "seconds", "child_calls", "attempts"):
            if not getattr(self, name) > 0:
                raise UsageError(f"InsertPolicy.{name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.description_similarity <= 1:
            raise UsageError(
                "InsertPolicy.description_similarity is between 0 and 1, got "
                f"{self.description_similarity}"
            )
        if self.probes < 0 or self.tolerance < 0:
            raise UsageError("InsertPolicy.probes and .tolerance are 0 or more")


# --- What came of a candidate: added, merged or rejected. Always a value, never an exception -----


RejectionCode = Literal[
    # the text or the data
    "outside_language",  # not one function of the composite language
    "type_mismatch",  # an argument, a result or an annotation has the wrong type
    "bad_example",  # a worked call that can not be read, or does not fit the parameters
    "bad_contract",  # a condition that is no expression over parameters and result
    "malformed",  # no JSON data, too large, or with a name or a schema that nobody can use
    # its place in the DAG
    "unknown_child",  # calls a tool that the library does not hold
    "changed_child",  # pinned to a revision that the library no longer holds
    "unbound_child",  # a child has no code in this process, nor a recorded answer
    "broken_child",  # a child is part of a cycle, or is made of a tool that is missing
    "children_mismatch",  # the declared children are not those that the program calls
    "effects_mismatch",  # declares other effects than its children have together
    "childless",  # calls no tool
    "cycle",  # calls itself, directly or through its children
    "name_taken",  # the name stands for another tool
    # what its children promise, and what it promises
    "no_examples",  # has no worked call to try
    "child_examples_failed",  # a child does not do what its own worked calls say
    "no_stub",  # a child that touches the world has no recorded answer for a call
    "child_precondition",  # calls a child outside of the child's contract
    "child_postcondition",  # a child broke its own contract
    "precondition",  # a worked call breaks the candidate's own precondition
    "postcondition",  # the candidate does not keep its own promise
    "example_failed",  # a worked call gave another result than it says
    "run_failed",  # a worked call ended in an error
    "breaks_parent",  # a tool that calls this one would stop doing what its worked calls say
    # the procedure
    "budget",  # trying it out took more time or calls than the policy allows
    "contention",  # other writers were faster every time
    "proposal_reused",  # the proposal id stands for another change
]
"""Why a candidate was not taken. ``docs/insert-tool.md`` explains each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """The call that shows why a candidate was rejected.

    Attributes:
        tool: The tool that was called.
        arguments: What it was called with.
        expected: The result that was promised, where one was.
        got: The result that came, where one did.
        condition: The condition that did not hold, where it was one.
        path: Names of the tools from the outermost composite down to where it happened.
    """

    tool: str
    arguments: JsonObject
    expected: Any = None
    got: Any = None
    condition: str = ""
    path: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The witness as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {"tool": self.tool, "arguments": dict(self.arguments)}
        optional = {
            "expected": self.expected,
            "got": self.got,
            "condition": self.condition or None,
            "path": list(self.path) or None,
        }
        return record | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """The candidate is in the library.

    Attributes:
        definition: What the library holds.
        version: The library version that the candidate is in.
        depth: 0 for a primitive, else one more than its deepest child (CoCoDA section 3.1).
        flat_size: Primitive calls that one call of it stands for.
        revised: Whether it took the place of an earlier revision of the same name.
        repinned: Composites that call it, and now pin the new revision.
    """

    definition: ToolDefinition
    version: int
    depth: int
    flat_size: int
    revised: bool = False
    repinned: tuple[str, ...] = ()

    @property
    def saved_calls(self) -> int:
        """Calls that a model saves with one call of it."""
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
"""The reason of a merge that has nothing to move and nothing to revise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """The candidate does what a tool in the library does; that tool took over its examples.

    Attributes:
        into: The tool that stays.
        definition: That tool as the library now holds it.
        version: The library version that holds it.
        examples_moved: Worked calls that the tool did not have before; with 0 the library is
            unchanged.
        parameters: For each parameter of the candidate, the one of the tool that it means.
        reason: What showed that they are the same.
        repinned: Composites that call the tool, and now pin the new revision.
    """

    into: str
    definition: ToolDefinition
    version: int
    examples_moved: int
    parameters: JsonObject = field(default_factory=dict)
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
    """The candidate was not taken, and the library is as it was.

    Attributes:
        code: Why.
        name: The candidate's name, as far as it is known.
        explanation: What happened, with names and values.
        advice: What to change.
        problems: Places in the text, for a candidate that came as text.
        witness: The call that shows it, for a candidate that was tried.
    """

    code: RejectionCode
    name: str
    explanation: str
    advice: str
    problems: tuple[SourceProblem, ...] = ()
    witness: Witness | None = None

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "outcome": "rejected",
            "code": self.code,
            "name": self.name,
            "explanation": self.explanation,
            "advice": self.advice,
        }
        if self.problems:
            record["problems"] = [_problem_to_json(problem) for problem in self.problems]
        if self.witness is not None:
            record["witness"] = self.witness.to_json()
        return record

    def __str__(self) -> str:
        places = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.name or 'candidate'} rejected [{self.code}]: {self.explanation}{places}"


InsertOutcome: TypeAlias = Added | Merged | Rejected
"""What ``ToolManager.insert`` returns."""


def _problem_to_json(problem: SourceProblem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "message": problem.message,
        "advice": problem.advice,
        "line": problem.line,
        "column": problem.column,
    }


# --- How a step of InsertTool ends the procedure: caught in one place and returned as a value ----


_LONGEST = 2_000  # characters of an explanation, which may quote the candidate


class Refused(Exception):  # noqa: N818 - a signal inside this package, returned as a value
    """A step found a reason to reject the candidate.

    Attributes:
        rejected: The reason.
    """

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        super().__init__(str(rejected))


def refuse(
    code: RejectionCode,
    name: str,
    explanation: str,
    advice: str,
    *,
    problems: Iterable[SourceProblem] = (),
    witness: Witness | None = None,
) -> Refused:
    """The signal to raise; see ``Rejected`` for the parts."""
    return Refused(
        Rejected(
            code=code,
            name=name,
            explanation=_cut(explanation),
            advice=advice,
            problems=tuple(problems),
            witness=witness,
        )
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"


def refuse_source(name: str, problems: Iterable[SourceProblem]) -> Refused:
    """The signal for a text or a program that the language or the children do not allow."""
    found = tuple(problems)
    codes = {REJECTION_OF_FAULT.get(problem.code, "outside_language") for problem in found}
    code = codes.pop() if len(codes) == 1 else "outside_language"
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return refuse(code, name, f"{first.message}{more}", first.advice, problems=found)


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
"""By code of ``SourceProblem`` or ``LibraryFault``; any other is ``outside_language``."""


# --- What is to be written, before anybody writes it ---------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class AddPlan:
    """The candidate is to be added.

    Attributes:
        tool: The candidate; a primitive with its code.
        revised: Whether it takes the place of another revision.
        repinned: Composites above it, pinned to the new revision.
    """

    tool: Tool
    revised: bool = False
    repinned: tuple[ToolDefinition, ...] = ()

    @property
    def upserts(self) -> tuple[ToolDefinition, ...]:
        """The definitions that change, children before parents."""
        return (self.tool.definition, *self.repinned)


@dataclass(frozen=True, kw_only=True, slots=True)
class MergePlan:
    """The candidate's examples are to move to a tool that does the same.

    Attributes:
        into: That tool, with the examples.
        moved: How many are new to it.
        parameters: For each parameter of the candidate, the one of the tool that it means.
        reason: What showed that they are the same.
        repinned: Composites above it, pinned to the new revision.
        is_itself: Whether the tool is the candidate, to the last example.
    """

    into: ToolDefinition
    moved: int
    parameters: Mapping[str, str]
    reason: str
    repinned: tuple[ToolDefinition, ...] = ()
    is_itself: bool = False

    @property
    def upserts(self) -> tuple[ToolDefinition, ...]:
        """The definitions that change, children before parents."""
        return (self.into, *self.repinned) if self.moved else ()


InsertPlan: TypeAlias = AddPlan | MergePlan | Rejected


def outcome_of(plan: AddPlan | MergePlan, library: Library) -> InsertOutcome:
    """What a plan came to, for the library that holds it."""
    above = tuple(definition.name for definition in plan.repinned)
    if isinstance(plan, MergePlan):
        return Merged(
            into=plan.into.name,
            definition=plan.into,
            version=library.version,
            examples_moved=plan.moved,
            parameters=dict(plan.parameters),
            reason=plan.reason,
            repinned=above,
        )
    name = plan.tool.name
    return Added(
        definition=plan.tool.definition,
        version=library.version,
        depth=depth(library, name),
        flat_size=flat_size(library, name),
        revised=plan.revised,
        repinned=above,
    )
