"""Programs with children that have to be waited for: which statements run side by side.

There is one rule. A statement whose calls are all known to change nothing *floats*: it becomes a
task, and the program goes on at once; the variables that it assigns hold a promise in the meantime.
Inside, each call starts as soon as its own arguments have their values. Any other call is a *wall*:
it waits until every statement before it has succeeded, runs alone, and only then does the program
go on. From this follows

* calls that may change something keep exactly the order of the program, and happen only when
  everything before them has succeeded;
* ``if``, ``for``, ``break`` and ``return`` wait for the values that decide them, so that nothing is
  called that the program would not call. The one exception: a read-only call may have started
  before an earlier statement turns out to fail;
* a loop or a branch as a whole floats when nothing inside is a wall and no way leads out of it; the
  turns of such a loop overlap as far as their variables allow.

Tasks are kept in program order and waited for in that order, so the error that surfaces is the
first one in the program, not the first one in time. When a run ends, for whatever reason, it has
cancelled its tasks and waited for them. A task works on its own copy of the frame, taken when the
program passed the statement: later assignments do not reach it.

Limits are shared by all that runs. A run that fails for another reason may therefore name a limit
instead, when statements that started early have used it up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.interpreter.awaiting import AwaitingLowering
from agentkit.composites.interpreter.failures import fail
from agentkit.composites.interpreter.frames import METER, Frame
from agentkit.composites.interpreter.meter import out_of_fuel
from agentkit.composites.interpreter.promises import Promise, resolve
from agentkit.composites.interpreter.slow_items import Items, branched, one_by_one
from agentkit.composites.interpreter.statements import (
    BREAK,
    RETURN,
    Run,
    Signal,
    StatementLowering,
    finished,
    first_expression,
    updated,
)
from agentkit.composites.interpreter.tasks import Tasks


class Scope:
    """Statements that run one after the other, and the tasks that they have started.

    Attributes:
        frame: Their variables.
        tasks: What floats, in program order.
    """

    __slots__ = ("frame", "tasks")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.tasks = Tasks(frame[METER])

    async def complete(self, work: Callable[[Scope], Awaitable[Signal]]) -> Signal:
        """Do the work and wait for all that it has started."""
        try:
            signal = await work(self)
            await self.tasks.settle()
        except Exception:
            await self.tasks.settle()  # what failed before comes first
            raise
        finally:
            await self.tasks.cancel()
        return signal

    async def float(self, step: Step) -> None:
        """Start a step beside what follows it, or do it now when there are too many tasks."""
        if not self.tasks.has_room:
            await resolve(self.frame, step.reads)
            await step.go(self)
            return
        task = self.tasks.start(_apart(branched(self.frame), step))
        for place in step.writes:
            self.frame[place] = Promise(task, place)


async def _apart(frame: Frame, step: Step) -> Frame:
    """One step on its own frame; gives the frame with the values that it has assigned."""

    async def work(scope: Scope) -> Signal:
        await resolve(frame, step.reads)
        return await step.go(scope)

    await Scope(frame).complete(work)
    await resolve(frame, step.writes)
    return frame


Go: TypeAlias = Callable[[Scope], Awaitable[Signal]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One statement, lowered.

    Attributes:
        go: Does it.
        at_once: Does it, when it does not wait.
        floats: Whether it may run beside what follows it.
        is_wall: Whether everything before it has to have succeeded.
        reads: Variables that need their values before it begins; empty for one that waits, which
            asks for each value where it needs it.
        writes: Variables that it may assign.
    """

    go: Go
    at_once: Run | None
    floats: bool
    is_wall: bool
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class SchedulingLowering:
    """Lowers the statements of one program."""

    def __init__(self, expressions: AwaitingLowering) -> None:
        self._expressions = expressions
        self._at_once = StatementLowering(expressions)

    def program(self, block: ir.Block) -> Callable[[Frame], Awaitable[Signal]]:
        """A coroutine function that runs a program on its frame."""
        go = self.block(block)

        async def run(frame: Frame) -> Signal:
            return await Scope(frame).complete(go)

        return run

    def block(self, block: ir.Block) -> Go:
        """Statements one after the other."""
        outside, self._expressions.nodes = self._expressions.nodes, 0
        steps = tuple(self.step(statement) for statement in block)
        cost = 1 + len(steps) + self._expressions.nodes
        self._expressions.nodes = outside
        place = next((found for found in map(first_expression, block) if found), None)

        async def go(scope: Scope) -> Signal:
            frame = scope.frame
            meter = frame[METER]
            meter.fuel -= cost
            if meter.fuel < 0:
                fail(frame, place, out_of_fuel(meter))
            for step in steps:
                signal = await _take(scope, step)
                if signal is not None:
                    return signal
            return None

        return go

    def step(self, node: ir.Statement) -> Step:
        """One statement."""
        waits = self._expressions.waits(node)
        at_once = None if waits else self._at_once.statement(node)
        floats = self._expressions.floats(node) and not leads_out(node)
        whole = not waits or not isinstance(node, ir.If | ir.For)
        decides = node if whole else first_expression(node)
        reads = () if waits else self._places(read_names(node))
        assert decides is not None
        return Step(
            go=self._go(node) if at_once is None else _now(at_once),
            at_once=at_once,
            floats=floats,
            is_wall=not self._expressions.floats(decides),
            reads=reads,
            writes=self._places(assigned_names(node)),
        )

    def _places(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._expressions.slots.of(name) for name in dict.fromkeys(names))

    def _go(self, node: ir.Statement) -> Go:
        ways: dict[type, Callable[[Any], Go]] = {
            ir.If: self._branch,
            ir.For: self._loop,
            ir.Return: self._return,
            ir.Assign: self._assign,
            ir.Update: self._update,
            ir.Do: lambda node: self._then(node.call, lambda _place: lambda _frame: None),
        }
        return ways[type(node)](node)

    def _return(self, node: ir.Return) -> Go:
        return self._then(node.value, lambda place: finished(node, itemgetter(place)))

    def _then(
        self, value: ir.Expression, follow: Callable[[int], Run], *, needed: Sequence[int] = ()
    ) -> Go:
        """Wait for a value, then for what else is ``needed``, then do something."""
        part = self._expressions.part(value)
        run = follow(part.place)

        async def go(scope: Scope) -> Signal:
            scope.frame[part.place] = await part.value(scope.frame)
            await resolve(scope.frame, needed)
            return run(scope.frame)

        return go

    def _assign(self, node: ir.Assign) -> Go:
        bind = self._expressions.bind(node.targets, node.value)
        return self._then(node.value, lambda place: lambda frame: bind(frame, frame[place]))

    def _update(self, node: ir.Update) -> Go:
        target = self._expressions.slots.of(node.target)

        def follow(place: int) -> Run:
            changed = updated(node, target, itemgetter(place))

            def run(frame: Frame) -> None:
                frame[target] = changed(frame)

            return run

        return self._then(node.value, follow, needed=(target,))

    def _branch(self, node: ir.If) -> Go:
        test = self._expressions.part(node.test)
        then, otherwise = self.block(node.then), self.block(node.otherwise)

        async def go(scope: Scope) -> Signal:
            chosen = then if await test.value(scope.frame) else otherwise
            return await chosen(scope)

        return go

    def _loop(self, node: ir.For) -> Go:
        source = self._expressions.items(node.source)
        bind = self._expressions.bind(node.targets, node.source)
        body = self.block(node.body)
        reads = self._places(read_names(node.source))

        async def go(scope: Scope) -> Signal:
            frame = scope.frame
            items: Items = await source(frame)
            async for item in one_by_one(items):
                bind(frame, item)
                signal = await body(scope)
                if signal is BREAK:
                    break
                if signal is RETURN:
                    return signal
                await resolve(frame, reads)  # a generator reads them when it goes on
            return None

        return go


