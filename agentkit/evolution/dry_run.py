"""Try tools out without touching the world: every contract checked, within a budget.

Pure tools with code run; all others answer from their worked calls.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentkit.composites.composite import Composite, composite_tool
from agentkit.composites.contracts import check_post, check_pre
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import ContractViolation, UsageError
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.calls import CanonicalCall, canonical_calls
from agentkit.tools.canonical import json_key, same_json
from agentkit.tools.definition import Example, Signature, ToolDefinition
from agentkit.tools.invocation import encode_result
from agentkit.tools.patterns import FORMATS
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool

# --- What a candidate has to show -----------------------------------------------------------------


PROBES = 12
"""Calls made up to check contracts with, and to compare behaviour with beside worked calls."""

MAX_EXAMPLES = 64
"""Worked calls that a tool keeps when others are merged into it; lessons are counted apart."""

TOLERANCE = 1e-9
"""Relative difference at which two numbers count as equal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertPolicy:
    """What a candidate has to show, and what it may cost to try it.

    Attributes:
        allow_revisions: Take a composite whose name the library knows as a new revision of that
            tool. Composites made of it are tried on it first.
        seconds: Bound on trying one candidate.

    Raises:
        UsageError: The bound is not positive.
    """

    allow_revisions: bool = False
    seconds: float = 10.0

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise UsageError(f"InsertPolicy.seconds must be positive, got {self.seconds}")


# --- When two results are the same ---------------------------------------------------------------


def agree(one: Any, other: Any, *, tolerance: float = TOLERANCE) -> bool:
    """Whether two JSON values are the same, numbers up to a tolerance.

    The tolerance is relative for numbers beyond 1 and absolute below it, as in ``is_close`` of
    the composite language. ``1`` equals ``1.0`` but not ``true``; a tuple equals a list.

    Example:
        >>> agree({"total": 0.1 + 0.2}, {"total": 0.3}), agree(1, True)
        (True, False)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            agree(left, right, tolerance=tolerance) for left, right in zip(one, other, strict=True)
        )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            agree(one[key], other[key], tolerance=tolerance) for key in one
        )
    if isinstance(one, float) or isinstance(other, float):  # whole numbers are exact
        try:
            return one == other or math.isclose(
                one, other, rel_tol=tolerance, abs_tol=min(tolerance, 1.0)
            )
        except (TypeError, OverflowError):
            return False
    return bool(one == other)


class BudgetSpent(Exception):  # noqa: N818 - a signal inside this package, told as a rejection
    """Trying out the candidate has cost as much as the policy allows."""


# --- Recorded answers in the place of tools that touch the world ---------------------------------


class MissingStub(Exception):  # noqa: N818 - a signal inside this package, told as a rejection
    """A tool that touches the world was asked something that no worked call answers."""

    def __init__(self, tool_name: str, arguments: JsonObject) -> None:
        self.tool_name = tool_name
        super().__init__(f"no recorded answer of {tool_name} for {dict(arguments)}")


def runs_live(definition: ToolDefinition) -> bool:
    """Whether validation may run the tool itself: it is known to touch nothing outside the call.

    A tool that reads the world is answered from its records as well: what it says tomorrow is no
    evidence for what it said.
    """
    effects = definition.signature.effects
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


def with_examples(definition: ToolDefinition, examples: Iterable[Example]) -> ToolDefinition:
    """A definition with further worked calls; itself when it has them all.

    What it says of a call already stays: a call has one answer, the first. Examples without a
    result answer nothing, so they stand beside those. Of either kind at most ``MAX_EXAMPLES`` are
    kept.

    Args:
        definition: The tool.
        examples: Worked calls under the names of its own parameters.
    """
    kept = list(definition.examples)
    known = {_kind_of(definition, example) for example in kept}
    count = Counter(one.is_whole for one in kept)
    for example in examples:
        kind = _kind_of(definition, example)
        if kind not in known and count[example.is_whole] < MAX_EXAMPLES:
            known.add(kind)
            kept.append(example)
            count[example.is_whole] += 1
    if len(kept) == len(definition.examples):
        return definition
    return replace(definition, examples=tuple(kept))


def _kind_of(definition: ToolDefinition, example: Example) -> tuple[CanonicalCall, str | None]:
    """Equal for two examples one of which is enough."""
    return call_key(definition, example.arguments), None if example.is_whole else example.query


def call_key(definition: ToolDefinition, arguments: JsonObject) -> CanonicalCall:
    """Equal for two sets of arguments that make the same call of a tool."""
    call = ToolCall(call_id="", name=definition.name, arguments=arguments)
    (key,) = canonical_calls([call], [definition])
    return key


# --- Arguments to try a pure tool with: values of its worked calls, and the edges of its type ----

_SCALARS: Mapping[str, Sequence[Any]] = {
    "integer": (0, 1, -1, 2, 7, 100),
    "number": (0, 1, -1, 2.5, -0.5, 100),
    "string": ("", "a", "Ab c", "0"),
    "boolean": (True, False),
    "null": (None,),
}
_MOST_VALUES = 12
_DEEPEST = 4


def probes(signature: Signature, calls: Sequence[JsonObject]) -> Iterator[dict[str, Any]]:
    """Arguments that fit the parameters, the same ones each time.

    Every value that one of ``calls`` gives a parameter, and then the edges of its type (zero,
    one, a negative number, the empty text or list, each member of an enum), come up as soon as
    there are enough probes; the parameters advance at different paces, so that values meet in
    ever new combinations.

    Args:
        signature: Whose parameters to fill; optional ones are filled as well.
        calls: Arguments of worked calls, under the names of the signature.
    """
    pools = {name: _pool(name, schema, calls) for name, schema in signature.properties.items()}
    if not pools or not all(pools.values()):
        return
    seen, given = [dict(arguments) for arguments in calls], 0
    for turn in range(2 * PROBES):
        # Each pool is walked through in turn; a later round is shifted against the other pools.
        arguments = {
            name: pool[(turn + number * (1 + turn // len(pool))) % len(pool)]
            for number, (name, pool) in enumerate(pools.items())
        }
        if any(same_json(arguments, earlier) for earlier in seen):
            continue
        seen.append(arguments)
        if fits(arguments, signature.parameters) is not False:
            yield arguments
            given += 1
        if given == PROBES:
            return


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
        return ()  # made of a language that we cannot guess
    bounds = [schema[word] for word in ("minimum", "maximum") if word in schema]
    return (*_SCALARS.get(kind, ()), *bounds)


# --- Running tools without touching the world, every contract checked, within a budget -----------


FailureCause = Literal["no_stub", "precondition", "postcondition", "error", "other_result"]

_LONGEST_CHAIN = 64
_LONGEST = 300  # characters of a call or value that are told


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A run that did not come to its end.

    Attributes:
        cause: ``no_stub``: a tool that touches the world has no recorded answer; a condition that
            does not hold; an ``error``; or, of a worked call, ``other_result``.
        tool: Where it happened.
        message: What happened, with values.
        condition: The condition that does not hold.
    """

    cause: FailureCause
    tool: str
    message: str
    condition: str = ""


