"""Connection pools live and die with an event loop."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Generic, TypeVar

Client = TypeVar("Client")

_GRACE_SECONDS = 0.1


class LoopBound(Generic[Client]):
    """One client per event loop, opened on first use and closed before its loop is.

    A pooled connection belongs to the loop that opened it, and every ``asyncio.run`` (so every
    ``run_sync``) is a new loop. The close is tied to the loop by an asynchronous generator:
    ``asyncio.run`` finishes those that are still suspended (``loop.shutdown_asyncgens``) while the
    loop still works.

    When this object is dropped earlier, its clients are closed a tenth of a second later. At once
    would be too early: ``asyncio.run`` cancels every task before it ends, so a close that began
    just then would stop half-way and leave sockets open. Until then the loop's own timer holds the
    generator, so that an ending loop finds and finishes it. A loop that is closed without
    ``shutdown_asyncgens`` closes nothing; that is its owner's mistake.

    Args:
        opened: Makes a client; called inside the running loop.
        closed: Closes it.
        is_closed: Whether a client is closed already.
    """

    def __init__(
        self,
        *,
        opened: Callable[[], Client],
        closed: Callable[[Client], Awaitable[None]],
        is_closed: Callable[[Client], bool],
    ) -> None:
        self._opened = opened
        self._closed = closed
        self._is_closed = is_closed
        self._held: dict[asyncio.AbstractEventLoop, tuple[Client, AsyncGenerator[Client]]] = {}
        weakref.finalize(self, _release, self._held).atexit = False

    async def get(self) -> Client:
        """The running loop's client."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is not None and not self._is_closed(held[0]):
            return held[0]
        for other in list(self._held):  # a copy: loops of other threads come and go
            if other.is_closed():
                self._held.pop(other, None)
        lifetime = _lifetime(self._opened(), self._closed)
        client = await anext(lifetime)
        self._held[loop] = client, lifetime
        return client

    async def close(self) -> None:
        """Close the running loop's client; those of other loops are closed with their loops."""
        mine = self._held.pop(asyncio.get_running_loop(), None)
        if mine is not None:
            await mine[1].aclose()


def _release(held: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[Any]]]) -> None:
    while held:
        loop, (_, lifetime) = held.popitem()
        try:
            loop.call_soon_threadsafe(loop.call_later, _GRACE_SECONDS, _finish, loop, lifetime)
        except RuntimeError:  # the loop is closed, and with it went the connections
            continue


def _finish(loop: asyncio.AbstractEventLoop, lifetime: AsyncGenerator[Any]) -> None:
    loop.create_task(lifetime.aclose(), name="agentkit closes connections")


async def _lifetime(
    client: Client, closed: Callable[[Client], Awaitable[None]]
) -> AsyncGenerator[Client]:
    # A function, not a method: it would hold the object whose end it waits for.
    try:
        yield client
    finally:
        await closed(client)
