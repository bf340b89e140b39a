"""What each expression of a program can be, and which calls can not go well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.faults import Fault
from agentkit.composites.inference.known import (
    BOOLEAN,
    STRING,
    arithmetic,
    builtin_shape,
    element_of,
    looked_up,
    may_have_none,
    method_shape,
    signed,
    unpacked,
)
from agentkit.composites.inference.mismatch import mismatch
from agentkit.composites.inference.narrowing import narrowed
from agentkit.composites.inference.schemas import shape_of_schema
from agentkit.composites.inference.shape import (
    ANYTHING,
    NEVER,
    Shape,
    array_of,
    array_with,
    join,
    of_constant,
)
from agentkit.tools.tool import Tool

Names: TypeAlias = Mapping[str, Shape]
"""What each variable can be at one point of a program."""


class Expressions:
    """Reads expressions, and notes what can not go well.

    Attributes:
        faults: Certain misfits, in the order in which they were met.
        is_silent: Whether faults are left for a later look, when more is known.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.faults: list[Fault] = []
        self.is_silent = False
        self._tools = tools
        self._results: dict[str, Shape] = {}

    def shape(self, node: ir.Expression, names: Names) -> Shape:
        """What an expression can be."""
        return _READERS[type(node)](self, node, names)

    def shapes(self, nodes: tuple[ir.Expression, ...], names: Names) -> list[Shape]:
        """What each of several expressions can be."""
        return [self.shape(node, names) for node in nodes]

    def report(self, fault: Fault) -> None:
        """Note a fault, unless this is a first look."""
        if not self.is_silent:
            self.faults.append(fault)

    def call(self, node: ir.Call, names: Names) -> Shape:
        """What a child gives; its arguments are checked against its L1."""
        tool = self._tools.get(node.child)
        for argument in node.arguments:
            given = self.shape(argument.value, names)
            if tool is not None:
                self._check_argument(tool, argument, given)
        return ANYTHING if tool is None else self._result(tool)

    def _check_argument(self, tool: Tool, argument: ir.Argument, given: Shape) -> None:
        signature = tool.definition.signature
        rule = signature.properties.get(argument.name)
        why = mismatch(given, rule, signature.parameters) if rule is not None else ""
        if why:
            self.report(
                Fault(
                    argument.value,
                    "argument_type",
                    f"`{argument.name}` of `{tool.name}` can not take this: {why}",
                    f"`{argument.name}` is declared as {_shown(rule)}.",
                )
            )

    def _result(self, tool: Tool) -> Shape:
        found = self._results.get(tool.name)
        if found is None:
            schema = tool.definition.signature.result
            found = ANYTHING if schema is None else shape_of_schema(schema, schema)
            self._results[tool.name] = found
        return found


def _shown(schema: Any) -> str:
    rules = {key: rule for key, rule in schema.items() if key not in {"default", "description"}}
    return f"{rules!s:.200}"


def _constant(_: Expressions, node: ir.Constant, __: Names) -> Shape:
    return of_constant(node.value)


def _name(_: Expressions, node: ir.Name, names: Names) -> Shape:
    return names.get(node.name, ANYTHING)


def _builtin(reader: Expressions, node: ir.Builtin, names: Names) -> Shape:
    keywords = {keyword.name: reader.shape(keyword.value, names) for keyword in node.keywords}
    return builtin_shape(node.function, reader.shapes(node.arguments, names), keywords)


def _method(reader: Expressions, node: ir.Method, names: Names) -> Shape:
    receiver = reader.shape(node.receiver, names)
    return method_shape(receiver, node.method, reader.shapes(node.arguments, names))


def _unary(reader: Expressions, node: ir.Unary, names: Names) -> Shape:
    return signed(node.operator, reader.shape(node.operand, names))


def _binary(reader: Expressions, node: ir.Binary, names: Names) -> Shape:
    left = reader.shape(node.left, names)
    return arithmetic(node.operator, left, reader.shape(node.right, names))


def _compare(reader: Expressions, node: ir.Compare, names: Names) -> Shape:
    reader.shapes(node.operands, names)
    return BOOLEAN


