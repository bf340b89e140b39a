"""``News``: wakes an event loop when a replica has a new library."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from agentkit.library.capabilities import SelfRefreshing
from agentkit.library.library import Library


class News:
    """Waits for the versions of a replica, in one event loop.

    Args:
        replica: Looks for new versions in a thread of its own.
    """

    def __init__(self, replica: SelfRefreshing) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        replica.follow(self._tell)

    async def wait(self) -> None:
        """Wait until there is a version that was not waited for; there is one at the beginning."""
        await self._event.wait()
        self._event.clear()

    def _tell(self, _: Library) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nobody waits any more
            self._loop.call_soon_threadsafe(self._event.set)
