"""Try tools out without touching the world: every contract checked, within a budget.

Pure tools with code run; all others answer from their worked calls.
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from agentkit.composites.composite import Composite, composite_tool
from agentkit.composites.contracts import check_post, check_pre
from agentkit.errors import CompositeRunError, ContractViolation
from agentkit.evolution.insert_outcomes import (
    InsertPolicy,
    Procedure,
    Refused,
    RejectionCode,
    Witness,
    refuse,
)
from agentkit.evolution.loops import require_loop
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.calls import CanonicalCall, canonical_calls
from agentkit.tools.canonical import json_key, same_json
from agentkit.tools.definition import Example, Signature, ToolDefinition
from agentkit.tools.formats import FORMATS
from agentkit.tools.invocation import encode_result
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool
from agentkit.tools.validation import validate_arguments

# --- When two results are the same ---------------------------------------------------------------


def agree(one: Any, other: Any, *, tolerance: float) -> bool:
    """Whether two JSON values are the same, numbers up to a tolerance.

    The tolerance is relative for numbers beyond 1 and absolute below it, as in ``is_close`` of
    the composite language. ``1`` equals ``1.0`` but not ``true``; a tuple equals a list.

    Example:
        >>> agree({"total": 0.1 + 0.2}, {"total": 0.3}, tolerance=1e-9)
        True
        >>> agree(1, True, tolerance=1e-9)
        False
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return _close(one, other, tolerance)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            agree(left, right, tolerance=tolerance) for left, right in zip(one, other, strict=True)
        )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            agree(one[key], other[key], tolerance=tolerance) for key in one
        )
    return bool(one == other)


def _close(one: float, other: float, tolerance: float) -> bool:
    if one == other:
        return True
    if isinstance(one, int) and isinstance(other, int) and tolerance < 1:
        return False  # whole numbers are exact, and may be too large for a float
    try:
        difference, largest = abs(one - other), max(1.0, abs(one), abs(other))
        return bool(difference <= tolerance * largest)
    except OverflowError:
        return False


# --- How much trying out one candidate may still cost --------------------------------------------


class BudgetSpent(Exception):  # noqa: N818 - a signal inside this package, told as a rejection
    """Trying out the candidate has cost as much as the policy allows."""


# --- Recorded answers in the place of tools that touch the world ---------------------------------


class MissingStub(Exception):  # noqa: N818 - a signal inside this package, told as a rejection
    """A tool that touches the world was asked something that no worked call answers.

    Attributes:
        tool_name: The tool.
        arguments: What it was asked.
    """

    def __init__(self, tool_name: str, arguments: JsonObject) -> None:
        self.tool_name = tool_name
        self.arguments = dict(arguments)
        super().__init__(f"no recorded answer of {tool_name} for {self.arguments}")


def runs_live(definition: ToolDefinition, policy: InsertPolicy) -> bool:
    """Whether validation may run the tool itself: it is known to touch nothing outside the call.

    A tool that reads the world is answered from its records as well: what it says tomorrow is no
    evidence for what it said.
    """
    effects = definition.signature.effects
    if policy.run_undeclared and not effects.to_json():
        return True
    return effects.is_read_only and not effects.reads and not effects.open_world


def stub(definition: ToolDefinition) -> Tool:
    """A tool that answers from the worked calls of ``definition``, and touches nothing.

    Calls are recognised whatever the order of keys and whether defaults are written out.

    Example:
        >>> from agentkit.tools.definition import Example
        >>> book = ToolDefinition(
        ...     name="book", examples=(Example(arguments={"day": "Monday"}, result="B-1"),)
        ... )
        >>> stub(book)(day="Monday")
        'B-1'
    """
    answers = {
        call_key(definition, example.arguments): example.result
        for example in reversed(
            definition.worked_calls
        )  # the first of two contradicting ones holds
    }

    def answer(**arguments: Any) -> Any:
        key = call_key(definition, arguments)
        if key not in answers:
            raise MissingStub(definition.name, arguments)
        return answers[key]

    return Tool(definition=definition, function=answer)


