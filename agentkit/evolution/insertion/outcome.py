"""What came of a candidate: added, merged or rejected. Always a value, never an exception."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentkit.errors import SourceProblem
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

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
