"""Making the world of a task, and telling when it is the world that is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from agentkit.evaluation.task import Benchmark, Environment, Task
from agentkit.messages import JsonObject
from agentkit.tools.tool import Tool

T = TypeVar("T")


class BrokenTaskError(Exception):
    """A task can not be asked; becomes an episode with the fault ``gold_error``."""


class GuardedWorld:
    """An environment whose own errors are told from those of the agent.

    Args:
        world: The environment.
    """

    def __init__(self, world: Environment) -> None:
        self._world = world

    def tools(self) -> Sequence[Tool]:
        """The tools, bound to this world.

        Raises:
            BrokenTaskError: The environment raised.
        """
        return _guarded(self._world.tools, "tools() of its environment")

    def state(self) -> JsonObject:
        """What can be observed of the world.

        Raises:
            BrokenTaskError: The environment raised.
        """
        return _guarded(self._world.state, "state() of its environment")


def make_world(benchmark: Benchmark, task: Task) -> GuardedWorld | None:
    """A fresh world for the task; None where no tool is run.

    Raises:
        BrokenTaskError: The environment can not be made.
    """
    make = benchmark.environment
    if make is None:
        return None
    return GuardedWorld(_guarded(lambda: make(task), "its environment"))


def _guarded(call: Callable[[], T], what: str) -> T:
    try:
        return call()
    except Exception as error:
        raise BrokenTaskError(f"{what} raised {type(error).__name__}: {error}") from error
