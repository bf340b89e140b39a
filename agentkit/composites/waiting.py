"""Programs with children that have to be waited for, on the same closures.

A closure cannot wait. So an expression that waits is first taken apart into statements: each call
that is waited for becomes an assignment of its own, whatever Python evaluates before it another,
and ``and``, conditionals, chained comparisons and comprehensions become branches and loops. Then a
coroutine only has to wait between statements, and everything happens in the order of the program.

There is one exception: calls next to each other that are known to change nothing, none of which
needs the result of another, run side by side. What they raise still surfaces in program order, and
when a run ends, for whatever reason, nothing that it has started still runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CoroutineType
from typing import Any, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.children import gathering
from agentkit.composites.functions import method_of
from agentkit.composites.guards import FAILURES, METER, Frame, fail
from agentkit.composites.interpreter import BREAK, RETURN, Lowering, Run, Signal, put
from agentkit.composites.problems import refusal
from agentkit.composites.syntax import render_expression
from agentkit.errors import SourceProblem

Wait: TypeAlias = Callable[[Frame], Coroutine[Any, Any, Signal]]
Begin: TypeAlias = Callable[[Frame], Coroutine[Any, Any, Any]]


class _Held(str):
    """A variable for the value of an expression: written like it, and equal to itself alone."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(frozen=True, kw_only=True, slots=True)
