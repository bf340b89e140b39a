"""Calls whose results nobody needs.

A variable is live where its value can still reach something that matters: a result, a test, the
source of a loop, a call that may change something. What only feeds a dead variable is dead too
(Nielson, Nielson and Hankin, Principles of Program Analysis, on faint variables).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.checking.flow import Uses
from agentkit.composites.faults import Fault
from agentkit.composites.language import ITERATORS
from agentkit.tools.tool import Tool

Names: TypeAlias = frozenset[str]
Back: TypeAlias = "Callable[[_Liveness, Any, Names], Names]"

_NONE: Names = frozenset()


def dead_calls(program: ir.Program, uses: Uses, children: Mapping[str, Tool]) -> list[Fault]:
    """Calls of children that change nothing, whose results are never used."""
    liveness = _Liveness(uses, children)
    while liveness.pass_over(program.body):  # each pass but the last finds a name live in a loop
        pass
    return [_dead(call) for call in liveness.dead]


def _dead(call: ir.Call) -> Fault:
    return Fault(
        call,
        "dead_call",
        f"the result of `{call.child}` is never used, and the tool changes nothing",
        "Delete the call, or use its result.",
    )


class _Liveness:
    """Walks statements backwards; what is live before a loop is remembered from pass to pass."""

    def __init__(self, uses: Uses, children: Mapping[str, Tool]) -> None:
        self.dead: list[ir.Call] = []
        self._uses = uses
        self._children = children
        self._again: dict[int, Names] = {}
        self._loops: list[tuple[Names, Names]] = []

    def pass_over(self, body: ir.Block) -> bool:
        """Walk once; whether another walk may find more to be live."""
        before = dict(self._again)
        self.dead = []
        self.block(body, _NONE)
        return before != self._again

    def block(self, statements: ir.Block, live: Names) -> Names:
        for statement in reversed(statements):
            live = _BACK[type(statement)](self, statement, live)
        return live

    def reads(self, statement: ir.Statement) -> Names:
        return self._uses[id(statement)][0]

    def assign(self, node: ir.Assign | ir.Update, targets: tuple[str, ...], live: Names) -> Names:
        reads, calls = self._uses[id(node)]
        idle = self._idle(calls)
        if live.isdisjoint(targets) and len(idle) == len(calls):
            self.dead.extend(idle)
            return live
        return live.difference(targets) | reads

    def do(self, node: ir.Do, live: Names) -> Names:
        reads, calls = self._uses[id(node)]
        if not self._is_read_only(node.call.child):
            return live | reads
        idle = self._idle(calls)
        if len(idle) == len(calls):
            self.dead.extend(idle)
            return live
        self.dead.append(node.call)
        return live | reads

    def loop(self, node: ir.For, live: Names) -> Names:
        again = self._again.get(id(node), _NONE) | live
        if _is_lazy(node.source):  # evaluated further before each turn
            again |= self.reads(node)
        self._loops.append((live, again))
        top = self.block(node.body, again).difference(node.targets) | again
        self._loops.pop()
        self._again[id(node)] = top
        return top | self.reads(node)

    def leave(self) -> Names:
        return self._loops[-1][0] if self._loops else _NONE

    def repeat(self) -> Names:
        return self._loops[-1][1] if self._loops else _NONE

    def _idle(self, calls: tuple[ir.Call, ...]) -> list[ir.Call]:
        """The calls whose children are known to change nothing."""
        return [call for call in calls if self._is_read_only(call.child)]

    def _is_read_only(self, child: str) -> bool:
        tool = self._children.get(child)
        return tool is not None and tool.definition.signature.effects.is_read_only


def _is_lazy(source: ir.Expression) -> bool:
    """Whether what a loop runs over is a generator, perhaps behind ``enumerate``."""
    if isinstance(source, ir.Builtin) and source.function in ITERATORS:
        return any(map(_is_lazy, source.arguments))
    return isinstance(source, ir.Comprehension) and source.kind == "generator"


def _assign(liveness: _Liveness, node: ir.Assign, live: Names) -> Names:
    return liveness.assign(node, node.targets, live)


def _update(liveness: _Liveness, node: ir.Update, live: Names) -> Names:
    return liveness.assign(node, (node.target,), live)


def _do(liveness: _Liveness, node: ir.Do, live: Names) -> Names:
    return liveness.do(node, live)


def _if(liveness: _Liveness, node: ir.If, live: Names) -> Names:
    either = liveness.block(node.then, live) | liveness.block(node.otherwise, live)
    return either | liveness.reads(node)


def _for(liveness: _Liveness, node: ir.For, live: Names) -> Names:
    return liveness.loop(node, live)


def _return(liveness: _Liveness, node: ir.Return, _: Names) -> Names:
    return liveness.reads(node)


def _break(liveness: _Liveness, _: ir.Break, __: Names) -> Names:
    return liveness.leave()


def _continue(liveness: _Liveness, _: ir.Continue, __: Names) -> Names:
    return liveness.repeat()


_BACK: Mapping[type, Back] = {
    ir.Assign: _assign,
    ir.Update: _update,
    ir.Do: _do,
    ir.If: _if,
    ir.For: _for,
    ir.Break: _break,
    ir.Continue: _continue,
    ir.Return: _return,
}
