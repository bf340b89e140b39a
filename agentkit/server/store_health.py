"""Whether a store answers: asked in a bounded time, and told in the log once a minute."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from agentkit.errors import StoreUnavailableError
from agentkit.library.capabilities import error_text

PROBE_SECONDS = 0.75
_LOG_EVERY_SECONDS = 60.0


class Probe:
    """Asks something that may hang, once at a time, and waits for the answer for a moment only.

    Args:
        ask: Asks; what it raises is the answer that all is not well.
        seconds: How long to wait. What takes longer is waited for by the next ones who ask.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[object]], *, seconds: float = PROBE_SECONDS
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._asking: asyncio.Future[Any] | None = None

    async def error(self) -> Exception | None:
        """Why it is not well; None when it is."""
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(_retrieve)
        asking = self._asking
        await asyncio.wait({asking}, timeout=self._seconds)
        if not asking.done():
            return StoreUnavailableError(f"the store did not answer within {self._seconds:g} s")
        self._asking = None
        try:
            asking.result()
        except Exception as error:  # noqa: BLE001 - whatever it is, all is not well
            return error
        return None


def _retrieve(asked: asyncio.Future[Any]) -> None:
    """Perhaps nobody asks again, and asyncio would complain of an error that nobody saw."""
    if not asked.cancelled():
        asked.exception()


class MinuteLog:
    """Writes a failure that recurs with each request to the log once a minute.

    Args:
        logger: Where to write.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._last: dict[str, float] = {}
        self._silent: dict[str, int] = {}

    def error(self, what: str, error: Exception) -> None:
        """Write one line, with how many of this kind were left out since the last one."""
        now = time.monotonic()
        if now - self._last.get(what, -_LOG_EVERY_SECONDS) < _LOG_EVERY_SECONDS:
            self._silent[what] = self._silent.get(what, 0) + 1
            return
        self._last[what] = now
        left_out = self._silent.pop(what, 0)
        more = f" ({left_out} more since the last line)" if left_out else ""
        self._logger.error("%s: %s%s", what, error_text(error), more)