class DryRun:
    """Tries tools of one library.

    Pure tools with code run; all others answer from their worked calls. A composite always runs,
    over children for which the same holds.

    Args:
        tools: The library's tools by name.
        policy: For how long they may run.
    """

    def __init__(self, tools: Mapping[str, Tool], policy: InsertPolicy) -> None:
        self._tools = tools
        self._seconds = policy.seconds
        self._limits = CompositeLimits(deadline_seconds=policy.seconds)
        self._until = time.monotonic() + policy.seconds
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
        if tool.is_bound and runs_live(definition):
            return tool
        return stub(definition)

    def lacking(self, name: str) -> tuple[str, str]:
        """Why a tool without a recorded answer was not run itself, as a code, and what to do."""
        tool = self._tools[name]
        effects = tool.definition.signature.effects
        if runs_live(tool.definition):
            return "unbound_child", (
                f"{name!r} is pure, but has no code in this process: give its Tool to the manager "
                "(tools=..., --tools), or record an example of it with these arguments"
            )
        advice = f"record an example of {name!r} with these arguments and its answer"
        if not effects.to_json() and tool.is_bound:
            advice += "; if it touches nothing outside the call, declare effects=Effects.pure()"
        return "no_stub", advice

    async def run(self, tool: Tool, arguments: JsonObject) -> Any:
        """What a prepared tool returns, as JSON data, or a ``Failed``; its contract is checked too.

        Raises:
            BudgetSpent: The candidate has cost as much as the policy allows.
        """
        self._check_time()
        try:
            return await _result_of(tool, dict(arguments))
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is told as a failure
            self._check_time()
            return _failed(tool.name, error)

    async def fault_of(self, tool: Tool, example: Example) -> Failed | None:
        """What is wrong with one worked call of a prepared tool; None when it holds.

        Raises:
            BudgetSpent: The candidate has cost as much as the policy allows.
        """
        ran = await self.run(tool, example.arguments)
        if isinstance(ran, Failed):
            return ran
        if agree(example.result, ran):
            return None
        call = call_text(tool.name, example.arguments)
        return Failed(
            cause="other_result",
            tool=tool.name,
            message=f"{call} gave {_text(ran)}, not {_text(example.result)}",
        )

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise BudgetSpent(f"more than {self._seconds:g} s (InsertPolicy.seconds)")


async def _result_of(tool: Tool, arguments: dict[str, Any]) -> Any:
    """What a prepared tool returns, as JSON data; its own contract is checked.

    Raises:
        ContractViolation: A condition does not hold.
        Exception: Whatever the tool raises.
    """
    if isinstance(tool.function, Composite):  # which checks its conditions itself
        composite = tool.function
        is_async = composite.needs_event_loop
        value = await composite.run_async(arguments) if is_async else composite.run(arguments)
        return encode_result(value)[0]
    broken = check_pre(tool.definition, arguments)
    if broken is not None:
        raise broken
    value = tool(**tool.convert(arguments))
    data, _ = encode_result(await value if tool.is_async else value)
    broken = check_post(tool.definition, arguments, data)
    if broken is not None:
        raise broken
    return data


def _failed(name: str, error: Exception) -> Failed:
    """What an error of a run was, or what it was raised from."""
    current: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if isinstance(current, MissingStub):
            return Failed(cause="no_stub", tool=current.tool_name, message=str(current))
        if isinstance(current, ContractViolation):
            return Failed(
                cause="precondition" if current.code == "precondition" else "postcondition",
                tool=current.tool_name,
                message=str(current),
                condition=current.condition,
            )
        current = None if current is None else current.__cause__
    return Failed(cause="error", tool=name, message=str(error))


def call_text(name: str, arguments: JsonObject) -> str:
    """A call as it is written in Python, cut when it is long."""
    return cut(f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})")


def _text(value: Any) -> str:
    return cut(json.dumps(value, ensure_ascii=False, default=repr))


def cut(text: str) -> str:
    """A text of at most a few lines."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"
