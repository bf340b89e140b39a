"""From a run that reports events to an iterator that yields them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from agentkit.agent.events import Emit, RunEvent


async def stream_events(
    run: Callable[[Emit], Coroutine[Any, Any, object]],
) -> AsyncGenerator[RunEvent, None]:
    """Start ``run`` and yield what it emits; its exception is raised after the last event.

    Closing the iterator cancels the run and waits until it has recorded itself.
    """
    queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    task = asyncio.create_task(run(queue.put_nowait))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
