"""Code mode: the model writes one program over the offered tools in place of single calls.

The text is in the composite language: it is read, checked and interpreted within limits, never
executed. Each call that it makes goes through the run's executor, as if the model had made it:
validation, guardrails, approvals, limits, retries and events hold, and it is recorded.

A call that waits for a person, or for a value from outside, ends the program; the run is deferred.
When it is resumed the program begins anew, and its earlier calls are answered from the record.
Programs are deterministic, so nothing runs twice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from textwrap import dedent
from typing import Any, Protocol

from agentkit.agent.checks import bounded
from agentkit.agent.selection import SelectedTools
from agentkit.agent.types import AskedLater
from agentkit.composites.children import plain
from agentkit.composites.composite import Composite
from agentkit.composites.language import BUILTINS, METHODS, is_dotted, written
from agentkit.composites.parser import Function, ParsedSource, read_function, syntax_tree
from agentkit.composites.problems import STYLE_CODES, CompositeLimits, placed, refusal
from agentkit.composites.type_check import type_check
from agentkit.episodes import ProgramCall
from agentkit.errors import (
    CompositeError,
    CompositeRunError,
    ModelRetry,
    SourceProblem,
    ToolFailed,
    ToolSignal,
)
from agentkit.messages import JsonObject, ToolCall, ToolResult
from agentkit.models.base import RUN_TOOL
from agentkit.retrieval.cards import type_text
from agentkit.tools.definition import Effects, Specification, ToolDefinition
from agentkit.tools.invocation import current_context, with_media
from agentkit.tools.patterns import json_line, written_out
from agentkit.tools.tool import Tool

LIMITS = CompositeLimits(
    source_bytes=32_768, nodes=2_000, fuel=200_000, string_chars=1_000_000, deadline_seconds=None
)
"""Of one program; the time is that of its tool."""

_SECONDS = 300.0
_RETRIES = 4  # programs that fail in a row
_PROBLEMS = 5
_CALLS = 12
_LONGEST = 200
_NAME = "program"
_FENCED = re.compile(r"```(?:python)?[ \t]*\n(.*?)\n```\s*\Z", re.DOTALL)

_PARAMETERS = {
    "type": "object",
    "properties": {
        "program": {"type": "string", "description": "The program, which ends with `return`."}
    },
    "required": ["program"],
    "additionalProperties": False,
}

_PURPOSE = """\
Run a program over the tools below, and read what it returns. Write all steps of the task into one \
program: results go from call to call in variables, and only what it returns comes back.
It is written in a small part of Python:
- x = tool(a=1, b=y); x += 1; if, elif, else; for x in xs; break; continue; return value
- results are JSON: row["id"], rows[0], rows[1:], row.get("id"); f"{{x}}", + - * / // % **, ==, <, \
in, and, or, not, a if b else c, [f(x) for x in xs if x > 0], {{k: v for k, v in pairs}}
- functions: {functions}
- methods: {methods}
- nothing changes a value in place: write xs = xs + [x]
- there is no import, def, while, try, lambda, print or attribute; each path ends with return
Example:
rooms = find_rooms(city="Rome", guests=2)
best = min(room["price"] for room in rooms)
return [book(id=room["id"]) for room in rooms if room["price"] == best]
Tools:
"""


class ProgramExecutor(Protocol):
    """An ``Executor``, as far as programs need it."""

    tools: SelectedTools

    async def execute_inside(self, call: ToolCall, program: str) -> ToolResult:
        """Run a call that a program makes."""
        ...

    def calls_of(self, program: str) -> tuple[ProgramCall, ...]:
        """What it called so far."""
        ...


def program_tool(executor: ProgramExecutor, *, examples: int = 0) -> Tool:
    """The tool that runs programs over the tools of an executor.

    Args:
        executor: Makes the calls of programs.
        examples: How many worked calls of each tool are shown.
    """
    names = executor.tools.at_hand()
    functions, methods = ", ".join(sorted(BUILTINS)), ", ".join(sorted(METHODS))
    head = _PURPOSE.format(functions=functions, methods=methods)
    offered = [tool.definition for name, tool in names.items() if name in executor.tools]
    shown = [signature(one, examples=examples) for one in offered]
    definition = ToolDefinition.from_schema(
        RUN_TOOL,
        head + "\n".join(shown),
        _PARAMETERS,
        effects=Effects(writes=True),  # programs keep the model's order
    )
    return Tool(
        definition=definition,
        function=_Programs(executor).run,
        is_async=True,
        timeout_seconds=_SECONDS,
        max_retries=_RETRIES,
        context=Any,
    )


class _Programs:
    """Runs the programs of one run."""

    def __init__(self, executor: ProgramExecutor) -> None:
        self._executor = executor

    async def run(self, program: str) -> Any:
        """Run a program to its result.

        Raises:
            ModelRetry: It is no program, or ended before its result; another one may do.
            ToolFailed: A call failed for good.
            AskedLater: A call waits for somebody.
        """
        call_id = current_context(RUN_TOOL).call_id
        try:
            parsed = read_program(program, self._executor.tools.at_hand())
        except CompositeError as error:
            raise ModelRetry(_invalid(error.problems)) from error
        activity = _Activity(self._executor, call_id)
        children = {name: activity.child(tool) for name, tool in parsed.children.items()}
        composite = Composite(parsed.program, children, name=_NAME, limits=LIMITS)
        try:
            value = await composite.run_async({})
            made = self._executor.calls_of(call_id)
            media = {one.sha256: one for made_call in made for one in made_call.result.media}
            return with_media(value, media) if media else value
        except (CompositeRunError, ToolSignal) as error:
            raise activity.outcome(error) from error


class _Activity:
    """What one program does.

    Args:
        executor: Runs its calls.
        program: Id of the call that runs it.
    """

    def __init__(self, executor: ProgramExecutor, program: str) -> None:
        self._executor = executor
        self._program = program
        self._numbers = count(1)
        self._failed: ToolResult | None = None
        self._is_waiting = False

    def child(self, tool: Tool) -> Tool:
        """The tool as the program calls it: through the executor, which checks the call."""
        pure = Effects.pure() if tool.definition.signature.effects.is_read_only else Effects()
        signature = replace(tool.definition.signature, effects=pure, children=())
        definition = replace(
            tool.definition, signature=signature, specification=Specification(), body=None
        )

        async def call(**arguments: Any) -> Any:
            return await self._value(tool.name, arguments)

        return Tool(definition=definition, function=call, is_async=True)

    async def _value(self, name: str, arguments: JsonObject) -> Any:
        call_id = f"{self._program}.{next(self._numbers)}"
        call = bounded(ToolCall(call_id=call_id, name=name, arguments=plain(arguments)))
        result = await self._executor.execute_inside(call, self._program)
        if result.status == "ok":
            return result.value
        if result.status == "deferred":
            self._is_waiting = True
        else:
            self._failed = self._failed or result
        raise ToolFailed(result.text)

    def outcome(self, error: Exception) -> Exception:
        """What ends the call of a program that could not be run to its result."""
        if self._is_waiting:
            return AskedLater("The program waits for one of its calls; it goes on from there.")
        failed, made = self._failed, self._executor.calls_of(self._program)
        lines = [str(error) if failed is None else f"it ended at a call that failed: {failed.text}"]
        if done := [one for one in made if one.result.status == "ok"]:
            lines += ["What it called before has happened:", *map(_line, done[-_CALLS:])]
        text = "\n".join(lines)
        is_final = (
            failed is not None and failed.failure is not None and not failed.failure.retryable
        )
        return ToolFailed(text) if is_final else ModelRetry(text)


def read_program(text: str, tools: Mapping[str, Tool]) -> ParsedSource:
    r"""Read and check a program: statements that end with ``return``, or one function of them.

    Indentation around it and a fence are left out; a last expression, or what is printed last, is
    returned.

    Raises:
        CompositeError: It is outside the language, or does not fit the tools that it calls.

    Example:
        >>> print(read_program("x=2 * 3\nreturn x + 1", {}).program.text, end="")
        def composite():
            x = 2 * 3
            return x + 1
    """
    found = _FENCED.match(text.strip())
    text = dedent(found[1] if found else text)
    tree = syntax_tree(text, LIMITS)
    function = _as_function(tree.body or [ast.Pass(lineno=1, col_offset=0)])
    parsed = read_function(function, text, tools, limits=LIMITS)
    problems = tuple(one for one in parsed.problems if one.code not in STYLE_CODES)
    if not problems:
        faults, _ = type_check(parsed.program, {"type": "object"}, parsed.children)
        problems = placed(faults, parsed.place)
    if problems:
        raise refusal("", problems)
    return parsed


def _as_function(body: Sequence[ast.stmt]) -> Function:
    """One function of statements, or the one that they are."""
    match body:
        case [ast.FunctionDef() | ast.AsyncFunctionDef() as function] if not function.args.args:
            return function
        case (
            [*_, ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[value])) as last]
            | [*_, ast.Expr(value=value) as last]  # as in a notebook
        ):
            body = [*body[:-1], ast.copy_location(ast.Return(value=value), last)]
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    made = ast.FunctionDef(name=_NAME, args=empty, body=[*body], decorator_list=[])
    made.lineno, made.col_offset = 1, 0
    return made


def _invalid(problems: Sequence[SourceProblem]) -> str:
    more = [f"and {len(problems) - _PROBLEMS} more"] * (len(problems) > _PROBLEMS)
    lines = (_on_one_line(str(one)) for one in problems[:_PROBLEMS])
    return "\n".join(["nothing of the program was run:", *lines, *more])


def _line(made: ProgramCall) -> str:
    result = json_line(made.result.text, most=_LONGEST)
    return f"{_clipped(_call(made.call.name, made.call.arguments))} -> {result}"


def _call(name: str, arguments: JsonObject) -> str:
    return f"{name}({', '.join(f'{key}={json_line(one)}' for key, one in arguments.items())})"


def _on_one_line(text: str) -> str:
    return written_out(" ".join(text.splitlines()))


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"


# --- how a model is shown a tool ------------------------------------------------------------------

_MOST_FIELDS = 16
_DEEPEST = 3


def signature(definition: ToolDefinition, *, examples: int = 0) -> str:
    """What a program has to know of a tool: parameters, the shape of the result, and its words.

    Example:
        >>> find = ToolDefinition.from_schema(
        ...     "find",
        ...     "Find orders.",
        ...     {
        ...         "type": "object",
        ...         "properties": {
        ...             "city": {"type": "string", "description": "City and country."},
        ...             "limit": {"type": "integer", "default": 5},
        ...         },
        ...         "required": ["city"],
        ...     },
        ...     result={
        ...         "type": "array",
        ...         "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
        ...     },
        ... )
        >>> print(signature(find))
        find(city: string, limit: integer = 5) -> [{id: integer}]  # Find orders.
          # city: City and country.
    """
    declared, parameters = definition.signature, []
    schemas: Mapping[str, Any] = declared.properties
    for name, schema in schemas.items():
        default = ""
        if name not in declared.required:
            has_default = isinstance(schema, Mapping) and "default" in schema
            default = f" = {json_line(schema['default']) if has_default else '...'}"
        parameters.append(f"{name}: {_shape(schema)}{default}")
    name = definition.name if is_dotted(definition.name) else written(definition.name)
    lines = [f"{name}({', '.join(parameters)}) -> {_shape(declared.result)}"]
    lines[0] += f"  # {definition.text}" if definition.text else ""
    lines += [f"  # {path}: {text}" for path, text in definition.description.parameters.items()]
    lines += [f"  # Example: {_call(name, one)}" for one in definition.shown_examples(examples)]
    return "\n".join(map(_on_one_line, lines))


def _shape(schema: Any, deepest: int = _DEEPEST) -> str:
    """A type, with the fields of its objects."""
    if isinstance(schema, Mapping) and deepest:
        fields = schema.get("properties")
        if isinstance(fields, Mapping) and fields:
            shown = [f"{name}: {_shape(one, deepest - 1)}" for name, one in fields.items()]
            more = ["..."] * (len(shown) > _MOST_FIELDS)
            return f"{{{', '.join([*shown[:_MOST_FIELDS], *more])}}}"
        if schema.get("type") == "array":
            return f"[{_shape(schema.get('items', True), deepest - 1)}]"
    return type_text(schema)
