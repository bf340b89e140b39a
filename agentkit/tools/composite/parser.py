"""From the text of a composite to its program."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.tools.composite import ir
from agentkit.tools.composite.faults import Place, placed, refusal
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.composite.reading import calls, expressions
from agentkit.tools.composite.reading.context import Positions, Reading, place_of
from agentkit.tools.composite.reading.statements import block
from agentkit.tools.tool import Tool

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_READERS = {**expressions.READERS, **calls.READERS}


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedSource:
    """A text of the composite language, read.

    Attributes:
        name: The function's name.
        program: Its body.
        docstring: As written, with its indentation; empty when there is none.
        function: The syntax, for what is not the program's: annotations and decorators.
        positions: Line and column of each node of ``program``, by the node's ``id``.
    """

    name: str
    program: ir.Program
    docstring: str
    function: Function
    positions: Mapping[int, Place]


def parse(
    source: str, tools: Mapping[str, Tool], *, limits: CompositeLimits | None = None
) -> ParsedSource:
    """Read the text of a composite.

    Raises:
        CompositeError: The text is outside the language; ``problems`` lists everything found.
    """
    limits = limits or CompositeLimits()
    function = ast.parse(source).body[0]
    assert isinstance(function, Function)
    reading = Reading(tools=tools, limits=limits, readers=_READERS)
    reading.name = function.name
    program = ir.Program(
        parameters=_parameters(reading, function.args),
        body=block(reading, _without_docstring(function)),
    )
    if reading.faults:
        raise refusal(
            function.name,
            placed(reading.faults, lambda node: place_of(node, source)),  # type: ignore[arg-type]
        )
    return ParsedSource(
        name=function.name,
        program=program,
        docstring=_docstring(function),
        function=function,
        positions=Positions(reading.nodes, source),
    )


def parse_expression(
    text: str, names: Sequence[str], *, limits: CompositeLimits | None = None
) -> ir.Expression:
    """Read one expression over ``names``, without calls of tools: a condition."""
    reading = Reading(tools={}, limits=limits or CompositeLimits(), readers=_READERS)
    made = reading.expression(ast.parse(text, mode="eval").body)
    if reading.faults:
        raise refusal(
            "",
            placed(reading.faults, lambda node: place_of(node, text)),  # type: ignore[arg-type]
        )
    return made


def _parameters(reading: Reading, arguments: ast.arguments) -> tuple[ir.Parameter, ...]:
    names = [*arguments.args, *arguments.kwonlyargs]
    missing = len(arguments.args) - len(arguments.defaults)
    defaults = [*[None] * missing, *arguments.defaults, *arguments.kw_defaults]
    made = []
    for name, default in zip(names, defaults, strict=True):
        value = None if default is None else reading.expression(default)
        if isinstance(value, ir.Unary):
            assert isinstance(value.operand, ir.Constant)
            value = ir.Constant(value=-value.operand.value)  # type: ignore[operator]
        assert value is None or isinstance(value, ir.Constant)
        made.append(ir.Parameter(name=name.arg, default=value))
    return tuple(made)


def _docstring(function: Function) -> str:
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first.value.value if isinstance(first.value.value, str) else ""
    return ""


def _without_docstring(function: Function) -> list[ast.stmt]:
    return function.body[1:] if _docstring(function) else function.body