async def _take(scope: Scope, step: Step) -> Signal:
    """Do a step, or let it float."""
    frame = scope.frame
    if scope.tasks.failed or step.is_wall:
        await scope.tasks.settle()
    if step.floats:
        if step.at_once is None or any(type(frame[place]) is Promise for place in step.reads):
            await scope.float(step)
        else:
            step.at_once(frame)
        return None
    await resolve(frame, step.reads)
    return await step.go(scope) if step.at_once is None else step.at_once(frame)


def _now(run: Run) -> Go:
    async def go(scope: Scope) -> Signal:
        return run(scope.frame)

    return go


def leads_out(node: ir.Statement, *, in_loop: bool = False) -> bool:
    """Whether a statement may end the block that it stands in."""
    match node:
        case ir.Return():
            return True
        case ir.Break() | ir.Continue():
            return not in_loop
        case ir.For(body=body):
            return any(leads_out(inner, in_loop=True) for inner in body)
        case ir.If(then=then, otherwise=otherwise):
            return any(leads_out(inner, in_loop=in_loop) for inner in (*then, *otherwise))
        case _:
            return False


def read_names(node: ir.Node) -> Sequence[str]:
    """Names of the variables that a part of a program reads."""
    reads = [part.name for part in ir.walk(node) if isinstance(part, ir.Name)]
    return reads + [part.target for part in ir.walk(node) if isinstance(part, ir.Update)]


def assigned_names(node: ir.Statement) -> Sequence[str]:
    """Names of the variables that a statement may assign."""
    names: list[str] = []
    for part in ir.walk(node):
        if isinstance(part, ir.Assign | ir.For):
            names.extend(part.targets)
        elif isinstance(part, ir.Update):
            names.append(part.target)
    return names
