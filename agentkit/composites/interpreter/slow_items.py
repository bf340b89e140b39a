"""Items that have to be waited for: turns of comprehensions, and what is made of them.

The iterators are plain objects, not asynchronous generators: one that is left before its end needs
no cleaning up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.interpreter.failures import fail
from agentkit.composites.interpreter.frames import METER, ORDER, Evaluate, Frame
from agentkit.composites.interpreter.lowering import Bind
from agentkit.composites.interpreter.meter import out_of_fuel
from agentkit.composites.interpreter.promises import resolve
from agentkit.composites.interpreter.tasks import Tasks
from agentkit.composites.interpreter.trace import Order

AwaitValue: TypeAlias = Callable[[Frame], Awaitable[Any]]
Items: TypeAlias = AsyncIterator[Any] | Iterable[Any]
AwaitItems: TypeAlias = Callable[[Frame], Awaitable[Items]]
Push: TypeAlias = Callable[[Any], bool]

LEFT_OUT = object()
"""What a turn gives for an item that does not fit the conditions."""


def branched(frame: Frame) -> Frame:
    """A frame for work beside the rest: what it assigns is its own."""
    copy = frame.copy()
    if frame[ORDER] is not None:
        copy[ORDER] = Order(frame[ORDER].take())
    return copy


class Part:
    """An expression with a place in the frame for its value.

    Args:
        place: The place.
        at_once: Gives the value, once the variables in ``reads`` have theirs.
        reads: Places of these variables.
        later: Gives the value of an expression that takes time.
    """

    __slots__ = ("_at_once", "_later", "_reads", "place")

    def __init__(
        self,
        place: int,
        *,
        at_once: Evaluate | None = None,
        reads: Sequence[int] = (),
        later: AwaitValue | None = None,
    ) -> None:
        self.place = place
        self._at_once = at_once
        self._reads = reads
        self._later = later

    @property
    def waits(self) -> bool:
        """Whether its value takes time."""
        return self._later is not None

    async def value(self, frame: Frame) -> Any:
        """Its value."""
        if self._later is not None:
            return await self._later(frame)
        assert self._at_once is not None
        await resolve(frame, self._reads)
        return self._at_once(frame)


class Turn:
    """What a comprehension does with one item."""

    def __init__(
        self,
        node: ir.Comprehension,
        *,
        bind: Bind,
        conditions: Sequence[Part],
        key: Part | None,
        element: Part,
        cost: int,
    ) -> None:
        self._node = node
        self._bind = bind
        self._conditions = conditions
        self._key = key
        self._element = element
        self._cost = cost

    async def take(self, frame: Frame, item: Any) -> Any:
        """The item's value, a pair with its key for a dict, or ``LEFT_OUT``."""
        meter = frame[METER]
        meter.fuel -= self._cost
        if meter.fuel < 0:
            fail(frame, self._node, out_of_fuel(meter))
        self._bind(frame, item)
        for condition in self._conditions:
            if not await condition.value(frame):
                return LEFT_OUT
        if self._key is None:
            return await self._element.value(frame)
        key = await self._key.value(frame)
        return key, await self._element.value(frame)


def one_by_one(items: Items) -> AsyncIterator[Any]:
    """Items of either kind as an asynchronous iterator."""
    return items if isinstance(items, AsyncIterator) else AtHand(items)


class AtHand(AsyncIterator[Any]):
    """Items that are at hand."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items: Iterator[Any] = iter(items)

    async def __anext__(self) -> Any:
        for item in self._items:
            return item
        raise StopAsyncIteration


class Generated(AsyncIterator[Any]):
    """What a generator hands out, each item worked out when it is asked for."""

    def __init__(self, frame: Frame, items: Items, turn: Turn) -> None:
        self._frame = frame
        self._items = one_by_one(items)
        self._turn = turn

    async def __anext__(self) -> Any:
        async for item in self._items:
            value = await self._turn.take(self._frame, item)
            if value is not LEFT_OUT:
                return value
        raise StopAsyncIteration


class Numbered(AsyncIterator[Any]):
    """``enumerate``."""

    def __init__(self, items: Items, start: int) -> None:
        self._items = one_by_one(items)
        self._next = start

    async def __anext__(self) -> tuple[int, Any]:
        item = await anext(self._items)
        self._next += 1
        return self._next - 1, item


async def feed_in_turn(items: Items, push: Push) -> None:
    """Hand items on, one after the other, until no more are wanted."""
    async for item in one_by_one(items):
        if push(item):
            break


async def feed_side_by_side(frame: Frame, items: Iterable[Any], turn: Turn, push: Push) -> None:
    """Work out many items at the same time, and hand them on in their order."""
    tasks = Tasks(frame[METER])

    def deliver(value: Any) -> None:
        if value is not LEFT_OUT:
            push(value)

    try:
        for item in items:
            while len(tasks) and not tasks.has_room:
                deliver(await tasks.first())
            if tasks.failed:
                break
            work = turn.take(branched(frame), item)
            if tasks.has_room:
                tasks.start(work)
            else:
                deliver(await work)
        while len(tasks):
            deliver(await tasks.first())
    finally:
        await tasks.cancel()


def filling(parts: Sequence[Part], *, together: bool) -> Callable[[Frame], Awaitable[None]]:
    """A coroutine function that puts the values of operands into their places.

    Args:
        parts: In the order of evaluation.
        together: Whether those that take time may do so side by side.
    """

    async def in_turn(frame: Frame) -> None:
        for part in parts:
            frame[part.place] = await part.value(frame)

    async def side_by_side(frame: Frame) -> None:
        tasks, started = Tasks(frame[METER]), set()
        try:
            apart = [(part, branched(frame)) for part in parts]
            for part, own in apart:
                if part.waits and tasks.has_room:
                    tasks.start(part.value(own))
                    started.add(part)
            for part, own in apart:
                ready = part in started
                frame[part.place] = await (tasks.first() if ready else part.value(own))
        finally:
            await tasks.cancel()

    return side_by_side if together and sum(part.waits for part in parts) > 1 else in_turn
