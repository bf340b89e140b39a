"""Calls: of children, of the functions and of the methods that the language knows."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from agentkit.composites import advice, ir
from agentkit.composites.checking.calls import parameter_list, recursive_call
from agentkit.composites.language import BUILTINS, METHODS
from agentkit.composites.nearest import did_you_mean
from agentkit.composites.reading.context import ReadExpression, Reading
from agentkit.composites.written import spelled
from agentkit.tools.tool import Tool


def _call(reading: Reading, node: ast.Call) -> ir.Expression:
    function = node.func
    if isinstance(function, ast.Name):
        if function.id in BUILTINS:
            return _builtin(reading, node, function.id)
        return _named_child(reading, node, function.id)
    if isinstance(function, ast.Attribute):
        path = dotted(function)
        tool = reading.tools.get(path) if path else None
        if tool is not None and path.partition(".")[0] not in reading.variables:
            return _child(reading, node, tool)
        return _method(reading, node, function, path)
    _read_arguments(reading, node)
    return reading.refuse(
        node,
        "unknown_construct",
        f"`{reading.quote(function)}` is not a name that can be called",
        "Call a tool or a function of the language by its name.",
    )


def _await(reading: Reading, node: ast.Await) -> ir.Expression:
    made = _call(reading, node.value) if isinstance(node.value, ast.Call) else None
    if isinstance(made, ir.Call) or (made is not None and reading.is_hole(made)):
        return made
    return reading.refuse(
        node, "unknown_construct", "only a call of a tool is awaited", "Drop the `await`."
    )


def _builtin(reading: Reading, node: ast.Call, name: str) -> ir.Expression:
    arguments = reading.expressions(_positional(reading, node))
    keywords = _keywords(reading, node, ())
    if _is_starred(node):  # how many arguments there are is not known
        return reading.hole(node)
    return ir.Builtin(function=name, arguments=arguments, keywords=keywords)


def _method(reading: Reading, node: ast.Call, function: ast.Attribute, path: str) -> ir.Expression:
    name = function.attr
    if name not in METHODS:
        return _unknown_method(reading, node, function, path)
    receiver = reading.expression(function.value)
    arguments = reading.expressions(_positional(reading, node))
    if node.keywords and not _is_starred(node):
        reading.refuse(
            node.keywords[0],
            "wrong_arity",
            f"the method `.{name}()` takes no keywords",
            "Give its arguments by position.",
        )
    if _is_starred(node):
        return reading.hole(node)
    return ir.Method(receiver=receiver, method=name, arguments=arguments)


def _unknown_method(
    reading: Reading, node: ast.Call, function: ast.Attribute, path: str
) -> ir.Expression:
    if path and path.partition(".")[0] not in reading.variables:
        return _unknown_tool(reading, node, path)
    name = function.attr
    reading.expression(function.value)
    _read_arguments(reading, node)
    hint = advice.METHODS.get(name) or did_you_mean(name, METHODS)
    return reading.refuse(
        node,
        "unknown_method",
        f"`{reading.quote(function)}`: there is no method `.{name}()`",
        hint or f"The methods are {', '.join(METHODS)}.",
    )


def _named_child(reading: Reading, node: ast.Call, name: str) -> ir.Expression:
    if name == reading.name:
        _read_arguments(reading, node)
        reading.faults.append(recursive_call(node, name))
        return reading.hole(node)
    tool = reading.tools.get(name)
    if tool is None:
        keys = reading.spelled(name)
        if len(keys) != 1:
            return _unknown_tool(reading, node, name, keys)
        tool = reading.tools[keys[0]]
    return _child(reading, node, tool)


def _unknown_tool(
    reading: Reading, node: ast.Call, name: str, keys: Sequence[str] = ()
) -> ir.Expression:
    _read_arguments(reading, node)
    if keys:
        message = f"`{name}` can be any of the tools {', '.join(map(repr, keys))}"
        hint = "Rename one of them: for `_` stands each character that Python does not allow."
    elif name in reading.variables:
        message = f"`{name}` is a variable and can not be called"
        hint = "Call a tool by its name; functions are no values here."
    else:
        message = f"there is no tool `{name}`"
        hint = advice.FUNCTIONS.get(name.rpartition(".")[2]) or reading.similar(name)
    return reading.refuse(node, "unknown_tool", message, hint)


def _child(reading: Reading, node: ast.Call, tool: Tool) -> ir.Expression:
    reading.children[tool.name] = tool
    properties = tool.definition.signature.properties
    arguments: tuple[ir.Argument, ...] = ()
    if node.args:
        arguments = _bound(reading, node, tool, tuple(properties))
    if node.keywords:
        arguments += _keywords(reading, node, properties)
    if _is_starred(node):
        return reading.hole(node)
    return ir.Call(child=tool.name, arguments=arguments)


def _bound(
    reading: Reading, node: ast.Call, tool: Tool, names: tuple[str, ...]
) -> tuple[ir.Argument, ...]:
    """Positional arguments, with the names that they are bound to."""
    made = []
    for place, value in enumerate(_positional(reading, node)):
        read = reading.expression(value)
        if place < len(names):
            argument = ir.Argument(name=names[place], value=read)
            reading.nodes[id(argument)] = value
            made.append(argument)
        elif place == len(names):
            reading.refuse(
                value,
                "wrong_arity",
                f"`{tool.name}` takes {len(names)} arguments, got {len(node.args)}",
                f"It takes {parameter_list(tool.definition.signature)}.",
            )
    return tuple(made)


def _positional(reading: Reading, node: ast.Call) -> list[ast.expr]:
    values = []
    for value in node.args:
        if isinstance(value, ast.Starred):
            reading.refuse(
                value,
                "unknown_construct",
                "`*` in front of an argument is not in the language",
                "Write the arguments out one by one.",
            )
        else:
            values.append(value)
    return values


def _keywords(reading: Reading, node: ast.Call, known: Collection[str]) -> tuple[ir.Argument, ...]:
    made = []
    for keyword in node.keywords:
        name = keyword.arg
        if name is None:
            reading.refuse(
                keyword,
                "unknown_construct",
                "`**` in front of an argument is not in the language",
                "Write the arguments out by name.",
            )
            continue
        if known and name not in known:
            keys = spelled(name, known)
            name = keys[0] if len(keys) == 1 else name
        argument = ir.Argument(name=name, value=reading.expression(keyword.value))
        reading.nodes[id(argument)] = keyword
        made.append(argument)
    return tuple(made)


def _is_starred(node: ast.Call) -> bool:
    for value in node.args:
        if type(value) is ast.Starred:
            return True
    return any(keyword.arg is None for keyword in node.keywords)


def _read_arguments(reading: Reading, node: ast.Call) -> None:
    """Read the arguments of a call that was refused, for what is wrong with them."""
    reading.expressions(_positional(reading, node))
    _keywords(reading, node, ())


def dotted(node: ast.expr) -> str:
    """``a.b.c`` as text; empty when it is no chain of names."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


READERS: Mapping[type[ast.AST], ReadExpression] = {ast.Call: _call, ast.Await: _await}
"""The readers of calls."""
