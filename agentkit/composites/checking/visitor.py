"""One walk over the expressions of a program: names, calls, iterators, comprehensions, tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.checking.calls import (
    Hints,
    builtin_faults,
    child_faults,
    method_faults,
)
from agentkit.composites.checking.constants import truth
from agentkit.composites.checking.names import name_fault
from agentkit.composites.faults import HOLE, Fault
from agentkit.composites.language import BUILTINS, CONSUMERS, ITERATORS, VIEWS
from agentkit.composites.nearest import did_you_mean
from agentkit.composites.problems import SourceCode
from agentkit.composites.rendering import ExpressionWriter
from agentkit.tools.tool import Tool


class Taker(IntEnum):
    """What the place of an expression may be given: values, iterators too, or generators too."""

    VALUE = 0
    ITERATOR = 1
    GENERATOR = 2


Visit: TypeAlias = "Callable[[Visitor, Any, Taker], None]"


class Visitor:
    """Walks expressions and notes faults, and for each statement what it reads and calls.

    Attributes:
        faults: What is wrong so far.
        variables: Every name that the function sets, with the first node that sets it.
        bound: Names that are set on every path to where the walk stands.
        reads: Names that the statement at hand reads.
        calls: Child calls of the statement at hand.
        called: The children that are called.
        targets: Loop variables of the comprehensions around.
        hints: What wrong names of children and their parameters may have meant.
    """

    def __init__(
        self,
        variables: Mapping[str, ir.Node | None],
        children: Mapping[str, Tool] | None,
        own: str,
        tool_names: Collection[str] = (),
    ) -> None:
        self.faults: list[Fault] = []
        self.variables = variables
        self.bound: set[str] = set()
        self.reads: set[str] = set()
        self.calls: list[ir.Call] = []
        self.called: set[str] = set()
        self.children = children
        self.own = own
        self.hints = Hints()
        self._tool_names = tool_names
        self.targets: tuple[str, ...] = ()
        self._comprehensions = 0

    def fault(self, node: object, code: SourceCode, message: str, advice: str) -> None:
        """Note a fault."""
        self.faults.append(Fault(node, code, message, advice))

    def visit(self, node: ir.Expression, taker: Taker = Taker.VALUE) -> None:
        """Look at an expression and all that is in it."""
        _VISITS[type(node)](self, node, taker)

    def test(self, node: ir.Expression) -> None:
        """Look at an expression that decides which way to go."""
        self.visit(node)
        known = truth(node)
        if known is not None:
            self.fault(
                node,
                "constant_condition",
                f"this condition is always {'true' if known else 'false'}",
                "Keep the part that runs, or test something that the arguments decide.",
            )

    def read(self, name: str, node: ir.Node) -> None:
        """Look at a name that is read."""
        if name in self.bound:
            self.reads.add(name)
        elif name == HOLE:
            return
        elif name in self.variables:
            self.reads.add(name)
            self.fault(
                node,
                "possibly_unbound",
                f"`{name}` is not set on every way to here",
                "Set it before the if or the loop, for example to None, 0 or [].",
            )
        else:
            self._unknown_name(name, node)

    def comprehension(self, node: ir.Comprehension, taker: Taker) -> None:
        """Look at a comprehension: its source in the function, the rest in a scope of its own."""
        if self._comprehensions:
            self.fault(
                node,
                "nested_comprehension",
                "a comprehension stands inside another one",
                "Build the inner one in a for statement, or assign it to a variable first.",
            )
        elif node.kind == "generator" and taker is not Taker.GENERATOR:
            self.fault(
                node,
                "iterator_escapes",
                "a generator may only be the one argument of a function that consumes it",
                "Write a list comprehension, in square brackets.",
            )
        self._comprehensions += 1
        self.visit(node.source, Taker.ITERATOR)
        outer, self.targets = self.targets, self.targets + node.targets
        for target in node.targets:
            self._check_target(target, node)
        for condition in node.conditions:
            self.test(condition)
        if node.key is not None:
            self.visit(node.key)
        self.visit(node.element)
        self.targets = outer
        self._comprehensions -= 1

    def iterator(self, node: ir.Expression, what: str, taker: Taker) -> None:
        """Refuse an iterator where a value is wanted."""
        if taker is Taker.VALUE:
            self.fault(
                node,
                "iterator_escapes",
                f"{what} is handed out piece by piece and may only stand where it is consumed",
                f"Write list(...) around {what} to keep it as a list.",
            )

    def _check_target(self, target: str, node: ir.Comprehension) -> None:
        if target == HOLE:
            return
        fault = name_fault(target, node, self.own)
        if fault is not None:
            self.faults.append(fault)
        elif target in self.variables:
            self.fault(
                node,
                "name_shadowing",
                f"the comprehension sets `{target}`, which is a variable of the function",
                f"Use another name, such as `{target}_item`.",
            )

    def _unknown_name(self, name: str, node: ir.Node) -> None:
        if name in BUILTINS:
            message = f"`{name}` is a function and can only be called"
            advice = f"Call it, `{name}(...)`; functions are no values here."
        elif name in self._tool_names:
            message = f"`{name}` is a tool and can only be called"
            advice = f"Call it, `{name}(...)`; tools are no values here."
        else:
            message = f"there is no variable `{name}`"
            advice = did_you_mean(name, self.variables) or (
                f"Add it to the parameters, or write it in quotes if it is a text: '{name}'."
            )
        self.fault(node, "unknown_name", message, advice)


def _name(visitor: Visitor, node: ir.Name, _: Taker) -> None:
    if node.name not in visitor.targets:
        visitor.read(node.name, node)


def _comprehension(visitor: Visitor, node: ir.Comprehension, taker: Taker) -> None:
    visitor.comprehension(node, taker)


def _nothing(visitor: Visitor, node: ir.Constant, taker: Taker) -> None:
    """A literal can not be wrong here."""


def _call(visitor: Visitor, node: ir.Call, _: Taker) -> None:
    visitor.calls.append(node)
    visitor.called.add(node.child)
    for argument in node.arguments:
        visitor.visit(argument.value)
    visitor.faults.extend(child_faults(node, visitor.children, visitor.own, visitor.hints))


def _builtin(visitor: Visitor, node: ir.Builtin, taker: Taker) -> None:
    visitor.faults.extend(builtin_faults(node))
    if node.function in ITERATORS:
        visitor.iterator(node, f"`{node.function}(...)`", taker)
    for place, argument in enumerate(node.arguments):
        visitor.visit(argument, _taker(node, place, argument))
    known = BUILTINS[node.function].keywords if node.keywords and node.function in BUILTINS else ()
    for keyword in node.keywords:
        if keyword.name in known:
            visitor.visit(keyword.value)


def _taker(node: ir.Builtin, place: int, argument: ir.Expression) -> Taker:
    function, alone = node.function, len(node.arguments) == 1
    if function == "zip":
        return Taker.ITERATOR
    if function == "len":
        counted = isinstance(argument, ir.Method) or (
            isinstance(argument, ir.Builtin) and argument.function == "range"
        )
        return Taker.ITERATOR if counted else Taker.VALUE
    if function in CONSUMERS and alone:
        return Taker.GENERATOR
    return Taker.ITERATOR if place == 0 and function in {"sum", "enumerate"} else Taker.VALUE


def _method(visitor: Visitor, node: ir.Method, taker: Taker) -> None:
    visitor.faults.extend(method_faults(node))
    if node.method in VIEWS:
        visitor.iterator(node, f"`.{node.method}()`", taker)
    visitor.visit(node.receiver)
    joined = node.method == "join" and len(node.arguments) == 1
    for argument in node.arguments:
        visitor.visit(argument, Taker.GENERATOR if joined else Taker.VALUE)


def _unary(visitor: Visitor, node: ir.Unary, _: Taker) -> None:
    visitor.visit(node.operand)


def _binary(visitor: Visitor, node: ir.Binary, _: Taker) -> None:
    visitor.visit(node.left)
    visitor.visit(node.right)


def _boolean(visitor: Visitor, node: ir.Boolean, _: Taker) -> None:
    for operand in node.operands:
        visitor.visit(operand)


def _compare(visitor: Visitor, node: ir.Compare, _: Taker) -> None:
    for place, operator in enumerate(node.operators):
        if operator in {"is", "is not"} and not any(
            map(_is_none, node.operands[place : place + 2])
        ):
            equal = "==" if operator == "is" else "!="
            visitor.fault(
                node,
                "unknown_construct",
                f"`{operator}` compares with None only",
                f"Use `{equal}` to compare values.",
            )
    for operand in node.operands:
        visitor.visit(operand)


def _is_none(node: ir.Expression) -> bool:
    return isinstance(node, ir.Constant) and node.value is None


def _conditional(visitor: Visitor, node: ir.Conditional, _: Taker) -> None:
    visitor.test(node.test)
    visitor.visit(node.then)
    visitor.visit(node.otherwise)


def _items(visitor: Visitor, node: ir.ListLiteral | ir.TupleLiteral, _: Taker) -> None:
    for item in node.items:
        visitor.visit(item)


def _dict(visitor: Visitor, node: ir.DictLiteral, _: Taker) -> None:
    for key, value in zip(node.keys, node.values, strict=True):
        visitor.visit(key)
        visitor.visit(value)


def _index(visitor: Visitor, node: ir.Index, _: Taker) -> None:
    visitor.visit(node.value)
    visitor.visit(node.index)


def _slice(visitor: Visitor, node: ir.Slice, _: Taker) -> None:
    for part in (node.value, node.start, node.stop, node.step):
        if part is not None:
            visitor.visit(part)


def _format(visitor: Visitor, node: ir.Format, _: Taker) -> None:
    for part in node.parts:
        visitor.visit(part)
    if all(isinstance(part, ir.Constant | ir.Name) for part in node.parts):
        return
    writer = ExpressionWriter()
    writer.text(node)
    if not writer.is_exact:
        visitor.fault(
            node,
            "format_specification",
            "a text inside the braces of an f-string needs a backslash or too many quotes",
            "Assign it to a variable before, and put the variable into the braces.",
        )


_VISITS: Mapping[type, Visit] = {
    ir.Constant: _nothing,
    ir.Name: _name,
    ir.Call: _call,
    ir.Builtin: _builtin,
    ir.Method: _method,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Compare: _compare,
    ir.Boolean: _boolean,
    ir.Conditional: _conditional,
    ir.ListLiteral: _items,
    ir.TupleLiteral: _items,
    ir.DictLiteral: _dict,
    ir.Index: _index,
    ir.Slice: _slice,
    ir.Format: _format,
    ir.Comprehension: _comprehension,
}
