"""Expressions with calls that have to be waited for, to coroutine functions over the frame.

Only the waiting is new here. An operation evaluates its operands into spare places of the frame,
and is then the same closure as anywhere, reading them from there; ``and``, ``or``, conditionals
and chained comparisons wait for one operand after the other.

When all calls inside an expression change nothing, its operands, and the items of its
comprehensions, are waited for side by side; what they raise still surfaces in program order.
Otherwise everything happens one after the other, exactly as written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import fields, replace
from operator import itemgetter
from typing import Any, NoReturn, TypeAlias, TypeVar

from agentkit.composites import ir
from agentkit.composites.faults import refusal
from agentkit.composites.interpreter.children import Child
from agentkit.composites.interpreter.consumers import FOLDS, Fold
from agentkit.composites.interpreter.failures import fail, failing_at
from agentkit.composites.interpreter.frames import METER, Evaluate, Frame
from agentkit.composites.interpreter.functions import iterable
from agentkit.composites.interpreter.lowering import (
    ExpressionLowering,
    Slots,
    comparison,
    put,
)
from agentkit.composites.interpreter.methods import method_of
from agentkit.composites.interpreter.operations import check_values
from agentkit.composites.interpreter.promises import resolve
from agentkit.composites.interpreter.slow_items import (
    AwaitItems,
    AwaitValue,
    Generated,
    Items,
    Numbered,
    Part,
    Push,
    Turn,
    feed_in_turn,
    feed_side_by_side,
    filling,
)
from agentkit.composites.interpreter.waiting import awaited_call
from agentkit.errors import SourceProblem

Node = TypeVar("Node", bound=ir.Node)

Begin: TypeAlias = Callable[[], Awaitable[Push]]
"""Says where items go; asked once their source is there and before the first one, which is when
Python evaluates what stands beside a generator."""

Feed: TypeAlias = Callable[[Frame, Begin], Awaitable[None]]

_STOPS_EARLY = frozenset({"any", "all"})


def unshared(node: Node) -> Node:
    """The same tree with no node in two places, so that a node's ``id`` is its place."""
    changes: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple):
            changes[field.name] = tuple(unshared(v) if _is_node(v) else v for v in value)
        elif _is_node(value):
            changes[field.name] = unshared(value)
    return replace(node, **changes)


def _is_node(value: object) -> bool:
    return hasattr(value, "__dataclass_fields__")


def operands_of(node: ir.Expression) -> Iterator[ir.Expression]:
    """The expressions that an operation evaluates first, in the order of evaluation."""
    if isinstance(node, ir.Comprehension):  # whose items are at hand once its source is
        yield node.source
    elif isinstance(node, ir.DictLiteral):
        for entry in zip(node.keys, node.values, strict=True):
            yield from entry
    else:
        for part in ir.parts(node):
            yield part.value if isinstance(part, ir.Argument) else part  # type: ignore[misc]  # an expression holds expressions and arguments only


