"""From code without an event loop to a coroutine's result."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, run in an event loop of its own.

    ``asyncio.run`` would do, were it not for what it does with the result: in the main thread it
    looks up the handler of Ctrl-C twice, which makes the text of the task, and with it that of the
    result (``signal.getsignal`` of Python 3.11). For a result that holds hundreds of tools this
    costs more than to find them; so the task that it runs returns nothing.

    Raises:
        RuntimeError: An event loop runs in this thread already.
    """
    import asyncio

    results: list[T] = []

    async def keep() -> None:
        results.append(await coroutine)

    asyncio.run(keep())
    return results[0]