def with_examples(
    definition: ToolDefinition, examples: Iterable[Example], *, most: int
) -> ToolDefinition:
    """A definition with further worked calls; itself when it has them all.

    What it says of a call already stays: a call has one answer, the first. Examples without a
    result answer nothing, so they stand beside those.

    Args:
        definition: The tool.
        examples: Worked calls under the names of its own parameters.
        most: Worked calls that a tool keeps, and as many examples without a result; those beyond
            are left out.
    """
    kept = list(definition.examples)
    known = {_kind_of(definition, example) for example in kept}
    room = {is_whole: most - sum(one.is_whole is is_whole for one in kept) for is_whole in _BOTH}
    for example in examples:
        kind = _kind_of(definition, example)
        if kind not in known and room[example.is_whole] > 0:
            known.add(kind)
            kept.append(example)
            room[example.is_whole] -= 1
    if len(kept) == len(definition.examples):
        return definition
    return replace(definition, examples=tuple(kept))


_BOTH = (True, False)


def _kind_of(definition: ToolDefinition, example: Example) -> tuple[CanonicalCall, str | None]:
    """Equal for two examples one of which is enough."""
    return call_key(definition, example.arguments), None if example.is_whole else example.query


def call_key(definition: ToolDefinition, arguments: JsonObject) -> CanonicalCall:
    """Equal for two sets of arguments that make the same call of a tool."""
    call = ToolCall(call_id="", name=definition.name, arguments=arguments)
    (key,) = canonical_calls([call], [definition])
    return key


# --- Arguments to try a pure tool with: values of its worked calls, and the edges of its type ----
# Arguments to try a pure tool with: values of its worked calls, and the edges of its types.


_SCALARS: Mapping[str, Sequence[Any]] = {
    "integer": (0, 1, -1, 2, 7, 100),
    "number": (0, 1, -1, 2.5, -0.5, 100),
    "string": ("", "a", "Ab c", "0"),
    "boolean": (True, False),
    "null": (None,),
}
_MOST_VALUES = 12
_DEEPEST = 4


def probes(
    signature: Signature, calls: Sequence[JsonObject], *, count: int
) -> Iterator[dict[str, Any]]:
    """Arguments that fit the parameters, the same ones each time.

    Every value that one of ``calls`` gives a parameter, and then the edges of its type (zero,
    one, a negative number, the empty text or list, each member of an enum), come up as soon as
    there are enough probes; the parameters advance at different paces, so that values meet in
    ever new combinations.

    Args:
        signature: Whose parameters to fill; optional ones are filled as well.
        calls: Arguments of worked calls, under the names of the signature.
        count: How many to give; fewer when the values do not make so many.
    """
    if count <= 0:
        return
    pools = {name: _pool(name, schema, calls) for name, schema in signature.properties.items()}
    if not all(pools.values()):
        return
    seen = [dict(arguments) for arguments in calls]
    for turn in range(count * 2 if pools else 0):
        arguments = {
            name: pool[_at(turn, number, len(pool))]
            for number, (name, pool) in enumerate(pools.items())
        }
        if any(same_json(arguments, earlier) for earlier in seen):
            continue
        seen.append(arguments)
        if fits(arguments, signature.parameters) is not False:
            yield arguments
            count -= 1
        if not count:
            return


