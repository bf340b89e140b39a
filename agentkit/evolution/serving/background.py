"""``Background``: work that waits until nobody else does, and is dropped rather than waited for."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agentkit._waiting import wait_for

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_STARTS = 2
"""How often one piece of work is begun at most, when its event loop ends in the middle of it."""


@dataclass(kw_only=True, slots=True)
class _Item(Generic[T]):
    work: T
    starts: int = 0


class Background(Generic[T]):
    """A bounded queue with one worker, which runs on the event loop of whoever put something in.

    No thread is started: a model's connections often belong to one event loop. When a loop ends
    while work is left, the work stays on the queue, for the next loop or for ``drain_sync``.

    Args:
        handle: Does one piece of work. What it raises is logged and counted.
        size: Most pieces that wait; one more is dropped.
        name: What the work is called in the log.

    Attributes:
        counts: How many pieces were ``done``, ``dropped`` or ``failed``; ``handle`` may add its
            own.
    """

    def __init__(self, handle: Callable[[T], Awaitable[None]], *, size: int, name: str) -> None:
        self._handle = handle
        self._size = size
        self._name = name
        self._waiting: deque[_Item[T]] = deque()
        self._lock = threading.Lock()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False
        self.counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def count(self, what: str) -> None:
        """Count one more; threads may do so at once."""
        with self._lock:
            self.counts[what] += 1

    def put(self, work: T, *, start: bool = True) -> bool:
        """Put a piece of work on the queue; False when it was dropped.

        Args:
            work: What to do.
            start: Whether the running event loop may begin with it.
        """
        with self._lock:
            accepted = not self._closed and len(self._waiting) < self._size
            if accepted:
                self._waiting.append(_Item(work=work))
            else:
                self.counts["dropped"] += 1
        if accepted and start:
            self._start()
        return accepted

    async def drain(self) -> None:
        """Do all that waits, and wait for what this loop is at."""
        worker = self._worker
        if worker is not None and not worker.done() and _is_here(worker):
            await asyncio.wait([worker])
        await self._work()

    def drain_sync(self) -> None:
        """``drain`` for programs without an event loop of their own.

        Raises:
            RuntimeError: An event loop runs in this thread.
        """
        wait_for(self.drain())

    async def aclose(self) -> None:
        """Stop what is at work, drop what waits, and take nothing more."""
        self._closed = True
        worker = self._worker
        if worker is not None and not worker.done() and _is_here(worker):
            worker.cancel()
            await asyncio.wait([worker])
        with self._lock:
            self.counts["dropped"] += len(self._waiting)
            self._waiting.clear()

    def _start(self) -> None:
        worker = self._worker
        if worker is not None and not worker.done() and not worker.get_loop().is_closed():
            return
        # An empty context: what the work does is no part of the run that it follows.
        self._worker = asyncio.get_running_loop().create_task(
            self._work(), context=contextvars.Context()
        )

    async def _work(self) -> None:
        while (item := self._next()) is not None:
            item.starts += 1
            try:
                await self._handle(item.work)
            except asyncio.CancelledError:
                self._put_back(item)
                raise
            except Exception as error:
                self.count("failed")
                logger.exception("%s failed: %s", self._name, type(error).__name__)
            else:
                self.count("done")

    def _next(self) -> _Item[T] | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def _put_back(self, item: _Item[T]) -> None:
        with self._lock:
            if item.starts < MOST_STARTS and not self._closed:
                self._waiting.appendleft(item)
            else:
                self.counts["dropped"] += 1


def _is_here(task: asyncio.Task[None]) -> bool:
    return task.get_loop() is asyncio.get_running_loop()
