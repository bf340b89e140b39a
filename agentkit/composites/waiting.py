"""Programs with children that have to be waited for.

A closure can not wait, so the calls in an expression that have to be waited for are done before it,
each in a step of its own, and their values held in spare places of the frame, from which the
closure reads them. What Python evaluates before such a call is held as well; ``and``, ``or``,
conditionals, chained comparisons and comprehensions become steps that branch and loop. So
everything happens in the order of the program.

There is one exception: steps next to each other that only call children which are known to change
nothing, none of which needs the result of another, run side by side. What they raise still surfaces
in program order, and when a run ends, for whatever reason, nothing that it has started still runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from operator import itemgetter
from types import CoroutineType
from typing import Any, NoReturn, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.children import Child, gathering
from agentkit.composites.functions import method_of, one_more
from agentkit.composites.guards import (
    METER,
    Evaluate,
    Frame,
    fail,
    failing_at,
)
from agentkit.composites.interpreter import (
    BREAK,
    CONTINUE,
    RETURN,
    FrameLayout,
    Lowering,
    Run,
    Signal,
    comparison,
    first_expression,
    put,
)
from agentkit.composites.language import CONSUMERS, ITERATORS
from agentkit.composites.problems import refusal
from agentkit.errors import SourceProblem

Wait: TypeAlias = Callable[[Frame], Coroutine[Any, Any, Signal]]
Stream: TypeAlias = Callable[[Frame], AsyncGenerator[Any, None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingCall:
    """A call of a child that is waited for, its arguments lowered.

    Attributes:
        child: The child.
        node: The call.
        gather: Evaluates the arguments.
        place: Where the result goes.
        reads: Places that the arguments read.
    """

    child: Child
    node: ir.Call
    gather: Callable[[Frame], dict[str, Any]]
    place: int
    reads: frozenset[int]

    def begin(self, frame: Frame) -> Coroutine[Any, Any, Any]:
        """Evaluate the arguments; the coroutine gives the result."""
        return self.child.begin(frame, self.node, self.gather(frame))


Step: TypeAlias = Run | Wait | WaitingCall
"""One thing that a program does: at once, by waiting, or by calling a child."""


class WaitingLowering(Lowering):
    """Lowers a program, some of whose children have to be waited for.

    A node's ``id`` is its place: neither the parser nor the codec puts one node in two places.
    """

    def __init__(self, slots: FrameLayout, children: Mapping[str, Child]) -> None:
        super().__init__(slots, lambda node, values: children[node.child].lower(node, values))
        self._children = children
        self._held: dict[int, int] = {}
        self._waits: dict[int, bool] = {}

    def lower(self, node: ir.Expression) -> Evaluate:
        """A closure for what does not wait, or whose calls are held by now."""
        place = self._held.get(id(node))
        return super().lower(node) if place is None else itemgetter(place)

    def program(self, block: ir.Block) -> Wait:
        """A coroutine function that runs a block on its frame."""
        steps, pay = self.counted(block, lambda: [s for node in block for s in self._steps(node)])
        return _in_order([pay, *steps])

    # --- statements -------------------------------------------------------------------------------

    def _steps(self, node: ir.Statement) -> list[Step]:
        match node:
            case ir.Assign(targets=(target,), value=ir.Call() as call) if self._is_awaited(call):
                return self._call(call, self.slots.of(target))
            case ir.Do(call=call) if self._is_awaited(call):
                return self._call(call, self.slots.fresh())
            case ir.If(then=then, otherwise=otherwise) if self._any_waits(then + otherwise):
                steps = self._prepare(node.test)
                return [*steps, _branch(self.lower(node.test), *map(self._way, (then, otherwise)))]
            case ir.For(body=body) if self._any_waits(body):
                return self._for(node)
            case _:
                first = first_expression(node)
                steps = [] if first is None else self._prepare(first)
                return [*steps, self.statement(node)]

    def _for(self, node: ir.For) -> list[Step]:
        bind, steps = self.bind(node.targets, node.source), self._prepare(node.source)
        source, body = self.iterate(node.source), self.program(node.body)

        async def wait(frame: Frame) -> Signal:
            for item in source(frame):
                bind(frame, item)
                signal = await body(frame)
                if signal is BREAK:
                    break
                if signal is RETURN:
                    return signal
            return None

        return [*steps, wait]

    def _way(self, block: ir.Block) -> Run | Wait:
        return self.program(block) if self._any_waits(block) else self.block(block)

    # --- what waits -------------------------------------------------------------------------------

    def waits(self, node: ir.Node) -> bool:
        """Whether a call inside has to be waited for."""
        known = self._waits.get(id(node))
        if known is None:
            known = self._is_awaited(node) or self._any_waits(ir.parts(node))
            self._waits[id(node)] = known
        return known

    def _any_waits(self, nodes: Iterable[ir.Node]) -> bool:
        return any(map(self.waits, nodes))

    def _is_awaited(self, node: ir.Node) -> bool:
        return isinstance(node, ir.Call) and self._children[node.child].needs_event_loop

    def _is_slow(self, node: ir.Expression) -> bool:
        """Whether it is a generator whose items have to be waited for one by one."""
        is_generator = isinstance(node, ir.Comprehension) and node.kind == "generator"
        return is_generator and self._any_waits(ir.within(node))  # type: ignore[arg-type]  # just seen

    # --- expressions ------------------------------------------------------------------------------

    def _prepare(self, node: ir.Expression) -> list[Step]:
        """What has to be done until an expression can be lowered and evaluated at once."""
        if not self.waits(node):
            return []
        match node:
            case ir.Call() if self._is_awaited(node):
                return self._call(node, self.slots.fresh())
            case ir.Boolean():
                return self._boolean(node)
            case ir.Conditional():
                return self._conditional(node)
            case ir.Compare(operators=(_, _, *_)):
                return self._chain(node)
            case ir.Comprehension() if self._any_waits(ir.within(node)):
                return self._collected(node)
            case ir.Builtin() | ir.Method() if any(map(self._is_slow, node.arguments)):
                return self._consumed(node)
            case ir.Method() if self._any_waits(node.arguments):
                return [*self._receiver(node), *self._operands(node.arguments)]
            case _:
                return self._operands(list(ir.operands(node)))

    def _operands(self, operands: Sequence[ir.Expression]) -> list[Step]:
        """Hold what Python evaluates before the last operand that waits."""
        waiting = [at for at, operand in enumerate(operands) if self.waits(operand)]
        last = waiting[-1] if waiting else -1
        steps: list[Step] = []
        for operand in operands[:last]:
            steps += self._held_value(operand)
        return steps + (self._prepare(operands[last]) if waiting else [])

    def _held_value(self, node: ir.Expression) -> list[Step]:
        """The value of an expression in a place of its own; names and constants need none."""
        steps = self._prepare(node)
        if isinstance(node, ir.Name | ir.Constant) or id(node) in self._held:
            return steps
        value, place = self.lower(node), self._hold(node)
        return [*steps, _store(place, value)]

    def _hold(self, node: ir.Expression) -> int:
        place = self._held[id(node)] = self.slots.fresh()
        return place

    def _call(self, node: ir.Call, place: int) -> list[Step]:
        steps = self._operands([argument.value for argument in node.arguments])
        return [*steps, self._waiting_call(node, place)]

    def _waiting_call(self, node: ir.Call, place: int) -> WaitingCall:
        self.nodes += 1
        call = WaitingCall(
            child=self._children[node.child],
            node=node,
            gather=gathering(node, self.all(argument.value for argument in node.arguments)),
            place=place,
            reads=frozenset(self._reads(node)),
        )
        self._held[id(node)] = place
        return call

    def _reads(self, node: ir.Node) -> Iterator[int]:
        """Places that an expression reads."""
        if id(node) in self._held:
            yield self._held[id(node)]
        elif isinstance(node, ir.Name):
            yield self.slots.of(node.name)
        else:
            for part in ir.parts(node):
                yield from self._reads(part)

    def _receiver(self, node: ir.Method) -> list[Step]:
        """The receiver of a method, which has to have it before the arguments are evaluated."""
        steps = self._held_value(node.receiver)
        receiver = self.lower(node.receiver)

        def look(frame: Frame) -> None:
            with failing_at(frame, node):
                method_of(receiver(frame), node.method)

        return [*steps, look]

    def _boolean(self, node: ir.Boolean) -> list[Step]:
        self.nodes += 1
        place, stop = self._hold(node), node.operator == "or"
        steps: list[Step] = []
        for operand in node.operands:
            steps += self._prepare(operand)
            steps.append(_store(place, self.lower(operand)))
            steps.append(lambda frame: BREAK if bool(frame[place]) is stop else None)
        return [_swallowing(steps)]

    def _conditional(self, node: ir.Conditional) -> list[Step]:
        self.nodes += 1
        steps, test = self._prepare(node.test), self.lower(node.test)
        place = self._hold(node)
        ways = [
            _in_order([*self._prepare(way), _store(place, self.lower(way))])
            for way in (node.then, node.otherwise)
        ]
        return [*steps, _branch(test, *ways)]

    def _chain(self, node: ir.Compare) -> list[Step]:
        self.nodes += 1
        first, *others = node.operands
        left, place = self.slots.fresh(), self._hold(node)
        steps = [*self._prepare(first), _store(left, self.lower(first))]
        for name, operand in zip(node.operators, others, strict=True):
            steps += self._prepare(operand)
            steps.append(_comparing(comparison(node, name), left, self.lower(operand), place))
        return [_swallowing(steps)]

    # --- items one by one -------------------------------------------------------------------------

    def _generated(self, node: ir.Comprehension) -> tuple[list[Step], Stream]:
        """The items of a comprehension, or pairs of key and value."""
        self.nodes += 1
        steps, items = self._prepare(node.source), self.iterate(node.source)
        source = self.slots.fresh()
        before = self.nodes
        bind = self.bind(node.targets, node.source)
        turn: list[Step] = []
        for condition in node.conditions:
            turn += self._prepare(condition)
            turn.append(_skipping(self.lower(condition)))
        made = (node.element,) if node.key is None else (node.key, node.element)
        turn += self._operands(made)
        values = self.all(made)
        pay, self.nodes = _paying(node, 1 + self.nodes - before), before
        body = _in_order([pay, *turn])

        async def each(frame: Frame) -> AsyncGenerator[Any, None]:
            for item in frame[source]:
                bind(frame, item)
                if await body(frame) is None:
                    parts = [value(frame) for value in values]
                    yield parts[0] if node.key is None else parts

        return [*steps, _store(source, items)], each

    def _collected(self, node: ir.Comprehension) -> list[Step]:
        if node.kind == "generator":
            _refuse_iterator()
        steps, stream = self._generated(node)
        place = self._hold(node)

        async def wait(frame: Frame) -> None:
            made: Any = [] if node.key is None else {}
            async with aclosing(stream(frame)) as items:
                async for item in items:
                    if node.key is None:
                        made.append(item)
                    else:
                        put(frame, node, made, *item)
                    if len(made) > frame[METER].limits.collection_items:
                        fail(frame, node, frame[METER].too_many_items())
            frame[place] = made

        return [*steps, wait]

    def _consumed(self, node: ir.Builtin | ir.Method) -> list[Step]:
        """Collect the items that ``sum`` and the like have to wait for, as far as it asks for."""
        name = node.function if isinstance(node, ir.Builtin) else node.method
        generator, *others = node.arguments
        if (
            name not in CONSUMERS - ITERATORS
            or others
            or not isinstance(generator, ir.Comprehension)
        ):
            _refuse_iterator()
        steps = self._receiver(node) if isinstance(node, ir.Method) else []
        before, stream = self._generated(generator)
        keywords = node.keywords if isinstance(node, ir.Builtin) else ()
        starts = [step for given in keywords for step in self._held_value(given.value)]
        place = self._hold(generator)

        async def wait(frame: Frame) -> None:
            made: list[Any] = []
            state, is_over = None, False
            async with aclosing(stream(frame)) as items:
                async for item in items:
                    made.append(item)
                    with failing_at(frame, node):
                        frame[METER].spend(1)
                        state, is_over = one_more(frame[METER], name, state, item)
                    if is_over:
                        break
            frame[place] = made

        return [*steps, *before, *starts, wait]


# --- steps ----------------------------------------------------------------------------------------


def _in_order(steps: Sequence[Step]) -> Wait:
    """A coroutine function that does steps one after the other, until one gives a signal."""
    ways = tuple(_grouped(steps))

    async def run(frame: Frame) -> Signal:
        for way in ways:
            signal = way(frame)
            if type(signal) is CoroutineType:
                signal = await signal
            if signal is not None:
                return signal  # type: ignore[return-value]  # a coroutine was awaited
        return None

    return run


def _grouped(steps: Sequence[Step]) -> Iterator[Run | Wait]:
    """The steps, with neighbouring calls that change nothing and need none of each other as one."""
    group: list[WaitingCall] = []
    for step in steps:
        joins = (
            isinstance(step, WaitingCall)
            and (not group or (step.child.is_read_only and group[0].child.is_read_only))
            and all(one.place not in step.reads for one in group)
        )
        if group and not joins:
            yield _calling(group)
            group = []
        if isinstance(step, WaitingCall):
            group.append(step)
        else:
            yield step
    if group:
        yield _calling(group)


def _calling(group: Sequence[WaitingCall]) -> Wait:
    async def run_one(frame: Frame) -> None:
        frame[group[0].place] = await group[0].begin(frame)

    async def run(frame: Frame) -> None:
        results = await _side_by_side(call.begin(frame) for call in group)
        for call, result in zip(group, results, strict=True):
            frame[call.place] = result

    return run if len(group) > 1 else run_one


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


def _swallowing(steps: Sequence[Step]) -> Wait:
    """Steps as one, which ends where one of them gives a signal."""
    run = _in_order(steps)

    async def wait(frame: Frame) -> None:
        await run(frame)

    return wait


def _branch(test: Evaluate, then: Run | Wait, otherwise: Run | Wait) -> Run:
    return lambda frame: (then if test(frame) else otherwise)(frame)  # type: ignore[return-value]  # a coroutine is awaited by ``_in_order``


def _paying(node: ir.Expression, cost: int) -> Run:
    def pay(frame: Frame) -> None:
        meter = frame[METER]
        meter.fuel -= cost
        if meter.fuel < 0:
            fail(frame, node, meter.out_of_fuel())

    return pay


def _store(place: int, value: Evaluate) -> Run:
    def run(frame: Frame) -> None:
        frame[place] = value(frame)

    return run


def _skipping(test: Evaluate) -> Run:
    return lambda frame: None if test(frame) else CONTINUE


def _comparing(
    compare: Callable[[Frame, Any, Any], bool], left: int, right_of: Evaluate, place: int
) -> Run:
    def run(frame: Frame) -> Signal:
        right = right_of(frame)
        frame[place] = compare(frame, frame[left], right)
        frame[left] = right
        return None if frame[place] else BREAK

    return run


def _refuse_iterator() -> NoReturn:
    problem = SourceProblem(
        code="iterator_escapes",
        message="the items of a generator would have to be waited for where they are not consumed",
        advice="Make it a list, or the one argument of a function such as sum.",
    )
    raise refusal("", (problem,))
