"""``Promise``: what stands in a frame for a value that is still being worked out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from agentkit.composites.interpreter.frames import Frame
from agentkit.composites.interpreter.tasks import ended


class Promise:
    """The value that a variable will have when a task has ended."""

    __slots__ = ("_place", "_task")

    def __init__(self, task: asyncio.Task[Frame], place: int) -> None:
        self._task = task
        self._place = place

    async def value(self) -> Any:
        """The value; the error of the task when it failed."""
        await ended(self._task)
        return self._task.result()[self._place]


async def resolve(frame: Frame, places: Iterable[int]) -> None:
    """Wait until variables have their values."""
    for place in places:
        while type(frame[place]) is Promise:
            frame[place] = await frame[place].value()
