"""Types across the calls of a composite: its children's L1 against what flows into them.

Only certain misfits are told: text where a number is declared, a key that an object can not have,
a constant outside an ``enum``. What is not declared may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.composites import ir
from agentkit.composites.faults import Fault, Place, placed
from agentkit.composites.inference.expressions import Expressions, Names, bound
from agentkit.composites.inference.known import arithmetic, element_of
from agentkit.composites.inference.mismatch import mismatch
from agentkit.composites.inference.narrowing import narrowed
from agentkit.composites.inference.schemas import schema_of_shape, shape_of_schema
from agentkit.composites.inference.shape import ANYTHING, Shape, join, of_constant
from agentkit.errors import SourceProblem
from agentkit.messages import JsonObject
from agentkit.tools.tool import Tool

_PASSES = 6
"""Looks at a loop before the variables that still change count as anything."""

_PRECISE_LOOPS = 2
"""Loops within loops beyond this are looked at once, so that the work stays linear."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeFaults:
    """What the types of a program tell.

    Attributes:
        faults: Certain misfits.
        result: Schema of what the program returns; None when nothing is known of it.
    """

    faults: tuple[Fault, ...]
    result: JsonObject | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeReport:
    """``TypeFaults`` with places in a text.

    Attributes:
        problems: Certain misfits, in the order of the text.
        result: Schema of what the program returns; None when nothing is known of it.
    """

    problems: tuple[SourceProblem, ...]
    result: JsonObject | None


def type_check(
    program: ir.Program,
    parameters: JsonObject,
    tools: Mapping[str, Tool],
    *,
    result: JsonObject | None = None,
    place: Callable[[object], Place] = lambda _: (1, 1),
) -> TypeReport:
    r"""Check what flows into each child against the child's L1.

    Args:
        program: A program that keeps the static rules; those are not checked again.
        parameters: The schema of its arguments.
        tools: Its children by their name in the library; one that is missing may take and give
            anything.
        result: The schema of its result; None when it is not declared.
        place: Line and column of a node of the program.

    Example:
        >>> from agentkit import tool
        >>> from agentkit.composites.parser import parse
        >>> @tool
        ... def double(x: float) -> float:
        ...     '''Twice a number.'''
        ...     return 2 * x
        >>> parsed = parse("def f(name):\n    return double(name)\n", {"double": double})
        >>> schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        >>> type_check(parsed.program, schema, {"double": double}).problems[0].message
        '`x` of `double` can not take this: it is text'
    """
    found = type_faults(program, parameters, tools, result=result)
    return TypeReport(problems=placed(found.faults, place), result=found.result)


def type_faults(
    program: ir.Program,
    parameters: JsonObject,
    tools: Mapping[str, Tool],
    *,
    result: JsonObject | None = None,
) -> TypeFaults:
    """The same before the faults are given a place."""
    properties = parameters.get("properties", {})
    names = {
        parameter.name: _parameter(parameter, properties.get(parameter.name), parameters)
        for parameter in program.parameters
    }
    flow = _Flow(Expressions(tools), result)
    flow.block(program.body, names)
    returned = join(flow.returned)
    return TypeFaults(faults=tuple(flow.expressions.faults), result=schema_of_shape(returned))


def _parameter(parameter: ir.Parameter, schema: Any, root: JsonObject) -> Shape:
    declared = ANYTHING if schema is None else shape_of_schema(schema, root)
    if parameter.default is None:
        return declared
    return join([declared, of_constant(parameter.default.value)])


class _Flow:
    """One way through the statements of a program, all branches at once."""

    def __init__(self, expressions: Expressions, result: JsonObject | None) -> None:
        self.expressions = expressions
        self.returned: list[Shape] = []
        self._result = result
        self._loops: list[list[Names]] = []  # variables at each break and continue, by loop

    def block(self, statements: ir.Block, names: Names) -> Names | None:
        """The variables behind a block; None when it always leaves."""
        current: Names | None = names
        for statement in statements:
            if current is None:
                return None
            current = self._statement(statement, current)
        return current

    def _statement(self, node: ir.Statement, names: Names) -> Names | None:
        match node:
            case ir.Assign():
                return {**names, **bound(node.targets, self.expressions.shape(node.value, names))}
            case ir.Update():
                value = self.expressions.shape(node.value, names)
                old = names.get(node.target, ANYTHING)
                return {**names, node.target: arithmetic(node.operator, old, value)}
            case ir.Do():
                self.expressions.call(node.call, names)
                return names
            case ir.If():
                return self._if(node, names)
            case ir.For():
                return self._for(node, names)
            case ir.Return():
                self._return(node, names)
            case ir.Break() | ir.Continue():
                self._loops[-1].append(names)
        return None

    def _return(self, node: ir.Return, names: Names) -> None:
        shape = self.expressions.shape(node.value, names)
        self.returned.append(shape)
        why = "" if self._result is None else mismatch(shape, self._result, self._result)
        if why:
            message = f"this is returned, but it does not fit the declared result: {why}"
            rules = {
                key: rule for key, rule in (self._result or {}).items() if key != "description"
            }
            advice = f"The result is declared as {rules!s:.200}."
            self.expressions.report(Fault(node.value, "result_type", message, advice))

    def _if(self, node: ir.If, names: Names) -> Names | None:
        self.expressions.shape(node.test, names)
        behind = []
        for branch, truth in ((node.then, True), (node.otherwise, False)):
            inside = narrowed(names, node.test, truth=truth)
            left = None if inside is None else self.block(branch, inside)
            if left is not None:
                behind.append(left)
        return _merged(behind) if behind else None

    def _for(self, node: ir.For, names: Names) -> Names:
        item = element_of(self.expressions.shape(node.source, names))
        if item.is_never:
            return names
        was_silent, returned = self.expressions.is_silent, len(self.returned)
        self.expressions.is_silent = True
        entry, left = self._settled(node, names, item)
        self.expressions.is_silent = was_silent
        if not was_silent:  # now that all is known, once more for the faults
            del self.returned[returned:]
            _, left = self._turn(node, entry, item)
        return _merged([entry, *left])

    def _settled(self, node: ir.For, names: Names, item: Shape) -> tuple[Names, list[Names]]:
        """The variables at the start of any turn, and at its breaks."""
        entry = names
        passes = _PASSES if len(self._loops) < _PRECISE_LOOPS else 0
        for _ in range(passes):
            ends, left = self._turn(node, entry, item)
            grown = _merged([entry, *ends])
            if grown == entry:
                return entry, left
            entry = grown
        entry = {**entry, **dict.fromkeys(_assigned(node.body), ANYTHING)}
        return entry, self._turn(node, entry, item)[1]

    def _turn(self, node: ir.For, entry: Names, item: Shape) -> tuple[list[Names], list[Names]]:
        """The variables at the ends of one turn, and at its breaks."""
        self._loops.append([])
        end = self.block(node.body, {**entry, **bound(node.targets, item)})
        jumps = self._loops.pop()
        return [*jumps, *([] if end is None else [end])], jumps


def _assigned(block: ir.Block) -> Iterable[str]:
    for statement in block:
        for node in ir.walk(statement):
            if isinstance(node, ir.Assign | ir.For):
                yield from node.targets
            elif isinstance(node, ir.Update):
                yield node.target


def _merged(ways: Iterable[Names]) -> Names:
    """What the variables can be when several ways meet."""
    merged: dict[str, Shape] = {}
    for names in ways:
        for name, shape in names.items():
            known = merged.get(name)
            merged[name] = shape if known is None else join([known, shape])
    return merged
