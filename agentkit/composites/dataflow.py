"""Static analysis of a program: constants, unused results, the shortest path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.language import Block, Call, Expression, Program
from agentkit.tools.tool import Tool

# --- constants and unused results -----------------------------------------------------------------


def is_constant(node: Expression) -> bool:
    """Whether an expression comes out the same in every run: it reads nothing and calls nothing."""
    return not any(isinstance(part, ir.Name | ir.Call) for part in ir.walk(node))


def dead_calls(program: Program, children: Mapping[str, Tool]) -> Iterator[Call]:
    """Calls of children that change nothing, whose results nobody needs.

    A variable is needed when it is read where it matters: by a result, a test, the source of a
    loop, a call that may change something, or an assignment to another variable that is needed.

    Args:
        program: The program.
        children: Its children by their name in the library; of others nothing is known.
    """
    idle = {name for name, tool in children.items() if _is_read_only(tool)}
    if not idle:
        return
    needed: set[str] = set()
    assignments: list[tuple[tuple[str, ...], set[str], list[Call]]] = []
    for node in ir.statements(program.body):
        value = _value(node)
        if value is None:
            continue
        parts = [*ir.walk(value)]
        reads = {part.name for part in parts if isinstance(part, ir.Name)}
        calls = [part for part in parts if isinstance(part, ir.Call)]
        is_idle = all(call.child in idle for call in calls)
        if is_idle and isinstance(node, ir.Assign | ir.Update):
            targets = node.targets if isinstance(node, ir.Assign) else (node.target,)
            assignments.append((targets, reads, calls))
        elif isinstance(node, ir.Do) and node.call.child in idle:
            yield from calls if is_idle else [node.call]
            needed |= set() if is_idle else reads
        else:
            needed |= reads
    before = None
    while before != needed:
        before = set(needed)
        for targets, reads, _ in assignments:
            if not needed.isdisjoint(targets):
                needed |= reads
    for targets, _, calls in assignments:
        if needed.isdisjoint(targets):
            yield from calls


def _is_read_only(tool: Tool) -> bool:
    return tool.definition.signature.effects.is_read_only


def _value(node: ir.Statement) -> Expression | None:
    """The expression that a statement evaluates itself."""
    match node:
        case ir.Assign(value=value) | ir.Update(value=value) | ir.Return(value=value):
            return value
        case ir.If(test=value) | ir.For(source=value) | ir.Do(call=value):
            return value
    return None


# --- the shortest way -----------------------------------------------------------------------------

Weigh = Callable[[str], int]
"""The number of primitive calls behind a child, by its name."""


@dataclass(frozen=True, slots=True)
class _Path:
    """A way through a part of a program: what its calls weigh, and the calls in order."""

    weight: int = 0
    calls: tuple[Call, ...] = ()

    def then(self, other: _Path) -> _Path:
        if not self.calls:
            return other
        return _Path(self.weight + other.weight, self.calls + other.calls)


_NOTHING = _Path()
_Ways: TypeAlias = dict[str, _Path]
"""The shortest way to each end that a block can come to: ``through``, ``returned``, ``broken``,
``continued``."""


def shortest_path(program: Program, weigh: Weigh) -> tuple[Call, ...]:
    """The calls of children on the lightest way through a program, in order of evaluation.

    Only what cannot be avoided counts, so that no composite gains by code that seldom runs:

    * a sequence adds up;
    * of the branches of ``if``, and of a conditional expression, the lighter one is taken;
      ``return``, ``break`` and ``continue`` end a way where they stand;
    * ``and``, ``or`` and a chain of comparisons stop as early as they may: after the first
      operand, or after the first two;
    * the body of a loop, and the element of a comprehension, counts once, but not at all when
      there is plainly nothing to go over; a condition of a comprehension is an ``if`` around what
      follows it.

    CoCoDA (section 3.1) counts straight-line bodies only, where this is the same.

    Args:
        program: The body of a composite.
        weigh: The number of primitive calls behind a child.

    Returns:
        The calls; of several equally light ways, that of the branch which is written first.

    Example:
        >>> from agentkit.composites.language import Conditional, Name, Parameter, Return
        >>> f, g = Call(child="f"), Call(child="g")
        >>> choice = Conditional(test=Name(name="x"), then=f, otherwise=g)
        >>> program = Program(parameters=(Parameter(name="x"),), body=(Return(value=choice),))
        >>> [call.child for call in shortest_path(program, {"f": 3, "g": 1}.__getitem__)]
        ['g']

    Cost: one visit of each node; joins are merged, not multiplied.
    """
    ways = _Measure(weigh).block(program.body)
    path = _lightest([ways.get("returned"), ways.get("through")])
    return () if path is None else path.calls


def _lightest(paths: Iterable[_Path | None]) -> _Path | None:
    found = [path for path in paths if path is not None]
    return min(found, key=lambda path: path.weight) if found else None


def _joined(many: Iterable[_Ways]) -> _Ways:
    """The lightest way to each end."""
    joined: _Ways = {}
    for ways in many:
        for end, path in ways.items():
            joined[end] = min(joined.get(end, path), path, key=lambda one: one.weight)
    return joined


def _behind(passed: _Path, ways: _Ways) -> _Ways:
    """The ways with what is passed before them."""
    return {end: passed.then(path) for end, path in ways.items()}


class _Measure:
    """One walk over a program."""

    def __init__(self, weigh: Weigh) -> None:
        self._weigh = weigh

    def block(self, block: Block) -> _Ways:
        """The ways through statements one after the other."""
        ways: _Ways = {"through": _NOTHING}
        for statement in block:
            before = ways.pop("through", None)
            if before is None:
                break
            ways = _joined([ways, _behind(before, self._statement(statement))])
        return ways

    def _statement(self, statement: ir.Statement) -> _Ways:
        match statement:
            case ir.Assign(value=value) | ir.Update(value=value) | ir.Do(call=value):
                return {"through": self.expression(value)}
            case ir.Return(value=value):
                return {"returned": self.expression(value)}
            case ir.If():
                return self._if(statement)
            case ir.For():
                return self._for(statement)
            case ir.Break():
                return {"broken": _NOTHING}
            case ir.Continue():
                return {"continued": _NOTHING}

    def _if(self, statement: ir.If) -> _Ways:
        """A chain of elifs is walked in a loop: it may be longer than the stack is deep."""
        passed = _NOTHING
        ends: list[_Ways] = []
        rest: Block = (statement,)
        while len(rest) == 1 and isinstance(rest[0], ir.If):
            passed = passed.then(self.expression(rest[0].test))
            ends.append(_behind(passed, self.block(rest[0].then)))
            rest = rest[0].otherwise
        ends.append(_behind(passed, self.block(rest)))
        return _joined(ends)

    def _for(self, statement: ir.For) -> _Ways:
        source = self.expression(statement.source)
        if _is_empty(statement.source):
            return {"through": source}
        body = self.block(statement.body)
        once = _lightest([body.get("through"), body.get("continued"), body.get("broken")])
        ends = {"through": once, "returned": body.get("returned")}
        return _behind(source, {end: path for end, path in ends.items() if path is not None})

    def expression(self, expression: Expression) -> _Path:
        """The lightest way to the value of an expression."""
        match expression:
            case ir.Call(child=child):
                inputs = self._all(ir.operands(expression))
                return inputs.then(_Path(self._weigh(child), (expression,)))
            case ir.Boolean(operands=operands):
                return self.expression(operands[0])
            case ir.Compare(operands=operands):
                return self._all(operands[:2])
            case ir.Conditional(test=test, then=then, otherwise=otherwise):
                ways = [self._all([test, then]), self._all([test, otherwise])]
                return min(ways, key=lambda path: path.weight)
            case ir.Comprehension(source=source):
                inside = ir.within(expression)
                if _is_empty(source):
                    return self.expression(source)
                return self._all([source, *(inside[:1] if expression.conditions else inside)])
            case _:
                return self._all(ir.operands(expression))

    def _all(self, expressions: Iterable[Expression]) -> _Path:
        path = _NOTHING
        for expression in expressions:
            path = path.then(self.expression(expression))
        return path


def _is_empty(source: Expression) -> bool:
    """Whether a loop plainly has nothing to go over: such calls do not count."""
    match source:
        case ir.ListLiteral(items=()) | ir.TupleLiteral(items=()) | ir.DictLiteral(keys=()):
            return True
    return source == ir.Constant(value="")