def _boolean(reader: Expressions, node: ir.Boolean, names: Names) -> Shape:
    """Each operand is met only when those before it were true (``and``) or false (``or``)."""
    goes_on = node.operator == "and"
    found: list[Shape] = []
    current: Names | None = names
    for operand in node.operands:
        if current is None:
            break
        shape = reader.shape(operand, current)
        is_last = operand is node.operands[-1]
        found.append(shape if goes_on or is_last else shape.without("null"))
        current = narrowed(current, operand, truth=goes_on)
    return join(found)


def _conditional(reader: Expressions, node: ir.Conditional, names: Names) -> Shape:
    reader.shape(node.test, names)
    found = []
    for branch, truth in ((node.then, True), (node.otherwise, False)):
        inside = narrowed(names, node.test, truth=truth)
        if inside is not None:
            found.append(reader.shape(branch, inside))
    return join(found)


def _sequence(reader: Expressions, node: ir.ListLiteral | ir.TupleLiteral, names: Names) -> Shape:
    return array_with(reader.shapes(node.items, names))


def _dict(reader: Expressions, node: ir.DictLiteral, names: Names) -> Shape:
    keys = reader.shapes(node.keys, names)
    values = reader.shapes(node.values, names)
    known = {
        key.constant[0]: value
        for key, value in zip(keys, values, strict=True)
        if key.constant is not None and isinstance(key.constant[0], str)
    }
    if len(known) < len(keys):  # a key that is worked out may be any of them
        return Shape(kinds=frozenset({"object"}), others=join(values))
    constants = {key: value.constant[0] for key, value in known.items() if value.constant}
    return Shape(
        kinds=frozenset({"object"}),
        properties=known,
        required=frozenset(known),
        others=NEVER,
        constant=(constants,) if len(constants) == len(known) else None,
    )


def _index(reader: Expressions, node: ir.Index, names: Names) -> Shape:
    value = reader.shape(node.value, names)
    index = reader.shape(node.index, names)
    key = index.constant[0] if index.constant is not None else None
    if isinstance(key, str) and value.lacks(key):
        known = ", ".join(repr(name) for name in value.properties) or "none at all"
        message = f"there is no key {key!r} here"
        reader.report(Fault(node.index, "argument_type", message, f"The keys are {known}."))
        return ANYTHING
    return looked_up(value, index)


def _slice(reader: Expressions, node: ir.Slice, names: Names) -> Shape:
    value = reader.shape(node.value, names)
    for bound in (node.start, node.stop, node.step):
        if bound is not None:
            reader.shape(bound, names)
    if value.kinds == {"array"}:
        return array_of(value.item, may_be_empty=True)
    return STRING if value.kinds == {"string"} else ANYTHING


def _format(reader: Expressions, node: ir.Format, names: Names) -> Shape:
    reader.shapes(node.parts, names)
    return STRING


def _comprehension(reader: Expressions, node: ir.Comprehension, names: Names) -> Shape:
    source = reader.shape(node.source, names)
    inside: Names | None = {**names, **bound(node.targets, element_of(source))}
    for condition in node.conditions:
        if inside is not None:
            reader.shape(condition, inside)
            inside = narrowed(inside, condition, truth=True)
    element = NEVER if inside is None else reader.shape(node.element, inside)
    if node.key is not None:
        if inside is not None:
            reader.shape(node.key, inside)
        return Shape(kinds=frozenset({"object"}), others=element)
    return array_of(element, may_be_empty=bool(node.conditions) or may_have_none(source))


def bound(targets: tuple[str, ...], item: Shape) -> dict[str, Shape]:
    """What the targets of an assignment or a loop are."""
    if len(targets) == 1:
        return {targets[0]: item}
    return dict(zip(targets, unpacked(item, len(targets)), strict=True))


_READERS: Mapping[type, Callable[[Expressions, Any, Names], Shape]] = {
    ir.Constant: _constant,
    ir.Name: _name,
    ir.Call: Expressions.call,
    ir.Builtin: _builtin,
    ir.Method: _method,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Compare: _compare,
    ir.Boolean: _boolean,
    ir.Conditional: _conditional,
    ir.ListLiteral: _sequence,
    ir.TupleLiteral: _sequence,
    ir.DictLiteral: _dict,
    ir.Index: _index,
    ir.Slice: _slice,
    ir.Format: _format,
    ir.Comprehension: _comprehension,
}
