"""One implementation for sync and async callers: an event loop is made only when something waits.

Most candidates are made of sync tools. Making a loop for each costs more than judging it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agentkit._waiting import wait_for
from agentkit.errors import UsageError

T = TypeVar("T")


class LoopNeeded(Exception):  # noqa: N818 - a signal inside this package
    """The next step waits, and no event loop runs."""


def require_loop() -> None:
    """Say that the next step waits.

    Raises:
        LoopNeeded: No event loop runs; ``from_sync`` begins again in one.
    """
    if not _is_loop_running():
        raise LoopNeeded


def from_sync(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, for code that has no event loop.

    Args:
        begin: Makes the coroutine. It calls ``require_loop`` before it awaits anything that
            waits, and has changed nothing by then, since it is begun a second time.

    Raises:
        UsageError: An event loop runs already.
    """
    if _is_loop_running():
        raise UsageError(
            "a sync method of ToolManager was called where an event loop runs; await its async "
            "form there (insert_async, submit_async, advance_async, ...)"
        )
    try:
        return completed(begin())
    except LoopNeeded:
        return wait_for(begin())


def completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, whether an event loop runs or not."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise AssertionError("a step waited without require_loop()")


def _is_loop_running() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
