"""The shortest way through a composite: which children a run calls at the least."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentkit.composites import ir
from agentkit.composites.checking.constants import never_runs
from agentkit.composites.ir import Block, Call, Expression, Program

Weigh = Callable[[str], int]
"""How many primitive calls a child stands for, by its name."""


@dataclass(frozen=True, slots=True)
class _Path:
    """A way through a part of a program: what its calls weigh, and the calls in order."""

    weight: int = 0
    calls: tuple[Call, ...] = ()

    def then(self, other: _Path) -> _Path:
        if not other.calls:
            return self
        if not self.calls:
            return other
        return _Path(self.weight + other.weight, self.calls + other.calls)


_NOTHING = _Path()


@dataclass(frozen=True, slots=True)
class _Ways:
    """The shortest way to each of the ends that a block can come to; None where it can not."""

    through: _Path | None = None
    returned: _Path | None = None
    broken: _Path | None = None
    continued: _Path | None = None


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
        >>> from agentkit.composites.ir import Conditional, Name, Parameter, Return
        >>> f, g = Call(child="f"), Call(child="g")
        >>> choice = Conditional(test=Name(name="x"), then=f, otherwise=g)
        >>> program = Program(parameters=(Parameter(name="x"),), body=(Return(value=choice),))
        >>> [call.child for call in shortest_path(program, {"f": 3, "g": 1}.__getitem__)]
        ['g']

    Cost: one visit of each node; joins are merged, not multiplied.
    """
    ways = _Measure(weigh).block(program.body)
    path = _lightest(ways.returned, ways.through)
    return () if path is None else path.calls


def _lightest(*paths: _Path | None) -> _Path | None:
    found = [path for path in paths if path is not None]
    return min(found, key=lambda path: path.weight) if found else None


def _after(first: _Path, second: _Path | None) -> _Path | None:
    return None if second is None else first.then(second)


class _Measure:
    """One walk over a program."""

    def __init__(self, weigh: Weigh) -> None:
        self._weigh = weigh

    def block(self, block: Block) -> _Ways:
        """The ways through statements one after the other."""
        ways = _Ways(through=_NOTHING)
        for statement in block:
            if ways.through is None:
                break
            before, here = ways.through, self._statement(statement)
            ways = _Ways(
                through=_after(before, here.through),
                returned=_lightest(ways.returned, _after(before, here.returned)),
                broken=_lightest(ways.broken, _after(before, here.broken)),
                continued=_lightest(ways.continued, _after(before, here.continued)),
            )
        return ways

    def _statement(self, statement: ir.Statement) -> _Ways:
        match statement:
            case ir.Assign(value=value) | ir.Update(value=value) | ir.Do(call=value):
                return _Ways(through=self.expression(value))
            case ir.Return(value=value):
                return _Ways(returned=self.expression(value))
            case ir.If():
                return self._if(statement)
            case ir.For():
                return self._for(statement)
            case ir.Break():
                return _Ways(broken=_NOTHING)
            case ir.Continue():
                return _Ways(continued=_NOTHING)

    def _if(self, statement: ir.If) -> _Ways:
        """A chain of elifs is walked in a loop: it may be longer than the stack is deep."""
        passed = _NOTHING
        ends: list[_Ways] = []
        rest: Block = (statement,)
        while len(rest) == 1 and isinstance(rest[0], ir.If):
            passed = passed.then(self.expression(rest[0].test))
            ends.append(_shifted(passed, self.block(rest[0].then)))
            rest = rest[0].otherwise
        ends.append(_shifted(passed, self.block(rest)))
        return _Ways(
            through=_lightest(*(end.through for end in ends)),
            returned=_lightest(*(end.returned for end in ends)),
            broken=_lightest(*(end.broken for end in ends)),
            continued=_lightest(*(end.continued for end in ends)),
        )

    def _for(self, statement: ir.For) -> _Ways:
        source = self.expression(statement.source)
        if never_runs(statement.source):
            return _Ways(through=source)
        body = self.block(statement.body)
        once = _lightest(body.through, body.continued, body.broken)
        return _Ways(through=_after(source, once), returned=_after(source, body.returned))

    def expression(self, expression: Expression) -> _Path:
        """The lightest way to the value of an expression."""
        match expression:
            case ir.Call(arguments=arguments):
                inputs = self._all(argument.value for argument in arguments)
                return inputs.then(_Path(self._weigh(expression.child), (expression,)))
            case ir.Boolean(operands=operands):
                return self.expression(operands[0])
            case ir.Compare(operands=operands):
                return self._all(operands[:2])
            case ir.Conditional():
                test = self.expression(expression.test)
                then, otherwise = map(self.expression, (expression.then, expression.otherwise))
                return test.then(then if then.weight <= otherwise.weight else otherwise)
            case ir.Comprehension():
                return self._comprehension(expression)
            case _:
                return self._all(_operands(expression))

    def _comprehension(self, node: ir.Comprehension) -> _Path:
        source = self.expression(node.source)
        if never_runs(node.source):
            return source
        if node.conditions:
            return source.then(self.expression(node.conditions[0]))
        key = _NOTHING if node.key is None else self.expression(node.key)
        return source.then(key).then(self.expression(node.element))

    def _all(self, expressions: Iterable[Expression]) -> _Path:
        path = _NOTHING
        for expression in expressions:
            path = path.then(self.expression(expression))
        return path


def _shifted(passed: _Path, ways: _Ways) -> _Ways:
    return _Ways(
        through=_after(passed, ways.through),
        returned=_after(passed, ways.returned),
        broken=_after(passed, ways.broken),
        continued=_after(passed, ways.continued),
    )


def _operands(expression: Expression) -> Iterable[Expression]:
    """The expressions right inside one whose every part is evaluated, in order of evaluation."""
    if isinstance(expression, ir.DictLiteral):
        for entry in zip(expression.keys, expression.values, strict=True):
            yield from entry
        return
    for part in ir.parts(expression):
        if isinstance(part, ir.Argument):
            yield part.value
        else:
            yield part  # type: ignore[misc]  # an expression holds expressions and arguments only
