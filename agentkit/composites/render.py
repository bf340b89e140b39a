"""Programs as text: the one text that stands for a program, and that parses back to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.faults import Place
from agentkit.composites.rendering import ExpressionWriter
from agentkit.composites.written import written

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of text: how far it is indented, the statement on it, and its expressions."""

    depth: int
    text: str
    statement: ir.Statement | None = None
    expressions: tuple[ir.Expression, ...] = ()


def render(
    program: ir.Program,
    name: str = "composite",
    *,
    docstring: str = "",
    annotations: Mapping[str, str] | None = None,
    returns: str = "",
) -> str:
    """A program as a Python function.

    ``parse`` reads the same program back from it, with the same digest. A tool whose name Python
    can not write is written as ``parse`` reads it (``get_user`` for ``get user``).

    Args:
        program: The program.
        name: The function's name.
        docstring: Its documentation, without indentation.
        annotations: Type of each parameter, as text.
        returns: Type of the result, as text.

    Example:
        >>> from agentkit.composites.parser import parse
        >>> text = "def twice( x ) :  return (2*x)  # a number"
        >>> print(render(parse(text, {}).program, name="twice", annotations={"x": "int"}), end="")
        def twice(x: int):
            return 2 * x
    """
    header = f"def {written(name)}({_parameters(program.parameters, annotations or {})})"
    lines = [f"{header} -> {returns}:" if returns else f"{header}:"]
    if docstring:
        lines.extend(_docstring(docstring))
    lines.extend(_INDENT * line.depth + line.text for line in _block(program.body, 1))
    return "\n".join(lines) + "\n"


def render_expression(expression: ir.Expression) -> str:
    """An expression as text.

    Example:
        >>> from agentkit.composites.parser import parse_expression
        >>> render_expression(parse_expression("((a)+b)*2 >= (a)", ["a", "b"]))
        '(a + b) * 2 >= a'
    """
    return ExpressionWriter().text(expression)


def line_of(program: ir.Program, node: ir.Node) -> int:
    """The line, from 1, on which ``render`` writes a node of ``program`` (this very object).

    0 when the node is no part of the program. A docstring given to ``render`` moves all lines
    but the first down.
    """
    return places_of(program).get(id(node), (0, 0))[0]


def places_of(program: ir.Program) -> dict[int, Place]:
    """Line and column of the statement that holds each node, by the node's ``id``."""
    places: dict[int, Place] = {id(program): (1, 1)}
    for parameter in program.parameters:
        places.update((id(node), (1, 1)) for node in ir.walk(parameter))
    for number, line in enumerate(_block(program.body, 1), start=2):
        place = number, len(_INDENT) * line.depth + 1
        places.setdefault(id(line.statement), place)
        for expression in line.expressions:
            for node in ir.walk(expression):
                places.setdefault(id(node), place)
    return places


def _parameters(parameters: tuple[ir.Parameter, ...], annotations: Mapping[str, str]) -> str:
    made: list[str] = []
    optional = starred = False
    for parameter in parameters:
        if parameter.default is None and optional and not starred:
            made.append("*")  # Python wants what has no default first, except behind a star
            starred = True
        optional = optional or parameter.default is not None
        made.append(_parameter(parameter, annotations.get(parameter.name, "")))
    return ", ".join(made)


def _parameter(parameter: ir.Parameter, annotation: str) -> str:
    text = f"{parameter.name}: {annotation}" if annotation else parameter.name
    if parameter.default is None:
        return text
    default = render_expression(parameter.default)
    return f"{text} = {default}" if annotation else f"{text}={default}"


def _docstring(text: str) -> Iterator[str]:
    safe = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if safe.endswith('"') and not safe.endswith('\\"'):
        safe = f'{safe[:-1]}\\"'
    lines = f'"""{safe}'.split("\n")
    if len(lines) > 1:
        lines.append('"""')
    else:
        lines[0] += '"""'
    yield from (f"{_INDENT}{line}".rstrip() for line in lines)


def _block(statements: ir.Block, depth: int) -> Iterator[_Line]:
    if not statements:
        yield _Line(depth, "pass")
    for statement in statements:
        yield from _WRITERS[type(statement)](statement, depth)


def _assign(node: ir.Assign, depth: int) -> Iterator[_Line]:
    text = f"{', '.join(node.targets)} = {render_expression(node.value)}"
    yield _Line(depth, text, node, (node.value,))


def _update(node: ir.Update, depth: int) -> Iterator[_Line]:
    text = f"{node.target} {node.operator}= {render_expression(node.value)}"
    yield _Line(depth, text, node, (node.value,))


def _do(node: ir.Do, depth: int) -> Iterator[_Line]:
    yield _Line(depth, render_expression(node.call), node, (node.call,))


def _if(node: ir.If, depth: int, word: str = "if") -> Iterator[_Line]:
    yield _Line(depth, f"{word} {render_expression(node.test)}:", node, (node.test,))
    yield from _block(node.then, depth + 1)
    match node.otherwise:
        case ():
            return
        case (ir.If() as only,):
            yield from _if(only, depth, "elif")
        case _:
            yield _Line(depth, "else:")
            yield from _block(node.otherwise, depth + 1)


def _for(node: ir.For, depth: int) -> Iterator[_Line]:
    text = f"for {', '.join(node.targets)} in {render_expression(node.source)}:"
    yield _Line(depth, text, node, (node.source,))
    yield from _block(node.body, depth + 1)


def _break(node: ir.Break, depth: int) -> Iterator[_Line]:
    yield _Line(depth, "break", node)


def _continue(node: ir.Continue, depth: int) -> Iterator[_Line]:
    yield _Line(depth, "continue", node)


def _return(node: ir.Return, depth: int) -> Iterator[_Line]:
    yield _Line(depth, f"return {render_expression(node.value)}", node, (node.value,))


_Write: TypeAlias = Callable[[Any, int], Iterator[_Line]]
_WRITERS: Mapping[type, _Write] = {
    ir.Assign: _assign,
    ir.Update: _update,
    ir.Do: _do,
    ir.If: _if,
    ir.For: _for,
    ir.Break: _break,
    ir.Continue: _continue,
    ir.Return: _return,
}
