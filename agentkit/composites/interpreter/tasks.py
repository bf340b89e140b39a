"""``Tasks``: what runs side by side, kept in program order, and ends together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any

from agentkit.composites.interpreter.meter import Meter


class Tasks:
    """Tasks in program order.

    Whoever makes one has to ``cancel`` it in a ``finally``, so that none outlives its owner.

    Attributes:
        failed: Whether one of them has failed already, though perhaps not the first in order.
    """

    __slots__ = ("_meter", "_waiting", "failed")

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._waiting: deque[asyncio.Task[Any]] = deque()
        self.failed = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether the run may have one more task; if not, its owner does the work itself."""
        return self._meter.tasks < self._meter.most_tasks

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` beside the others; it comes after them in order."""
        self._meter.tasks += 1
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._waiting.append(task)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._meter.tasks -= 1
        if task.cancelled() or task.exception() is not None:
            self.failed = True

    async def first(self) -> Any:
        """Wait for the first in order and take it out; its result, or its error."""
        task = self._waiting[0]
        await ended(task)
        result = task.result()
        self._waiting.popleft()
        return result

    async def settle(self) -> None:
        """Wait for all; raises the error that is first in order."""
        while self._waiting:
            await self.first()

    async def cancel(self) -> None:
        """Stop those that still run, and wait until they have stopped."""
        for task in self._waiting:
            task.cancel()
        if self._waiting:
            await asyncio.gather(*self._waiting, return_exceptions=True)
            self._waiting.clear()


async def ended(task: asyncio.Task[Any]) -> None:
    """Wait for a task without taking it along when the waiting is cancelled."""
    if not task.done():
        await asyncio.wait((task,))
