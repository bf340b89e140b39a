"""Running a blocking function beside the event loop, without ever waiting for one that hangs."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(function: Callable[[], T]) -> T:
    """Await ``function`` in a daemon thread of its own.

    ``asyncio.to_thread`` is not used because its pool is joined when the loop closes: one tool
    that hangs would keep the program from ending long after its timeout was reported. A thread
    whose caller was cancelled is abandoned; its result is dropped.

    Raises:
        BaseException: Whatever ``function`` raises, unchanged.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]  # no error means there is a value

    def work() -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except StopIteration as stop:
            # A future refuses StopIteration, because it would end the awaiting coroutine.
            error = RuntimeError(f"the function raised StopIteration({stop})")
        except BaseException as raised:  # noqa: BLE001 - carried over to the awaiting task
            error = raised
        if not loop.is_closed():
            _post(loop, lambda: deliver(value, error))

    threading.Thread(target=work, name="agentkit-tool", daemon=True).start()
    return await future


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        if not loop.is_closed():  # closed between the check and the call: nobody waits any more
            raise
