"""Connection pools live and die with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

Client = TypeVar("Client")


class LoopBound(Generic[Client]):
    """One client per event loop, opened on first use and closed before its loop is.

    A pooled connection belongs to the loop that opened it, and every ``asyncio.run`` (so every
    ``run_sync``) is a new loop. The close is tied to the loop by an asynchronous generator:
    ``asyncio.run`` finishes those that are still suspended (``loop.shutdown_asyncgens``) while the
    loop still works, and one that is dropped earlier is finished by the loop's own hook.

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


async def _lifetime(
    client: Client, closed: Callable[[Client], Awaitable[None]]
) -> AsyncGenerator[Client]:
    # A function, not a method: without a reference cycle, dropping the model closes at once.
    try:
        yield client
    finally:
        await closed(client)