class _Collect:
    """One more item, or entry, of what a comprehension makes."""

    node: ir.Comprehension
    target: str
    parts: tuple[ir.Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _LookUp:
    """Whether a value has a method, which Python finds out before it evaluates the arguments."""

    node: ir.Method


_Steps: TypeAlias = list[Any]  # statements of the language, and the two above
_STOPS: Mapping[str, bool] = {"any": True, "all": False}
"""Functions that want no further item after one of this truth."""


class WaitingLowering(Lowering):
    """Lowers a program, some of whose children have to be waited for."""

    def program(self, block: Sequence[Any]) -> Wait:
        """A coroutine function that runs a block on its frame."""
        apart = [step for node in block for step in self._apart(node)]
        plain: Any = tuple(step for step in block if isinstance(step, ir.STATEMENTS))
        steps, pay = self.counted(
            plain,
            lambda: [
                self._group(group) if group else self.statement(step)
                for step, group in self._grouped(apart)
            ],
        )

        async def run(frame: Frame) -> Signal:
            pay(frame)
            for step in steps:
                signal = step(frame)
                if type(signal) is CoroutineType:
                    signal = await signal
                if signal is not None:
                    return signal  # type: ignore[return-value]  # a coroutine was awaited
            return None

        return run

    def statement(self, node: Any) -> Any:
        """One statement that was taken apart."""
        match node:
            case _Collect():
                return self._collect(node)
            case _LookUp():
                return self._look_up(node.node)
            case ir.If(then=then, otherwise=otherwise) if self._waits(*then, *otherwise):
                test, ways = self.lower(node.test), [self._way(then), self._way(otherwise)]
                return lambda frame: ways[not test(frame)](frame)
            case ir.For(body=body) if self._waits(*body):
                return self._for(node)
            case _:
                return super().statement(node)

    def _way(self, block: ir.Block) -> Run | Wait:
        return self.program(block) if self._waits(*block) else self.block(block)

    def _for(self, node: ir.For) -> Wait:
        source, bind = self.iterate(node.source), self.bind(node.targets, node.source)
        body = self.program(node.body)

        async def run(frame: Frame) -> Signal:
            for item in source(frame):
                bind(frame, item)
                signal = await body(frame)
                if signal is BREAK:
                    break
                if signal is RETURN:
                    return signal
            return None

        return run

    # --- what waits -------------------------------------------------------------------------------

    def _is_awaited(self, node: object) -> bool:
        return isinstance(node, ir.Call) and self._children[node.child].needs_event_loop

    def _waits(self, *nodes: Any) -> bool:
        """Whether a call inside has to be waited for."""
        return any(
            isinstance(node, _Collect | _LookUp) or any(map(self._is_awaited, ir.walk(node)))
            for node in nodes
        )

    # --- statements, taken apart ------------------------------------------------------------------

    def _apart(self, node: Any) -> _Steps:
        """Split a statement so that each part waits for at most one call."""
        match node:
            case ir.Assign(targets=(_,), value=call) | ir.Do(call=call) if self._is_awaited(call):
                steps, call = self._operation(call)
                is_do = isinstance(node, ir.Do)
                return [*steps, replace(node, **{"call" if is_do else "value": call})]
            case ir.If(test=test):
                steps, left = self._left(test)
                return [*steps, replace(node, test=left)]
            case ir.For(source=source) if self._is_slow(source):
                raise _iterator_escapes()
            case ir.For(source=source):
                steps, left = self._left(source)
                return [*steps, replace(node, source=left)]
            case ir.Assign(value=value) | ir.Update(value=value) | ir.Return(value=value):
                steps, left = self._left(value)
                return [*steps, replace(node, value=left)]
            case _:
                return [node]

    def _left(self, node: ir.Expression) -> tuple[_Steps, ir.Expression]:
        """The statements that do the waiting in an expression, and what is left of it."""
        if not self._waits(node):
            return [], node
        match node:
            case ir.Call() if self._is_awaited(node):
                steps, call = self._operation(node)
                return self._held(node, [*steps, call])
            case ir.Boolean(operator=word, operands=operands):
                return self._in_turn(node, operands, stops=word == "or")
            case ir.Compare(operators=(_, _, *_)):
                return self._chain(node)
            case ir.Conditional(test=test, then=then, otherwise=otherwise):
                target, (steps, left) = self._name(node), self._left(test)
                ways = [tuple(self._assigned(target, way)) for way in (then, otherwise)]
                branch = ir.If(test=left, then=ways[0], otherwise=ways[1])
                return [*steps, branch], ir.Name(name=target)
            case ir.Comprehension() if self._waits(*ir.within(node)):
                return self._comprehension(node, stops=None)
            case ir.Builtin(function=function, arguments=(ir.Comprehension() as items,)) if (
                function in _STOPS and self._waits(*ir.within(items))
            ):
                steps, left = self._comprehension(items, stops=_STOPS[function])
                return steps, replace(node, arguments=(left,))
            case ir.Builtin(function="enumerate" | "zip") if any(
                map(self._is_slow, node.arguments)
            ):
                raise _iterator_escapes()
            case _:
                return self._operation(node)

    def _is_slow(self, node: ir.Expression) -> bool:
        if not isinstance(node, ir.Comprehension) or node.kind != "generator":
            return False
        return self._waits(*ir.within(node))

    def _operation(self, node: Any) -> tuple[_Steps, Any]:
        """An operation: what Python evaluates before the last operand that waits is held."""
        operands = [*ir.operands(node)]
        last = max((at for at, one in enumerate(operands) if self._waits(one)), default=-1)
        steps: _Steps = []
        for at, operand in enumerate(operands[: last + 1]):
            before, left = self._left(operand)
            steps += before
            if at < last and not isinstance(left, ir.Name | ir.Constant):
                steps, left = self._held(operand, [*steps, left])
            operands[at] = left
            if at == 0 and isinstance(node, ir.Method) and last:
                steps.append(_LookUp(node=replace(node, receiver=left)))
        return steps, ir.with_operands(node, operands)

    def _name(self, node: ir.Expression) -> str:
        text = render_expression(node)
        return _Held(text if isinstance(node, ir.Call) else f"({text})")

    def _held(self, node: ir.Expression, steps: _Steps) -> tuple[_Steps, ir.Name]:
        """Steps of which the last is an expression: its value is held from then on."""
        target = self._name(node)
        *before, value = steps
        return [*before, ir.Assign(targets=(target,), value=value)], ir.Name(name=target)

    def _assigned(self, target: str, node: ir.Expression) -> _Steps:
        steps, left = self._left(node)
        return [*steps, ir.Assign(targets=(target,), value=left)]

    def _in_turn(
        self, node: ir.Expression, operands: Sequence[ir.Expression], *, stops: bool
    ) -> tuple[_Steps, ir.Expression]:
        """The value of the first operand of this truth, or of the last one."""
        target = self._name(node)
        steps = [
            step
            for operand in operands
            for step in (*self._assigned(target, operand), _leave(target, stops=stops))
        ]
        return [_once(steps)], ir.Name(name=target)

    def _chain(self, node: ir.Compare) -> tuple[_Steps, ir.Expression]:
        first, *others = node.operands
        target = self._name(node)
        steps, left = self._left(first)
        steps, left = self._held(first, [*steps, left])
        for operator, operand in zip(node.operators, others, strict=True):
            before, right = self._left(operand)
            before, right = self._held(operand, [*before, right])
            compared = ir.Compare(operators=(operator,), operands=(left, right))
            steps += [*before, ir.Assign(targets=(target,), value=compared)]
            steps.append(_leave(target, stops=False))
            left = right
        return [_once(steps)], ir.Name(name=target)

    def _comprehension(
        self, node: ir.Comprehension, *, stops: bool | None
    ) -> tuple[_Steps, ir.Expression]:
        target, (steps, source) = self._name(node), self._left(node.source)
        turn: _Steps = []
        for condition in node.conditions:
            before, left = self._left(condition)
            turn += [*before, ir.If(test=left, then=(), otherwise=(ir.Continue(),))]
        key = () if node.key is None else (node.key,)
        before, made = self._operation(ir.TupleLiteral(items=(*key, node.element)))
        parts: tuple[ir.Expression, ...] = made.items
        after: _Steps = []
        if stops is not None:
            before, item = self._held(node.element, [*before, *parts])
            parts, after = (item,), [_leave(item.name, stops=stops)]
        turn += [*before, _Collect(node=node, target=target, parts=parts), *after]
        empty: ir.Expression = (
            ir.ListLiteral(items=()) if node.key is None else ir.DictLiteral(keys=(), values=())
        )
        start = ir.Assign(targets=(target,), value=empty)
        loop = ir.For(targets=node.targets, source=source, body=tuple(turn))
        return [*steps, start, loop], ir.Name(name=target)

    # --- statements of our own --------------------------------------------------------------------

    def _collect(self, step: _Collect) -> Run:
        place, node = self.slots.of(step.target), step.node
        parts = self.all(step.parts)

        def run(frame: Frame) -> None:
            made, values = frame[place], [part(frame) for part in parts]
            if type(made) is list:
                made.append(values[0])
            else:
                put(frame, node, made, *values)
            if len(made) > frame[METER].limits.collection_items:
                fail(frame, node, frame[METER].too_many_items())

        return run

    def _look_up(self, node: ir.Method) -> Run:
        receiver = self.lower(node.receiver)

        def run(frame: Frame) -> None:
            try:
                method_of(receiver(frame), node.method)
            except FAILURES as error:
                fail(frame, node, error)

        return run

    # --- calls that are waited for ----------------------------------------------------------------

    def _grouped(self, steps: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
        """The steps; calls that may run side by side come as one group, others that wait alone."""
        group: list[Any] = []
        for step in steps:
            call = _call_of(step)
            is_awaited = self._is_awaited(call)
            if group and not (is_awaited and self._may_join(group, call)):
                yield None, group
                group = []
            if is_awaited:
                group.append(step)
            else:
                yield step, []
        if group:
            yield None, group

    def _may_join(self, group: Sequence[Any], call: ir.Call) -> bool:
        calls = [_call_of(step) for step in group] + [call]
        reads = {node.name for node in ir.walk(call) if isinstance(node, ir.Name)}
        set_before = {target for step in group for target in _targets_of(step)}
        are_read_only = all(self._children[one.child].is_read_only for one in calls)
        return are_read_only and reads.isdisjoint(set_before)

    def _group(self, group: Sequence[Any]) -> Wait:
        targets = [(*_targets_of(step), _Held())[0] for step in group]
        begins = [self._begin(_call_of(step)) for step in group]
        places = [self.slots.of(target) for target in targets]

        async def run_one(frame: Frame) -> None:
            frame[places[0]] = await begins[0](frame)

        async def run(frame: Frame) -> None:
            results = await _side_by_side(begin(frame) for begin in begins)
            for place, result in zip(places, results, strict=True):
                frame[place] = result

        return run if len(group) > 1 else run_one

    def _begin(self, node: ir.Call) -> Begin:
        """Evaluates the arguments of a call; the coroutine gives its result."""
        self.nodes += 1
        child = self._children[node.child]
        gather = gathering(node, self.all(argument.value for argument in node.arguments))
        return lambda frame: child.begin(frame, node, gather(frame))


def _call_of(step: Any) -> Any:
    """The call a statement assigns to one name, or makes; None for any other statement."""
    match step:
        case ir.Assign(targets=(_,), value=call) | ir.Do(call=call):
            return call
    return None


def _targets_of(step: Any) -> tuple[str, ...]:
    return step.targets if isinstance(step, ir.Assign) else ()


def _leave(target: str, *, stops: bool) -> ir.If:
    """Leaves a loop when a variable has this truth."""
    leave: ir.Block = (ir.Break(),)
    ways = (leave, ()) if stops else ((), leave)
    return ir.If(test=ir.Name(name=target), then=ways[0], otherwise=ways[1])


def _once(steps: _Steps) -> ir.For:
    """Statements that may be left early: a loop of one turn."""
    turn = ir.ListLiteral(items=(ir.Constant(value=None),))
    return ir.For(targets=(_Held(),), source=turn, body=tuple(steps))


async def _side_by_side(begun: Iterator[Coroutine[Any, Any, Any]]) -> list[Any]:
    """The results of coroutines that run at the same time; of several errors the first in order."""
    tasks: list[asyncio.Task[Any]] = []
    late: Exception | None = None
    try:
        try:
            for work in begun:
                tasks.append(asyncio.create_task(work))  # noqa: PERF401 - those that began stay
        except Exception as error:  # noqa: BLE001 - raised when all before it have succeeded
            late = error
        results = [await task for task in tasks]
        if late is not None:
            raise late
        return results
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _iterator_escapes() -> Exception:
    problem = SourceProblem(
        code="iterator_escapes",
        message="`for`, `enumerate` and `zip` take no generator whose items have to be waited for",
        advice="Make it a list.",
    )
    return refusal("", (problem,))