class AwaitingLowering(ExpressionLowering):
    """Lowers expressions over one frame layout, those that wait and those that do not."""

    def __init__(self, slots: Slots, children: Mapping[str, Child]) -> None:
        super().__init__(slots, lambda node, values: children[node.child].lower(node, values))
        self._children = children
        self._held: dict[int, int] = {}
        self._facts: dict[int, tuple[bool, bool]] = {}

    # --- what an expression does ------------------------------------------------------------------

    def waits(self, node: ir.Node) -> bool:
        """Whether a call inside has to be waited for."""
        return self._known(node)[0]

    def floats(self, node: ir.Node) -> bool:
        """Whether all calls inside are known to change nothing."""
        return self._known(node)[1]

    def _known(self, node: ir.Node) -> tuple[bool, bool]:
        known = self._facts.get(id(node))
        if known is None:
            inside = [self._known(part) for part in ir.parts(node)]
            if isinstance(node, ir.Call):
                child = self._children[node.child]
                inside.append((child.needs_event_loop, child.is_read_only))
            known = any(waits for waits, _ in inside), all(floats for _, floats in inside)
            self._facts[id(node)] = known
        return known

    def hands_out_slowly(self, node: ir.Expression) -> bool:
        """Whether it is an iterator whose items have to be waited for one by one."""
        if isinstance(node, ir.Comprehension):
            return node.kind == "generator" and any(map(self.waits, _inside(node)))
        numbered = isinstance(node, ir.Builtin) and node.function == "enumerate"
        return numbered and any(map(self.hands_out_slowly, operands_of(node)))

    # --- lowering ---------------------------------------------------------------------------------

    def lower(self, node: ir.Expression) -> Evaluate:
        """A closure for what does not wait, or whose value is waited for beforehand."""
        place = self._held.get(id(node))
        return super().lower(node) if place is None else itemgetter(place)

    def later(self, node: ir.Expression) -> AwaitValue:
        """A coroutine function that gives the value of an expression that waits."""
        self.nodes += 1
        return self._way_to_wait(node)(node)

    def _way_to_wait(self, node: ir.Expression) -> Callable[[Any], AwaitValue]:
        match node:
            case ir.Comprehension() if any(map(self.waits, _inside(node))):
                return self._collected
            case ir.Builtin() | ir.Method() if any(map(self.hands_out_slowly, node.arguments)):
                return self._folded
            case ir.Compare() if len(node.operators) > 1:
                return self._chain
            case _:
                ways: dict[type, Callable[[Any], AwaitValue]] = {
                    ir.Call: self._call,
                    ir.Boolean: self._boolean,
                    ir.Conditional: self._conditional,
                    ir.Method: self._method,
                }
                return ways.get(type(node), self._operation)

    def part(self, node: ir.Expression) -> Part:
        """An expression with a spare place for its value."""
        place = self.slots.fresh()
        if self.waits(node):
            return Part(place, later=self.later(node))
        return Part(place, at_once=self.lower(node), reads=self.places_read(node))

    def places_read(self, *nodes: ir.Node) -> tuple[int, ...]:
        """Places of the variables that parts of a program read."""
        names = (part.name for n in nodes for part in ir.walk(n) if isinstance(part, ir.Name))
        return tuple(self.slots.of(name) for name in dict.fromkeys(names))

    def _call(self, node: ir.Call) -> AwaitValue:
        child = self._children[node.child]
        parts = [self.part(argument.value) for argument in node.arguments]
        fill = filling(parts, together=self.floats(node))
        names = tuple((a.name, p.place) for a, p in zip(node.arguments, parts, strict=True))
        if not child.needs_event_loop:
            at_once = child.lower(node, [itemgetter(part.place) for part in parts])

            async def run_at_once(frame: Frame) -> Any:
                await fill(frame)
                return at_once(frame)

            return run_at_once
        call = awaited_call(child, node)

        async def run(frame: Frame) -> Any:
            await fill(frame)
            return await call(frame, {name: frame[place] for name, place in names})

        return run

    def _operation(self, node: ir.Expression) -> AwaitValue:
        """Hold the operands up to the last one that waits, then do what is always done."""
        operands = list(operands_of(node))
        last = max(at for at, operand in enumerate(operands) if self.waits(operand))
        parts = []
        for operand in operands[: last + 1]:
            if isinstance(operand, ir.Name | ir.Constant):
                continue  # the same before and after
            part = self.part(operand)
            self._held[id(operand)] = part.place
            parts.append(part)
        self.nodes -= 1  # counted by ``later``
        finish = ExpressionLowering.lower(self, node)
        fill = filling(parts, together=self.floats(node))
        rest = [operand for operand in operands if id(operand) not in self._held]
        if isinstance(node, ir.Comprehension):
            rest.extend(_inside(node))
        reads = self.places_read(*rest)

        async def run(frame: Frame) -> Any:
            await fill(frame)
            await resolve(frame, reads)
            return finish(frame)

        return run

    def _method(self, node: ir.Method) -> AwaitValue:
        receiver = self.part(node.receiver)
        arguments = [self.part(argument) for argument in node.arguments]
        fill = filling(arguments, together=self.floats(node))

        async def run(frame: Frame) -> Any:
            value = await receiver.value(frame)
            with failing_at(frame, node):
                method = method_of(value, node.method)  # before the arguments, as Python does
            await fill(frame)
            with failing_at(frame, node):
                return method(frame[METER], value, *(frame[part.place] for part in arguments))

        return run

    def _boolean(self, node: ir.Boolean) -> AwaitValue:
        parts = [self.part(operand) for operand in node.operands]
        stop = node.operator == "or"

        async def run(frame: Frame) -> Any:
            value = await parts[0].value(frame)
            for part in parts[1:]:
                if bool(value) is stop:
                    return value
                value = await part.value(frame)
            return value

        return run

    def _conditional(self, node: ir.Conditional) -> AwaitValue:
        test, then, otherwise = map(self.part, (node.test, node.then, node.otherwise))

        async def run(frame: Frame) -> Any:
            chosen = then if await test.value(frame) else otherwise
            return await chosen.value(frame)

        return run

    def _chain(self, node: ir.Compare) -> AwaitValue:
        parts = [self.part(operand) for operand in node.operands]
        steps = [comparison(node, name) for name in node.operators]

        async def run(frame: Frame) -> Any:
            left, value = await parts[0].value(frame), True
            for step, part in zip(steps, parts[1:], strict=True):
                right = await part.value(frame)
                value = step(frame, left, right)
                if not value:
                    break
                left = right
            return value

        return run

    # --- items one by one -------------------------------------------------------------------------

    def items(self, node: ir.Expression) -> AwaitItems:
        """A coroutine function that gives what a loop or a comprehension runs over."""
        if self.hands_out_slowly(node):
            self.nodes += 1
            if isinstance(node, ir.Comprehension):
                return self._generator(node)
            assert isinstance(node, ir.Builtin)
            return self._enumerated(node)
        source = self.part(node)

        async def run(frame: Frame) -> Items:
            value = await source.value(frame)
            with failing_at(frame, node):
                return iterable(value)

        return run

    def _generator(self, node: ir.Comprehension) -> AwaitItems:
        source, turn = self.items(node.source), self.turn(node)

        async def run(frame: Frame) -> Items:
            return Generated(frame, await source(frame), turn)

        return run

    def _enumerated(self, node: ir.Builtin) -> AwaitItems:
        if len(node.arguments) > 1:
            _refuse_iterator()
        source, starts = self.items(node.arguments[0]), self._keywords(node)

        async def run(frame: Frame) -> Items:
            items = await source(frame)
            given = {name: await start.value(frame) for name, start in starts}
            with failing_at(frame, node):
                for value in given.values():
                    check_values(value, None)
                enumerate((), **given)  # complains as Python does
            return Numbered(items, int(given.get("start", 0)))

        return run

    def _keywords(self, node: ir.Builtin | ir.Method) -> list[tuple[str, Part]]:
        given = node.keywords if isinstance(node, ir.Builtin) else ()
        return [(keyword.name, self.part(keyword.value)) for keyword in given]

    def turn(self, node: ir.Comprehension) -> Turn:
        """What a comprehension does with one item."""
        outer, before = self.slots.shadow(node.targets), self.nodes
        bind = self.bind(node.targets, node.source)
        conditions = [self.part(condition) for condition in node.conditions]
        key = None if node.key is None else self.part(node.key)
        element = self.part(node.element)
        cost, self.nodes = 1 + self.nodes - before, before
        self.slots.restore(outer)
        return Turn(node, bind=bind, conditions=conditions, key=key, element=element, cost=cost)

    def _collected(self, node: ir.Comprehension) -> AwaitValue:
        if node.kind == "generator":
            _refuse_iterator()
        feed = self._feed(node, together=self.floats(node))

        async def run(frame: Frame) -> Any:
            items: list[Any] = []
            table: dict[Any, Any] = {}
            made = items if node.key is None else table

            def push(value: Any) -> bool:
                if node.key is None:
                    items.append(value)
                else:
                    put(frame, node, table, *value)
                if len(made) > frame[METER].limits.collection_items:
                    fail(frame, node, frame[METER].too_many_items())
                return False

            async def begin() -> Push:
                return push

            await feed(frame, begin)
            return made

        return run

    def _feed(self, node: ir.Expression, *, together: bool) -> Feed:
        """A coroutine function that hands the items of an iterator on."""
        if isinstance(node, ir.Comprehension):
            source, turn = self.items(node.source), self.turn(node)

            async def run_turns(frame: Frame, begin: Begin) -> None:
                items = await source(frame)
                push = await begin()
                if together and not isinstance(items, AsyncIterator):
                    await feed_side_by_side(frame, items, turn, push)
                else:
                    await feed_in_turn(Generated(frame, items, turn), push)

            return run_turns
        items_of = self.items(node)

        async def run(frame: Frame, begin: Begin) -> None:
            items = await items_of(frame)
            await feed_in_turn(items, await begin())

        return run

    def _folded(self, node: ir.Builtin | ir.Method) -> AwaitValue:
        """``sum`` and the like of items that have to be waited for."""
        name = node.function if isinstance(node, ir.Builtin) else node.method
        if name not in FOLDS or len(node.arguments) > 1:
            _refuse_iterator()
        keywords = self._keywords(node)
        receivers = [self.part(node.receiver)] if isinstance(node, ir.Method) else []
        together = self.floats(node) and name not in _STOPS_EARLY
        feed = self._feed(node.arguments[0], together=together)

        async def run(frame: Frame) -> Any:
            values = [await receiver.value(frame) for receiver in receivers]
            with failing_at(frame, node):
                if values:
                    method_of(values[0], name)  # complains as Python does
            folds: list[Fold] = []

            async def begin() -> Push:
                given = {key: await part.value(frame) for key, part in keywords}
                with failing_at(frame, node):
                    for value in given.values():
                        check_values(value, None)
                    folds.append(FOLDS[name](frame[METER], *values, **given))
                return push

            def push(item: Any) -> bool:
                with failing_at(frame, node):
                    frame[METER].spend(1)
                    return folds[0].push(item)

            await feed(frame, begin)
            with failing_at(frame, node):
                return folds[0].result()

        return run


def _inside(node: ir.Comprehension) -> tuple[ir.Expression, ...]:
    key = () if node.key is None else (node.key,)
    return (*node.conditions, *key, node.element)


def _refuse_iterator() -> NoReturn:
    problem = SourceProblem(
        code="iterator_escapes",
        message="the items of a generator would have to be waited for where they are not consumed",
        advice="Make it a list, or the one argument of a function such as sum.",
    )
    raise refusal("", (problem,))
