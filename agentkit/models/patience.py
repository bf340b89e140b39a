"""``Patience``: how long to wait for each piece of an answer, with one timer for all pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Self, TypeVar

Value = TypeVar("Value")


class Patience:
    """Waits for one thing after another, for each of them so many seconds at most.

    Each wait ends as it would in ``asyncio.timeout``. That one sets and cancels a timer for every
    wait, which costs more than reading an event of a stream does. Here one timer looks, once in
    that many seconds, whether the wait under way has lasted too long. Time between waits does not
    count. Leaving the context cancels the timer.

    Args:
        seconds: Longest wait.

    Example:
        >>> async def hear():
        ...     with Patience(0.05) as patience:
        ...         return await patience.wait(asyncio.sleep(0.01, "a word"))
        >>> asyncio.run(hear())
        'a word'
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._due = 0.0
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def wait(self, awaited: Awaitable[Value]) -> Value:
        """What ``awaited`` gives.

        Raises:
            TimeoutError: It took too long and was cancelled.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # as wherever asyncio awaits
        self._waiting, self._due = task, loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._look)
        cancels = task.cancelling()
        try:
            return await awaited
        except asyncio.CancelledError as error:
            if self._is_over and task.cancelling() == cancels + 1:  # ours, and nobody else's
                raise TimeoutError from error
            raise
        finally:
            self._waiting = None
            if self._is_over:
                self._is_over = False
                task.uncancel()

    def _look(self) -> None:
        """Give the wait up if it has lasted too long, or else look again when it will have."""
        self._timer = None
        if self._waiting is None:
            return
        loop = self._waiting.get_loop()
        if loop.time() < self._due:
            self._timer = loop.call_at(self._due, self._look)
        else:
            self._is_over = True
            self._waiting.cancel()
