"""What InsertTool asks of a candidate, and what came of it: added, merged or rejected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from agentkit.composites.problems import CompositeLimits
from agentkit.errors import SourceProblem, UsageError
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertPolicy:
    """What a candidate has to show, and what it may cost to try it.

    Attributes:
        allow_revisions: Take a composite whose name the library knows as a new revision of that
            tool. Composites made of it are tried on it first.
        run_undeclared: Run tools that do not declare their effects when trying a candidate.
            Without it they are answered from their worked calls.
        probes: Calls made up to check contracts with, and to compare behaviour with beside worked
            calls.
        min_agreements: Calls with results on which two tools must agree to be one.
        description_similarity: Share of words that names and descriptions of two tools must have
            in common; from 0 to 1.
        max_examples: Worked calls that a tool keeps when others are merged into it, and lessons,
            which are no calls, counted apart.
        max_bytes: Bytes that a candidate's canonical JSON may have; 256 KiB by default.
        tolerance: Relative difference at which two numbers count as equal.
        seconds: Bound on trying one candidate.
        attempts: Tries to write, when other writers are faster.

    Raises:
        UsageError: A bound is not positive, or a share is not between 0 and 1.
    """

    allow_revisions: bool = False
    run_undeclared: bool = False
    probes: int = 12
    min_agreements: int = 3
    description_similarity: float = 0.25
    max_examples: int = 64
    max_bytes: int = 262_144
    tolerance: float = 1e-9
    seconds: float = 10.0
    attempts: int = 10

    def __post_init__(self) -> None:
        for name in ("min_agreements", "max_examples", "max_bytes", "seconds", "attempts"):
            if not getattr(self, name) > 0:
                raise UsageError(f"InsertPolicy.{name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.description_similarity <= 1:
            raise UsageError(
                "InsertPolicy.description_similarity is between 0 and 1, got "
                f"{self.description_similarity}"
            )
        if self.probes < 0 or self.tolerance < 0:
            raise UsageError("InsertPolicy.probes and .tolerance are 0 or more")


Judge: TypeAlias = Callable[[ToolDefinition, ToolDefinition], Awaitable[bool]]
"""Says whether a candidate and a tool that behaves like it are meant for the same; see
``ModelJudge``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Procedure:
    """What InsertTool works with.

    Attributes:
        policy: What a candidate has to show.
        limits: What composites may cost.
        judge: Asked whether two tools mean the same, where they do the same and their words differ.
    """

    policy: InsertPolicy = field(default_factory=InsertPolicy)
    limits: CompositeLimits = field(default_factory=CompositeLimits)
    judge: Judge | None = None


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
class Witness:
    """The call that shows why a candidate was rejected.

    Attributes:
        tool: The tool whose call failed.
        arguments: Its arguments.
        expected: The result that the worked call promises; None where there is none.
        got: The result that came out.
        condition: The broken condition.
        path: The calls that lead there, the outermost first.
    """

    tool: str
    arguments: JsonObject
    expected: Any = None
    got: Any = None
    condition: str = ""
    path: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The witness as a JSON object, without what is not there."""
        record = {**asdict(self), "arguments": dict(self.arguments), "path": list(self.path)}
        return {name: one for name, one in record.items() if name == "arguments" or one or one == 0}


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
    """The candidate is not taken, and why.

    Attributes:
        code: What is wrong.
        name: Name of the candidate; empty when its text has none.
        explanation: What is wrong, with values.
        advice: What to do.
        problems: Places in its text, when the text is what is wrong.
        witness: The call that shows it.
    """

    code: RejectionCode
    name: str
    explanation: str
    advice: str
    problems: tuple[SourceProblem, ...] = ()
    witness: Witness | None = None

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        record: dict[str, Any] = {
            "outcome": "rejected",
            "code": self.code,
            "name": self.name,
            "explanation": self.explanation,
            "advice": self.advice,
        }
        if self.problems:
            record["problems"] = [asdict(problem) for problem in self.problems]
        if self.witness is not None:
            record["witness"] = self.witness.to_json()
        return record

    def __str__(self) -> str:
        places = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.name or 'candidate'} rejected [{self.code}]: {self.explanation}{places}"


InsertOutcome: TypeAlias = Added | Merged | Rejected
"""What came of a candidate."""

_LONGEST = 2_000


class Refused(Exception):  # noqa: N818 - not an error of the caller; it carries an outcome
    """Inside InsertTool: stops a candidate, with the outcome."""

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
    """The exception that stops a candidate, for ``raise``."""
    if len(explanation) > _LONGEST:
        explanation = f"{explanation[:_LONGEST]}…"
    return Refused(
        Rejected(
            code=code,
            name=name,
            explanation=explanation,
            advice=advice,
            problems=tuple(problems),
            witness=witness,
        )
    )


def refuse_source(name: str, problems: Iterable[SourceProblem]) -> Refused:
    """The exception for a text that is no program: the code that its problems share."""
    found = tuple(problems)
    codes = {REJECTION_OF_FAULT.get(problem.code, "outside_language") for problem in found}
    code = codes.pop() if len(codes) == 1 else "outside_language"
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return refuse(code, name, f"{first.message}{more}", first.advice, problems=found)
