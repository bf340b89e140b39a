"""What can be told of a program before it runs: constants, unused results, the shortest way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.guards import ACTIVATION, FIRST_SLOT, METER, OUTERMOST, Frame, Meter
from agentkit.composites.interpreter import FrameLayout, Lowering
from agentkit.composites.language import Block, Call, Expression, Program
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError
from agentkit.tools.tool import Tool

# --- constants ------------------------------------------------------------------------------------

UNKNOWN: Final = object()
"""The value of an expression that depends on arguments, or that is not worked out."""

_SMALL = CompositeLimits(fuel=300, integer_bits=512, string_chars=1_000, deadline_seconds=None)
"""Only small values are worked out; others count as unknown."""

_FOLDED = (ir.Constant, ir.Unary, ir.Binary, ir.Compare, ir.Boolean, ir.Conditional)
_PASSING = frozenset({"enumerate", "list", "sorted", "zip"})
"""Functions that give no items when they are given none."""


def truth(node: Expression) -> bool | None:
    """Whether an expression is true or false whatever the arguments; None when it depends.

    An ``or`` with an operand that is always true is always true, and so on for ``and``.
    """
    match node:
        case ir.Boolean(operator=operator, operands=operands):
            truths = [truth(operand) for operand in operands]
            decides = operator == "or"
            if decides in truths:
                return decides
            return None if None in truths else not decides
        case ir.Unary(operator="not", operand=operand):
            inner = truth(operand)
            return None if inner is None else not inner
        case ir.Conditional(test=test, then=then, otherwise=otherwise):
            decided = truth(test)
            return None if decided is None else truth(then if decided else otherwise)
        case ir.ListLiteral(items=items) | ir.TupleLiteral(items=items):
            return bool(items)
        case ir.DictLiteral(keys=keys):
            return bool(keys)
        case ir.Format(parts=parts):  # any text in it makes it more than empty
            return True if any(isinstance(part, ir.Constant) for part in parts) else None
    value = _folded(node)
    return None if value is UNKNOWN else bool(value)


def never_runs(source: Expression) -> bool:
    """Whether a loop over ``source`` has no items, whatever the arguments.

    Such a loop is allowed, but the calls in it do not count in the flat size of a composite.
    """
    match source:
        case ir.ListLiteral(items=items) | ir.TupleLiteral(items=items):
            return not items
        case ir.DictLiteral(keys=keys):
            return not keys
        case ir.Builtin(function="range", arguments=arguments):
            bounds = [_folded(argument) for argument in arguments]
            known = all(type(bound) is int for bound in bounds) and 0 not in bounds[2:]
            return known and not range(*bounds)
        case ir.Builtin(function=function, arguments=arguments):
            given = arguments if function == "zip" else arguments[:1]
            return function in _PASSING and any(map(never_runs, given))
    return bool(_folded(source) == "")


def _folded(node: Expression) -> Any:
    """The value of an expression made of constants; ``UNKNOWN`` for any other."""
    if isinstance(node, ir.Constant):
        return node.value
    if not all(isinstance(part, _FOLDED) for part in ir.walk(node)):
        return UNKNOWN
    frame: Frame = [None] * FIRST_SLOT
    frame[METER], frame[ACTIVATION] = Meter(_SMALL), OUTERMOST
    try:
        return Lowering(FrameLayout(())).lower(node)(frame)
    except CompositeRunError:
        return UNKNOWN


# --- unused results -------------------------------------------------------------------------------

Names: TypeAlias = frozenset[str]
Uses: TypeAlias = tuple[Names, tuple[Call, ...]]
"""What a statement itself reads and calls."""


def dead_calls(
    program: Program, uses: Mapping[int, Uses], children: Mapping[str, Tool]
) -> list[Call]:
    """Calls of children that change nothing, whose results nobody needs.

    A variable is live where its value can still reach something that matters: a result, a test, the
    source of a loop, a call that may change something. What only feeds a dead variable is dead too
    (Nielson, Nielson and Hankin, Principles of Program Analysis, on faint variables).

    Args:
        program: The program.
        uses: What each of its statements uses, by the statement's ``id``.
        children: Its children by their name in the library.
    """
    dead: list[Call] = []
    tops: dict[int, Names] = {}  # what is live before each turn of a loop

    def is_read_only(call: Call) -> bool:
        tool = children.get(call.child)
        return tool is not None and tool.definition.signature.effects.is_read_only

    def before_block(statements: Block, live: Names, again: Names) -> Names:
        for statement in reversed(statements):
            live = before(statement, live, again)
        return live

    def before(node: ir.Statement, live: Names, again: Names) -> Names:
        """What is live before a statement; ``again`` is live where the loop around it begins."""
        if isinstance(node, ir.Break | ir.Continue):
            return again
        reads, calls = uses[id(node)]
        is_idle = all(map(is_read_only, calls))
        match node:
            case ir.Assign(targets=targets) if live.isdisjoint(targets) and is_idle:
                dead.extend(calls)
                return live
            case ir.Update(target=target) if target not in live and is_idle:
                dead.extend(calls)
                return live
            case ir.Assign(targets=targets):
                return live.difference(targets) | reads
            case ir.Do(call=call) if is_read_only(call):
                dead.extend(calls if is_idle else [call])
                return live if is_idle else live | reads
            case ir.If(then=then, otherwise=otherwise):
                ways = [before_block(block, live, again) for block in (then, otherwise)]
                return ways[0] | ways[1] | reads
            case ir.For(targets=targets, source=source, body=body):
                turn = tops.get(id(node), frozenset()) | live
                if _is_lazy(source):  # evaluated further before each turn
                    turn |= reads
                top = before_block(body, turn, turn).difference(targets) | turn
                tops[id(node)] = top
                return top | reads
            case ir.Return():
                return reads
        return live | reads

    known = None
    while known != tops:  # each pass but the last finds a name live in a loop
        known, dead = dict(tops), []
        before_block(program.body, frozenset(), frozenset())
    return dead


def _is_lazy(source: Expression) -> bool:
    """Whether what a loop runs over is a generator, perhaps behind ``enumerate``."""
    if isinstance(source, ir.Builtin) and source.function in ir.ITERATORS:
        return any(map(_is_lazy, source.arguments))
    return ir.is_generator(source)


# --- the shortest way -----------------------------------------------------------------------------

Weigh = Callable[[str], int]
"""How many primitive calls a child stands for, by its name."""


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

    Only what can not be avoided counts, so that no composite gains by code that seldom runs:

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
        weigh: How many primitive calls a child stands for.

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
        if never_runs(statement.source):
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
                if never_runs(source):
                    return self.expression(source)
                return self._all([source, *(inside[:1] if expression.conditions else inside)])
            case _:
                return self._all(ir.operands(expression))

    def _all(self, expressions: Iterable[Expression]) -> _Path:
        path = _NOTHING
        for expression in expressions:
            path = path.then(self.expression(expression))
        return path
