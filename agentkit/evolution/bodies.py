"""Whether two composites are the same program, whatever they call their variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from agentkit.tools.composite import ir
from agentkit.tools.composite.codec import program_from_json
from agentkit.tools.definition import ToolDefinition

Part = TypeVar("Part")

_BINDERS = (ir.Assign, ir.For, ir.Comprehension)


def same_program(
    candidate: ToolDefinition, known: ToolDefinition, mapping: Mapping[str, str]
) -> str:
    """Why the two do the same by their text alone; empty when the text does not show it.

    Args:
        candidate: A composite.
        known: A composite, or a tool that the candidate may only pass its arguments on to.
        mapping: For each parameter of the candidate, the one of the other tool that it means.
    """
    program = program_from_json(candidate.body) if candidate.body is not None else None
    if program is None:
        return ""
    if _passes_on(program, known.name, mapping):
        return f"it only passes its arguments on to {known.name!r}"
    if known.body is None:
        return ""
    if _body(program, mapping) == _body(program_from_json(known.body), {}):
        return "it is the same program"
    return ""


def _passes_on(program: ir.Program, child: str, mapping: Mapping[str, str]) -> bool:
    if len(program.body) != 1 or not isinstance(program.body[0], ir.Return):
        return False
    call = program.body[0].value
    if not isinstance(call, ir.Call) or call.child != child:
        return False
    passed = {
        argument.value.name: argument.name
        for argument in call.arguments
        if isinstance(argument.value, ir.Name)
    }
    return passed == dict(mapping) and len(call.arguments) == len(passed)


def _body(program: ir.Program, mapping: Mapping[str, str]) -> ir.Block:
    """The statements with parameters and variables under names that do not depend on the author."""
    names = {p.name: f"parameter {mapping.get(p.name, p.name)}" for p in program.parameters}
    for node in ir.walk(program):
        for bound in _bound_by(node):
            names.setdefault(bound, f"variable {len(names)}")
    return tuple(_renamed(statement, names) for statement in program.body)


def _bound_by(node: ir.Node) -> tuple[str, ...]:
    if isinstance(node, _BINDERS):
        return node.targets
    return (node.target,) if isinstance(node, ir.Update) else ()


def _renamed(part: Part, names: Mapping[str, str]) -> Part:
    if isinstance(part, tuple):
        return tuple(_renamed(item, names) for item in part)  # type: ignore[return-value]  # same shape
    if isinstance(part, ir.Name):
        return replace(part, name=names.get(part.name, part.name))
    if not hasattr(part, "__dataclass_fields__"):
        return part
    changed: dict[str, Any] = {
        field.name: _renamed(getattr(part, field.name), names)
        for field in fields(part)  # type: ignore[arg-type]  # checked above
    }
    if isinstance(part, _BINDERS):
        changed["targets"] = tuple(names[target] for target in part.targets)
    if isinstance(part, ir.Update):
        changed["target"] = names[part.target]
    return replace(part, **changed)  # type: ignore[type-var]  # checked above
