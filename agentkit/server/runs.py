"""``Runs``: what is under way, how it is cut short, and how a server comes to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Cut = Literal["disconnected", "late", "stopping"]
"""Why a run was ended from outside: its client left, its time was up, the server stops."""


class Runs:
    """The requests that are being answered.

    Args:
        settle_seconds: How long runs that were cut may take to record themselves.
    """

    def __init__(self, *, settle_seconds: float = 12.0) -> None:
        self._settle_seconds = settle_seconds
        self._open = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._draining = False
        self._cut_all = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return self._open

    @property
    def is_draining(self) -> bool:
        """Whether the server is about to stop, and takes on nothing new."""
        return self._draining

    @contextmanager
    def entered(self) -> Iterator[None]:
        """One request is being answered inside; the server does not stop before its end."""
        self._open += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()

    async def see_through(
        self, work: Coroutine[Any, Any, T], *, receive: Receive, seconds: float
    ) -> T | Cut:
        """Carry out ``work`` and give what it returns, or say why it was cut short.

        Work that is cut has ended, with whatever it does at its end, when this returns.

        Args:
            work: The run.
            receive: Where the client's leaving is told.
            seconds: How long it may take.

        Raises:
            Exception: What ``work`` raises.
            asyncio.CancelledError: The caller was cancelled; so was the work.
        """
        if self._cut_all.is_set():  # its body came after the others were cut
            work.close()
            return "stopping"
        task = asyncio.create_task(work)
        gone = asyncio.create_task(_left(receive))
        self._tasks.add(task)
        try:
            await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            cut: Cut = "disconnected" if gone.done() else "late"
        finally:
            gone.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            self._tasks.discard(task)
        if task.cancelled():
            return "stopping" if self._cut_all.is_set() else cut
        return task.result()

    async def drain(self, seconds: float) -> None:
        """Take on nothing new, wait for what is under way, and cut what takes longer.

        Args:
            seconds: How long to wait before.
        """
        self._draining = True
        if await self._at_rest(seconds):
            return
        self._cut_all.set()
        for task in self._tasks:
            task.cancel()
        await self._at_rest(self._settle_seconds)

    async def _at_rest(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True


async def _left(receive: Receive) -> None:
    """Returns when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