def _at(turn: int, number: int, size: int) -> int:
    """Each pool is walked through in turn; a later round is shifted against the other pools."""
    return (turn + number * (1 + turn // size)) % size


def _pool(name: str, schema: Any, calls: Sequence[JsonObject]) -> list[Any]:
    given = (arguments[name] for arguments in calls if name in arguments)
    pool: dict[Hashable, Any] = {}
    for value in (*given, *_edges(schema, 0)):
        pool.setdefault(json_key(value), value)
    return [*pool.values()][:_MOST_VALUES]


def _edges(schema: Any, depth: int) -> Sequence[Any]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ()
    if "enum" in schema:
        return tuple(schema["enum"])
    if "const" in schema:
        return (schema["const"],)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return [value for branch in branches for value in _edges(branch, depth + 1)]
    kinds = schema.get("type", ())
    named = [kinds] if isinstance(kinds, str) else kinds
    values = [value for kind in named for value in _of_type(kind, schema, depth)]
    return [value for value in values if fits(value, schema) is not False]


def _of_type(kind: str, schema: JsonObject, depth: int) -> Sequence[Any]:
    if kind == "array":
        items = list(_edges(schema.get("items"), depth + 1))
        return ([], items[:1], items[1:4], [*items[:1], *items[:1]]) if items else ([],)
    if kind == "string" and schema.get("format", "") not in {"", *FORMATS}:
        return ()  # made of a language that we can not guess
    bounds = [schema[word] for word in ("minimum", "maximum") if word in schema]
    return (*_SCALARS.get(kind, ()), *bounds)


# --- Running tools without touching the world, every contract checked, within a budget -----------


FailureCause = Literal["no_stub", "precondition", "postcondition", "error"]

_LONGEST_CHAIN = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A run that came to its end.

    Attributes:
        value: What it returned, as JSON data.
    """

    value: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A run that did not come to its end.

    Attributes:
        cause: ``no_stub``: a tool that touches the world has no recorded answer; a condition that
            does not hold; or an ``error``.
        code: The run code of a composite, or the type of the exception.
        tool: Where it happened.
        message: What happened, with values.
        arguments: What ``tool`` was called with.
        condition: The condition that does not hold.
        path: Names of the tools from the one that was tried down to where it happened.
    """

    cause: FailureCause
    code: str
    tool: str
    message: str
    arguments: JsonObject = field(default_factory=dict)
    condition: str = ""
    path: tuple[str, ...] = ()


RunResult: TypeAlias = Ran | Failed


class DryRun:
    """Tries tools of one library.

    Pure tools with code run; all others answer from their worked calls. A composite always runs,
    over children for which the same holds.

    Args:
        tools: The library's tools by name.
        procedure: Which tools may run, and how much.
    """

    def __init__(self, tools: Mapping[str, Tool], procedure: Procedure) -> None:
        self._tools = tools
        self.procedure = procedure
        self.policy = procedure.policy
        most = self.policy.seconds
        seconds = min(procedure.limits.deadline_seconds or most, most)
        self._limits = replace(procedure.limits, deadline_seconds=seconds)
        self._until = time.monotonic() + most
        self._safe: dict[str, Tool] = {}

    def safe(self, name: str) -> Tool:
        """The tool of that name as it may be run here."""
        if name not in self._safe:
            self._safe[name] = self.prepared(self._tools[name])
        return self._safe[name]

    def prepared(self, tool: Tool) -> Tool:
        """``tool``, which need not be in the library, as it may be run here.

        Raises:
            CompositeError: A child is missing, or is not the pinned one.
        """
        definition = tool.definition
        if definition.is_composite:
            pinned = (child.name for child in definition.signature.children)
            children = {name: self.safe(name) for name in pinned if name in self._tools}
            return composite_tool(definition, children, limits=self._limits, contracts="always")
        if tool.is_bound and runs_live(definition, self.policy):
            return tool
        return stub(definition)

    def is_pure(self, definition: ToolDefinition) -> bool:
        """Whether a run of the tool is evidence for all later runs."""
        return runs_live(definition, self.policy)

    def lacking(self, name: str) -> tuple[RejectionCode, str]:
        """Why a tool without a recorded answer was not run itself, and what to do about it."""
        tool = self._tools[name]
        effects = tool.definition.signature.effects
        if runs_live(tool.definition, self.policy):
            return "unbound_child", (
                f"{name!r} is pure, but has no code in this process: give its Tool to the manager "
                "(tools=..., --tools), or record an example of it with these arguments"
            )
        advice = f"record an example of {name!r} with these arguments and its answer"
        if not effects.to_json() and tool.is_bound:
            advice += "; if it touches nothing outside the call, declare effects=Effects.pure(), "
            advice += "or use InsertPolicy(run_undeclared=True) (--run-undeclared)"
        return "no_stub", advice

    async def run(self, tool: Tool, arguments: JsonObject) -> RunResult:
        """Call a prepared tool, its own contract checked as well.

        Raises:
            BudgetSpent: The candidate has cost as much as the policy allows.
        """
        self._check_time()
        if tool.is_async:
            require_loop()
        given = dict(arguments)
        try:
            if isinstance(tool.function, Composite):
                return Ran(value=await _run_composite(tool.function, given))
            return await _run_primitive(tool, given)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is told as a failure
            self._check_time()
            return self._failed(tool, given, error)

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise BudgetSpent(f"more than {self.policy.seconds:g} s (InsertPolicy.seconds)")

    def _failed(self, tool: Tool, given: JsonObject, error: Exception) -> Failed:
        path = error.path if isinstance(error, CompositeRunError) else (tool.name,)
        for cause in _chain(error):
            if isinstance(cause, MissingStub):
                return Failed(
                    cause="no_stub",
                    code="no_stub",
                    tool=cause.tool_name,
                    message=str(cause),
                    arguments=cause.arguments,
                    path=path,
                )
            if isinstance(cause, ContractViolation):
                return _broken_contract(cause, path)
        code = error.code if isinstance(error, CompositeRunError) else type(error).__name__
        return Failed(
            cause="error", code=code, tool=tool.name, message=str(error), arguments=given, path=path
        )


async def _run_composite(composite: Composite, arguments: JsonObject) -> Any:
    if composite.needs_event_loop:
        value = await composite.run_async(arguments, dry_run=True)
    else:
        value = composite.run(arguments, dry_run=True)
    return encode_result(value)[0]


async def _run_primitive(tool: Tool, arguments: JsonObject) -> RunResult:
    violation = check_pre(tool.definition, arguments)
    if violation is None:
        value = tool(**tool.convert(arguments))
        data, _ = encode_result(await value if tool.is_async else value)
        violation = check_post(tool.definition, arguments, data)
        if violation is None:
            return Ran(value=data)
    return _broken_contract(violation, (tool.name,))


def _broken_contract(violation: ContractViolation, path: tuple[str, ...]) -> Failed:
    is_pre = violation.code == "precondition"
    return Failed(
        cause="precondition" if is_pre else "postcondition",
        code=violation.code,
        tool=violation.tool_name,
        message=str(violation),
        arguments=violation.values,
        condition=violation.condition,
        path=violation.path or path,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, outermost first."""
    current: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if current is None:
            return
        yield current
        current = current.__cause__


# --- Trying a candidate out: its children's worked calls, its own, and generated ones ------------


_LONGEST = 300


async def check_children(candidate: ToolDefinition, trial: DryRun) -> None:
    """Every child still does what its own worked calls say (L3 and L4 of each child).

    Raises:
        Refused: One does not.
    """
    for child in candidate.signature.children:
        tool = trial.safe(child.name)
        for example in tool.definition.worked_calls:
            explanation = await example_fault(tool, example, trial)
            if explanation is not None:
                raise refuse(
                    "child_examples_failed",
                    candidate.name,
                    f"the child {child.name!r} does not do what its own worked call says: "
                    f"{explanation}",
                    f"repair {child.name!r}, or correct its examples, before building on it",
                    witness=_witness(tool.definition.name, example.arguments, example.result),
                )


async def example_fault(tool: Tool, example: Example, trial: DryRun) -> str | None:
    """What is wrong with one worked call of a prepared tool; None when it holds."""
    ran = await trial.run(tool, example.arguments)
    if isinstance(ran, Failed):
        return ran.message
    if agree(example.result, ran.value, tolerance=trial.policy.tolerance):
        return None
    call = call_text(tool.definition.name, example.arguments)
    return f"{call} gave {_text(ran.value)}, not {_text(example.result)}"


async def check_examples(candidate: Tool, trial: DryRun) -> None:
    """The candidate's own worked calls fit its parameters, run, and give what they say.

    Raises:
        Refused: One does not, or there are none.
    """
    definition = candidate.definition
    if not definition.worked_calls:
        raise refuse(
            "no_examples",
            definition.name,
            f"{definition.name!r} has no worked call, so nothing shows that it works",
            "give one to three examples with arguments and result",
        )
    for example in definition.examples:
        _check_fit(definition, example)
        if not example.is_whole:
            continue
        ran = await trial.run(candidate, example.arguments)
        if isinstance(ran, Failed):
            raise explained(definition, example.arguments, ran, trial)
        if not agree(example.result, ran.value, tolerance=trial.policy.tolerance):
            call = call_text(definition.name, example.arguments)
            raise refuse(
                "example_failed",
                definition.name,
                f"the worked call {call} says {_text(example.result)}, but the program gives "
                f"{_text(ran.value)}",
                "correct the program, or the result in the example",
                witness=_witness(definition.name, example.arguments, example.result, ran.value),
            )


async def check_probes(candidate: Tool, trial: DryRun) -> None:
    """No generated call that the candidate allows breaks a child's contract, or its own promise.

    Errors without a contract say nothing here: nobody promised that there are none.

    Raises:
        Refused: One does.
    """
    definition = candidate.definition
    if not trial.is_pure(definition):
        return
    worked = [example.arguments for example in definition.worked_calls]
    for arguments in probes(definition.signature, worked, count=trial.policy.probes):
        ran = await trial.run(candidate, arguments)
        if not isinstance(ran, Failed) or ran.cause not in {"precondition", "postcondition"}:
            continue
        if ran.cause == "precondition" and ran.tool == definition.name:
            continue  # outside of what the candidate allows
        raise explained(definition, arguments, ran, trial)


def explained(
    definition: ToolDefinition, arguments: JsonObject, failed: Failed, trial: DryRun
) -> Refused:
    """The reason to reject a candidate one of whose calls failed."""
    name = definition.name
    call = call_text(name, arguments)
    code, advice = _meaning(definition, failed, trial)
    witness = Witness(
        tool=failed.tool, arguments=failed.arguments, condition=failed.condition, path=failed.path
    )
    return refuse(code, name, f"{call}: {_cut(failed.message)}", advice, witness=witness)


def _meaning(
    definition: ToolDefinition, failed: Failed, trial: DryRun
) -> tuple[RejectionCode, str]:
    own = failed.tool == definition.name
    match failed.cause:
        case "no_stub":
            return trial.lacking(failed.tool)
        case "precondition" if own:
            return "precondition", "correct the example, or relax the precondition"
        case "precondition":
            return "child_precondition", (
                f"make sure that {failed.condition!r} holds before {failed.tool!r} is called: test "
                "for it in the program, or promise it as a precondition of your own"
            )
        case "postcondition" if own:
            return "postcondition", "correct the program, or promise less"
        case "postcondition":
            return "child_postcondition", (
                f"{failed.tool!r} itself is at fault; repair it before building on it"
            )
        case "error":
            return "run_failed", (
                "correct the program for these arguments, or take the example out and say in a "
                "precondition that they are not allowed"
            )


def _check_fit(definition: ToolDefinition, example: Example) -> None:
    found = validate_arguments(definition, example.arguments)
    if found:
        raise refuse(
            "bad_example",
            definition.name,
            f"the worked call {call_text(definition.name, example.arguments)} does not fit the "
            f"parameters: {found[0].rule}",
            "correct the example, or the parameter's type",
            witness=_witness(definition.name, example.arguments, example.result),
        )


def call_text(name: str, arguments: JsonObject) -> str:
    """A call as it is written in Python, cut when it is long."""
    return _cut(f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})")


def _witness(tool: str, arguments: JsonObject, expected: Any, got: Any = None) -> Witness:
    return Witness(tool=tool, arguments=dict(arguments), expected=expected, got=got)


def _text(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=repr))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"
