"""Schemas of undeclared parameters, from the children that they flow straight into."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agentkit.composites import ir
from agentkit.tools.fit import fits
from agentkit.tools.tool import Tool

_NOT_ABOUT_VALUES = {"default", "description", "examples", "title"}


def parameter_schemas(
    program: ir.Program, undeclared: Collection[str], tools: Mapping[str, Tool]
) -> Mapping[str, dict[str, Any]]:
    """What the children demand of the parameters that reach them unchanged.

    Only calls that every run makes count, and only parameters that are never assigned. A
    parameter that reaches several children has the schema on which they agree.

    Args:
        program: The program.
        undeclared: The parameters without an annotation.
        tools: Its children by their name in the library.
    """
    fixed = {p.name: p for p in program.parameters if p.name in undeclared}
    if not fixed:
        return {}
    for node in ir.walk(program):
        for name in _targets(node):
            fixed.pop(name, None)
    demands: dict[str, list[dict[str, Any]]] = {}
    for call in _certain_calls(program.body):
        for name, demand in _demands(call, tools):
            if name in fixed:
                demands.setdefault(name, []).append(demand)
    agreed = {name: _agreed(found) for name, found in demands.items()}
    return {
        name: schema
        for name, schema in agreed.items()
        if schema and _takes_default(fixed[name], schema)
    }


def _targets(node: ir.Node) -> tuple[str, ...]:
    if isinstance(node, ir.Assign | ir.For):
        return node.targets
    return (node.target,) if isinstance(node, ir.Update) else ()


def _certain_calls(block: ir.Block) -> Iterator[ir.Call]:
    """Calls that are made whichever way the program goes, unless an operation fails."""
    for statement in block:
        match statement:
            case ir.Assign(value=value) | ir.Update(value=value) | ir.Return(value=value):
                yield from _certain(value)
            case ir.Do(call=call):
                yield from _certain(call)
            case ir.If(test=test):
                yield from _certain(test)
                if any(isinstance(node, ir.Return) for node in ir.walk(statement)):
                    return
            case ir.For(source=source):
                yield from _certain(source)
                if any(isinstance(node, ir.Return) for node in ir.walk(statement)):
                    return


def _certain(node: ir.Expression) -> Iterator[ir.Call]:
    waiting: list[ir.Node] = [node]
    while waiting:
        current = waiting.pop()
        match current:
            case ir.Conditional(test=test):
                waiting.append(test)
            case ir.Boolean(operands=operands):
                waiting.append(operands[0])
            case ir.Comprehension(source=source):
                waiting.append(source)
            case ir.Compare(operands=operands):
                waiting.extend(operands[:2])
            case _:
                if isinstance(current, ir.Call):
                    yield current
                waiting.extend(ir.parts(current))


def _demands(call: ir.Call, tools: Mapping[str, Tool]) -> Iterator[tuple[str, dict[str, Any]]]:
    tool = tools.get(call.child)
    properties = tool.definition.signature.properties if tool else {}
    for argument in call.arguments:
        schema = properties.get(argument.name)
        if isinstance(argument.value, ir.Name) and schema is not None and _is_alone(schema):
            bare = {key: rule for key, rule in schema.items() if key not in _NOT_ABOUT_VALUES}
            yield argument.value.name, bare


def _is_alone(schema: Any) -> bool:
    """Whether a schema means the same outside the document that holds it."""
    if isinstance(schema, Mapping):
        return not any(key.startswith("$") for key in schema) and all(
            map(_is_alone, schema.values())
        )
    return not isinstance(schema, list) or all(map(_is_alone, schema))


def _agreed(demands: list[dict[str, Any]]) -> dict[str, Any]:
    """The one demand; of numbers and integers the integers; nothing when they differ else."""
    distinct = [
        demand for at, demand in enumerate(demands) if demand not in demands[:at] and demand
    ]
    if len(distinct) == 1:
        return distinct[0]
    if distinct and all(demand in ({"type": "integer"}, {"type": "number"}) for demand in distinct):
        return {"type": "integer"}
    return {}


def _takes_default(parameter: ir.Parameter, schema: dict[str, Any]) -> bool:
    default = parameter.default
    return default is None or fits(default.value, schema) is not False
