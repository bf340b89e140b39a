"""Statements to closures, for programs whose children all answer at once.

A closure returns None when the next statement follows, or a signal: the loop is left, its next
turn begins, or the program has its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.interpreter.failures import FAILURES, fail
from agentkit.composites.interpreter.frames import METER, RESULT, Evaluate, Frame
from agentkit.composites.interpreter.guard import Guard
from agentkit.composites.interpreter.lowering import ExpressionLowering, binary
from agentkit.composites.interpreter.meter import out_of_fuel
from agentkit.composites.interpreter.weights import SCALARS

Signal: TypeAlias = str | None
Run: TypeAlias = Callable[[Frame], Signal]

BREAK, CONTINUE, RETURN = "break", "continue", "return"


class StatementLowering:
    """Lowers the statements of one program."""

    def __init__(self, expressions: ExpressionLowering) -> None:
        self._expressions = expressions

    def block(self, block: ir.Block) -> Run:
        """Statements one after the other, paid for as a whole when the first one begins."""
        outside, self._expressions.nodes = self._expressions.nodes, 0
        steps = tuple(self.statement(statement) for statement in block)
        cost = 1 + len(steps) + self._expressions.nodes
        self._expressions.nodes = outside
        place = next((found for found in map(first_expression, block) if found), None)

        def run(frame: Frame) -> Signal:
            meter = frame[METER]
            meter.fuel -= cost
            if meter.fuel < 0:
                fail(frame, place, out_of_fuel(meter))
            for step in steps:
                signal = step(frame)
                if signal is not None:
                    return signal
            return None

        return run

    def statement(self, node: ir.Statement) -> Run:
        """One statement."""
        return _LOWERINGS[type(node)](self, node)

    def assign(self, node: ir.Assign) -> Run:
        """``x = value`` or ``x, y = value``."""
        value = self._expressions.lower(node.value)
        if len(node.targets) == 1:
            place = self._expressions.slots.of(node.targets[0])

            def run_one(frame: Frame) -> None:
                frame[place] = value(frame)

            return run_one
        bind = self._expressions.bind(node.targets, node.value)

        def run(frame: Frame) -> None:
            bind(frame, value(frame))

        return run

    def update(self, node: ir.Update) -> Run:
        """``x += value``."""
        place = self._expressions.slots.of(node.target)
        changed = updated(node, place, self._expressions.lower(node.value))

        def run(frame: Frame) -> None:
            frame[place] = changed(frame)

        return run

    def do(self, node: ir.Do) -> Run:
        """A bare call."""
        call = self._expressions.lower(node.call)

        def run(frame: Frame) -> None:
            call(frame)

        return run

    def branch(self, node: ir.If) -> Run:
        """``if``."""
        test = self._expressions.lower(node.test)
        then = self.block(node.then)
        if not node.otherwise:
            return lambda frame: then(frame) if test(frame) else None
        otherwise = self.block(node.otherwise)
        return lambda frame: then(frame) if test(frame) else otherwise(frame)

    def loop(self, node: ir.For) -> Run:
        """``for``."""
        source = self._expressions.iterate(node.source)
        bind = self._expressions.bind(node.targets, node.source)
        body = self.block(node.body)

        def run(frame: Frame) -> Signal:
            for item in source(frame):
                bind(frame, item)
                signal = body(frame)
                if signal is BREAK:
                    break
                if signal is RETURN:
                    return signal
            return None

        return run

    def finish(self, node: ir.Return) -> Run:
        """``return``."""
        return finished(node, self._expressions.lower(node.value))

    def leave(self, node: ir.Break | ir.Continue) -> Run:
        """``break`` and ``continue``."""
        signal = BREAK if isinstance(node, ir.Break) else CONTINUE
        return lambda _frame: signal


def updated(node: ir.Update, place: int, value: Evaluate) -> Evaluate:
    """The new value of an augmented assignment."""
    written = ir.Binary(operator=node.operator, left=ir.Name(name=node.target), right=node.value)

    def current(frame: Frame) -> Any:
        if type(frame[place]) is list and node.operator in ("+", "*"):
            message = (
                f"`{node.target} {node.operator}= ...` would change a list that others may hold; "
                f"write `{node.target} = {node.target} {node.operator} ...`"
            )
            fail(frame, written, Guard("in_place_list", message))
        return frame[place]

    return binary(written, node.operator, current, value)


def finished(node: ir.Return, value: Evaluate) -> Run:
    """Keep the result, when it is one that may be handed over."""

    def run(frame: Frame) -> Signal:
        result = frame[RESULT] = value(frame)
        if type(result) not in SCALARS:
            try:
                frame[METER].cross(result)
            except FAILURES as error:
                fail(frame, node.value, error)
        return RETURN

    return run


def first_expression(node: ir.Statement) -> ir.Expression | None:
    """The expression that a statement begins with: what it assigns, tests or runs over."""
    for part in ir.parts(node):
        if isinstance(part, ir.EXPRESSIONS):
            return part  # type: ignore[return-value]  # one of the expressions
    return None


_LOWERINGS: Mapping[type, Callable[[StatementLowering, Any], Run]] = {
    ir.Assign: StatementLowering.assign,
    ir.Update: StatementLowering.update,
    ir.Do: StatementLowering.do,
    ir.If: StatementLowering.branch,
    ir.For: StatementLowering.loop,
    ir.Return: StatementLowering.finish,
    ir.Break: StatementLowering.leave,
    ir.Continue: StatementLowering.leave,
}
