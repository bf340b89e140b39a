"""One walk over the statements of a program: what is set, what is reached, what returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.checking.names import name_fault
from agentkit.composites.checking.visitor import Taker, Visitor
from agentkit.composites.faults import HOLE

Step: TypeAlias = "Callable[[Flow, Any], bool]"

Uses: TypeAlias = Mapping[int, tuple[frozenset[str], tuple[ir.Call, ...]]]
"""What each statement itself reads and calls, by its ``id``."""


class Flow:
    """Walks the statements of a program.

    Attributes:
        visitor: Looks at the expressions and keeps the faults.
        uses: What each statement itself reads and calls.
    """

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.uses: dict[int, tuple[frozenset[str], tuple[ir.Call, ...]]] = {}
        self.loops = 0
        self._set: set[str] = set()

    def block(self, statements: ir.Block) -> bool:
        """Walk a block; whether control can come out at its end."""
        goes_on = True
        is_reported = False
        for statement in statements:
            if not goes_on and not is_reported:
                is_reported = True
                self.visitor.fault(
                    statement,
                    "unreachable_code",
                    "nothing comes here: all ways before end in return, break or continue",
                    "Delete it, or move it before.",
                )
            step = _STEPS[type(statement)]
            goes_on = step(self, statement) and goes_on
        return goes_on

    def evaluate(
        self,
        statement: ir.Statement,
        value: ir.Expression,
        taker: Taker = Taker.VALUE,
        *,
        is_test: bool = False,
    ) -> None:
        """Look at the expression of a statement, and note what it uses."""
        visitor = self.visitor
        visitor.reads, visitor.calls = set(), []
        if isinstance(statement, ir.Update):
            visitor.read(statement.target, statement)
        if is_test:
            visitor.test(value)
        else:
            visitor.visit(value, taker)
        self.uses[id(statement)] = frozenset(visitor.reads), tuple(visitor.calls)

    def bind(self, node: ir.Statement | ir.Parameter, targets: tuple[str, ...]) -> None:
        """Note that a node sets names."""
        visitor = self.visitor
        visitor.bound.update(targets)
        for target in targets:
            if target not in self._set:  # a name is complained about once
                self._set.add(target)
                fault = None if target == HOLE else name_fault(target, node, visitor.own)
                if fault is not None:
                    visitor.faults.append(fault)

    def outside_loop(self, statement: ir.Statement, word: str) -> bool:
        """Look at a ``break`` or ``continue``."""
        if not self.loops:
            self.visitor.fault(
                statement, "syntax", f"`{word}` outside of a loop", "Delete it, or return a value."
            )
        return False


def _assign(flow: Flow, node: ir.Assign) -> bool:
    flow.evaluate(node, node.value)
    flow.bind(node, node.targets)
    return True


def _update(flow: Flow, node: ir.Update) -> bool:
    flow.evaluate(node, node.value)
    flow.bind(node, (node.target,))
    return True


def _do(flow: Flow, node: ir.Do) -> bool:
    flow.evaluate(node, node.call)
    return True


def _return(flow: Flow, node: ir.Return) -> bool:
    flow.evaluate(node, node.value)
    return False


def _if(flow: Flow, node: ir.If) -> bool:
    flow.evaluate(node, node.test, is_test=True)
    visitor = flow.visitor
    before = visitor.bound
    visitor.bound = set(before)
    through = flow.block(node.then)
    after_then, visitor.bound = visitor.bound, before
    around = flow.block(node.otherwise)
    if through and around:
        visitor.bound &= after_then
    elif through:
        visitor.bound = after_then
    return through or around


def _for(flow: Flow, node: ir.For) -> bool:
    flow.evaluate(node, node.source, Taker.ITERATOR)
    visitor = flow.visitor
    before = set(visitor.bound)
    flow.bind(node, node.targets)
    flow.loops += 1
    flow.block(node.body)
    flow.loops -= 1
    visitor.bound = before  # the loop may not run at all
    return True


def _break(flow: Flow, node: ir.Break) -> bool:
    return flow.outside_loop(node, "break")


def _continue(flow: Flow, node: ir.Continue) -> bool:
    return flow.outside_loop(node, "continue")


_STEPS: Mapping[type, Step] = {
    ir.Assign: _assign,
    ir.Update: _update,
    ir.Do: _do,
    ir.If: _if,
    ir.For: _for,
    ir.Break: _break,
    ir.Continue: _continue,
    ir.Return: _return,
}
