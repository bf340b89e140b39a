"""Waiting for children in the middle of a program, whose interpreter is made of plain functions.

A plain function cannot await. So a run that has to wait happens in a greenlet: where it needs the
result of a coroutine it switches to the task outside, which awaits the coroutine and switches back
with what came of it, the way SQLAlchemy waits for its drivers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any


async def run_waiting(function: Callable[[], Any]) -> Any:
    """The result of a function that, and that alone, may call ``waited``."""
    from greenlet import getcurrent, greenlet

    outside = getcurrent()
    inside = greenlet(function, outside)
    inside.gr_context = outside.gr_context  # context variables are those of the task
    outcome = inside.switch()
    while not inside.dead:
        try:
            value = await outcome
        except BaseException as error:  # noqa: BLE001 - raised where the result was wanted
            outcome = inside.throw(error)
        else:
            outcome = inside.switch(value)
    return outcome


def waited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine, inside ``run_waiting``."""
    from greenlet import getcurrent

    outside = getcurrent().parent
    assert outside is not None  # a program that waits runs nowhere else
    return outside.switch(coroutine)


async def side_by_side(begun: Iterator[Coroutine[Any, Any, Any]]) -> list[Any]:
    """The results of coroutines that run at the same time; of several errors the first in order.

    When it ends, for whatever reason, nothing that it has started still runs.
    """
    tasks: list[asyncio.Task[Any]] = []
    late: Exception | None = None
    try:
        try:
            for work in begun:
                tasks.append(asyncio.create_task(work))  # noqa: PERF401 - those that began stay
        except Exception as error:  # noqa: BLE001 - raised when all before it have succeeded
            late = error
        results = [await task for task in tasks]
        if late is not None:
            raise late
        return results
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
