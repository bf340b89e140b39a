"""Calls: of children, of the functions and of the methods that the language knows."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from agentkit.tools.composite import ir
from agentkit.tools.composite.language import BUILTINS
from agentkit.tools.composite.reading.context import ReadExpression, Reading
from agentkit.tools.composite.written import spelled, written
from agentkit.tools.tool import Tool


def _call(reading: Reading, node: ast.Call) -> ir.Expression:
    function = node.func
    if isinstance(function, ast.Name):
        if function.id in BUILTINS:
            return _builtin(reading, node, function.id)
        return _named_child(reading, node, function.id)
    if isinstance(function, ast.Attribute):
        path = _dotted(function)
        tool = reading.tools.get(path) if path else None
        if tool is not None and path.partition(".")[0] not in reading.variables:
            return _child(reading, node, tool)
        return _method(reading, node, function)
    return reading.refuse(
        node,
        "unknown_construct",
        f"`{ast.unparse(function)}` is not a name that can be called",
        "Call a tool or a function of the language by its name.",
    )


def _await(reading: Reading, node: ast.Await) -> ir.Expression:
    made = reading.expression(node.value)
    if isinstance(made, ir.Call) or not isinstance(node.value, ast.Call):
        return made
    return reading.refuse(
        node, "unknown_construct", "only a call of a tool is awaited", "Drop the `await`."
    )


def _builtin(reading: Reading, node: ast.Call, name: str) -> ir.Expression:
    arguments = reading.expressions(_positional(reading, node))
    return ir.Builtin(function=name, arguments=arguments, keywords=_keywords(reading, node, {}))


def _method(reading: Reading, node: ast.Call, function: ast.Attribute) -> ir.Expression:
    receiver = reading.expression(function.value)
    arguments = reading.expressions(_positional(reading, node))
    if node.keywords:
        reading.refuse(
            node.keywords[0],
            "wrong_arity",
            f"the method `{function.attr}` takes no keywords",
            "Give its arguments by position.",
        )
    return ir.Method(receiver=receiver, method=function.attr, arguments=arguments)


def _named_child(reading: Reading, node: ast.Call, name: str) -> ir.Expression:
    tool = reading.tools.get(name) or _spelled_tool(reading, name)
    if tool is not None:
        return _child(reading, node, tool)
    return reading.refuse(node, "unknown_tool", f"there is no tool `{name}`", "")


def _spelled_tool(reading: Reading, name: str) -> Tool | None:
    keys = spelled(name, reading.tools)
    return reading.tools[keys[0]] if len(keys) == 1 else None


def _child(reading: Reading, node: ast.Call, tool: Tool) -> ir.Expression:
    reading.children[tool.name] = tool
    properties = list(tool.definition.signature.properties)
    arguments = []
    for place, value in enumerate(_positional(reading, node)):
        made = ir.Argument(name=properties[place], value=reading.expression(value))
        reading.nodes[id(made)] = value
        arguments.append(made)
    known = {written(name): name for name in properties}
    return ir.Call(child=tool.name, arguments=(*arguments, *_keywords(reading, node, known)))


def _positional(reading: Reading, node: ast.Call) -> list[ast.expr]:
    return node.args


def _keywords(
    reading: Reading, node: ast.Call, known: Mapping[str, str]
) -> tuple[ir.Argument, ...]:
    made = []
    for keyword in node.keywords:
        if keyword.arg is None:
            reading.refuse(keyword, "unknown_construct", "`**`", "")
            continue
        name = known.get(keyword.arg, keyword.arg)
        argument = ir.Argument(name=name, value=reading.expression(keyword.value))
        reading.nodes[id(argument)] = keyword
        made.append(argument)
    return tuple(made)


def _dotted(node: ast.expr) -> str:
    """``a.b.c`` as text; empty when it is no chain of names."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


READERS: Mapping[type[ast.AST], ReadExpression] = {ast.Call: _call, ast.Await: _await}
"""The readers of calls."""
