"""The function itself: that there is one, and its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from agentkit.composites import advice, ir
from agentkit.composites.faults import Fault
from agentkit.composites.reading.context import Reading
from agentkit.errors import SourceProblem

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def only_function(tree: ast.Module) -> tuple[Function, list[Fault]] | SourceProblem:
    """The first function of a text, and what is wrong with what stands around it."""
    functions = [node for node in tree.body if isinstance(node, Function)]
    if not functions:
        return SourceProblem(
            code="not_one_function",
            message="the text has no function",
            advice="Write one function, `def name(parameter): ...`, that calls the tools.",
        )
    return functions[0], [_stray(node) for node in tree.body if node is not functions[0]]


def _stray(node: ast.stmt) -> Fault:
    if isinstance(node, ast.Import | ast.ImportFrom):
        what, hint = advice.STATEMENTS["Import"]
        return Fault(node, "unknown_construct", f"{what} not in the language", hint)
    what = f"another function, `{node.name}`," if isinstance(node, Function) else "a statement"
    hint = "Keep one function; write helpers out where they are used, and constants inside it."
    return Fault(node, "not_one_function", f"{what} stands beside the function", hint)


def docstring_of(function: Function) -> str | None:
    """The docstring as written, with its indentation; None when there is none.

    Other than ``ast.get_docstring`` this loads nothing to clean it.
    """
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        value = first.value.value
        return value if isinstance(value, str) else None
    return None


def parameters(reading: Reading, function: Function) -> tuple[ir.Parameter, ...]:
    """The parameters with their defaults; a bare ``*`` among them changes nothing."""
    arguments = function.args
    for node, what in _foreign_parameters(function):
        hint = "Write plain parameters, one name for each value."
        reading.refuse(node, "parameter", f"{what} is not in the language", hint)
    plain = [*arguments.posonlyargs, *arguments.args]
    required = len(plain) - len(arguments.defaults)
    defaults = [*[None] * required, *arguments.defaults, *arguments.kw_defaults]
    made = []
    for node, default in zip([*plain, *arguments.kwonlyargs], defaults, strict=True):
        parameter = ir.Parameter(
            name=node.arg, default=None if default is None else _default(reading, default)
        )
        reading.nodes[id(parameter)] = node
        made.append(parameter)
    return tuple(made)


def _foreign_parameters(function: Function) -> Iterator[tuple[ast.arg | Function, str]]:
    arguments = function.args
    if arguments.posonlyargs:
        yield arguments.posonlyargs[0], "`/` in the parameters"
    if arguments.vararg is not None:
        yield arguments.vararg, f"`*{arguments.vararg.arg}`"
    if arguments.kwarg is not None:
        yield arguments.kwarg, f"`**{arguments.kwarg.arg}`"
    if vars(function).get("type_params"):  # from Python 3.12 on
        yield function, "a function with type parameters"


def _default(reading: Reading, node: ast.expr) -> ir.Constant:
    before = len(reading.faults)
    value = reading.expression(node)
    if isinstance(value, ir.Unary) and value.operator == "-":
        number = value.operand.value if isinstance(value.operand, ir.Constant) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            value = ir.Constant(value=-number)
    if not isinstance(value, ir.Constant):
        if len(reading.faults) == before:
            reading.refuse(
                node,
                "parameter",
                f"the default `{reading.quote(node)}` is no number, text, truth value or None",
                "Use None, and set the value inside: `if xs is None: xs = []`.",
            )
        value = ir.Constant(value=None)
    reading.nodes[id(value)] = node
    return value
