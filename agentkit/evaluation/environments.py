"""Worlds for tasks: plain tools, environments from a user's Python file, and guards around both."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from agentkit.errors import UsageError
from agentkit.evaluation.task import Benchmark, Environment, Task
from agentkit.messages import JsonObject
from agentkit.tools.sources.function import import_place
from agentkit.tools.tool import Tool

EnvironmentFactory: TypeAlias = Callable[[Task], Environment]
"""Makes the world of one attempt at a task."""


def as_json_value(value: object) -> Any:
    """``value`` itself, once it is known to be JSON data that every program can read.

    Raises:
        ValueError: It holds NaN, an infinite number, half a surrogate pair, or another object.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode("utf-8")
    return value


class ToolsEnvironment:
    """Tools that act on no world of their own, such as calculators: its state is always empty.

    Args:
        tools: The tools, bound.

    Example:
        >>> from agentkit import tool
        >>> @tool
        ... def double(x: float) -> float:
        ...     '''Twice a number.'''
        ...     return 2 * x
        >>> ToolsEnvironment([double]).state()
        {}
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = tuple(tools)

    def tools(self) -> Sequence[Tool]:
        """The tools."""
        return self._tools

    def state(self) -> JsonObject:
        """Nothing."""
        return {}


def with_tools(tools: Iterable[Tool]) -> EnvironmentFactory:
    """The same tools for every task, which act on no world of their own.

    Args:
        tools: The tools, bound; a ``Library`` will do.
    """
    given = tuple(tools)

    def made(_task: Task) -> Environment:
        return ToolsEnvironment(given)

    return made


def tools_of(environment: EnvironmentFactory, task: Task) -> tuple[Tool, ...]:
    """The tools of the world of a task, which is made to look at it and then thrown away.

    Raises:
        UsageError: Making it fails, or what it gives cannot be offered or judged.
    """
    try:
        world = environment(task)
        tools = tuple(world.tools())
        as_json_value(world.state())
    except Exception as error:
        raise UsageError(
            f"the environment does not take the task {task.task_id!r} "
            f"({type(error).__name__}: {error})"
        ) from error
    for one in tools:
        if not isinstance(one, Tool):
            raise UsageError(
                f"the environment gives {one!r:.80} as a tool; make it one with tool(...)"
            )
    return tools


def environment_from(target: str) -> EnvironmentFactory:
    """Load an environment factory from a Python file or module, whose code runs.

    Args:
        target: ``path/to/file.py:Name`` or ``package.module:Name``. ``Name`` is a class or a
            function that takes a ``Task`` and gives an ``Environment``: an object with the methods
            ``tools()`` and ``state()``. It may also be a library or a list of tools. Without
            ``:Name`` the module's only class of that kind is taken, or all tools of a module that
            has no such class.

    Raises:
        UsageError: It cannot be imported, or makes no environments.
    """
    place, _, name = target.partition(":")
    module = import_place(place)
    if not name:
        return _of_module(vars(module), target)
    made = getattr(module, name, None)
    if made is None:
        names = ", ".join(sorted(known for known in vars(module) if not known.startswith("_")))
        raise UsageError(f"{target}: {place} has no {name!r}; it has: {names}")
    if isinstance(made, Iterable) and not inspect.isclass(made):
        return with_tools(_all_tools(made, target))
    if isinstance(made, Tool) or not callable(made) or not _takes_a_task(made):
        raise UsageError(
            f"{target}: {name} has to be a class or a function that takes one argument, the task; "
            "write def __init__(self, task)"
        )
    return cast("EnvironmentFactory", made)


def _of_module(names: JsonObject, target: str) -> EnvironmentFactory:
    found = [value for value in names.values() if _is_environment(value, names["__name__"])]
    tools = [value for value in names.values() if isinstance(value, Tool)]
    if not found and tools:
        return with_tools(tools)
    if len(found) != 1:
        known = ", ".join(sorted(value.__name__ for value in found)) or "none"
        raise UsageError(
            f"{target}: expected one class with the methods tools() and state(), or functions "
            f"decorated with @tool; found these classes: {known}; say which: {target}:Name"
        )
    if not _takes_a_task(found[0]):
        raise UsageError(
            f"{target}: {found[0].__name__} does not take the task; write def __init__(self, task)"
        )
    return cast("EnvironmentFactory", found[0])


def _all_tools(values: Iterable[object], target: str) -> list[Tool]:
    listed = list(values)
    tools = [value for value in listed if isinstance(value, Tool)]
    if not tools or len(tools) != len(listed):
        raise UsageError(f"{target}: expected nothing but tools; decorate functions with @tool")
    return tools


def _is_environment(value: object, module: str) -> bool:
    return (
        inspect.isclass(value)
        and value.__module__ == module
        and all(callable(getattr(value, name, None)) for name in ("tools", "state"))
    )


def _takes_a_task(made: Callable[..., object]) -> bool:
    try:
        inspect.signature(made).bind(None)
    except TypeError:
        return False
    except ValueError:  # a callable written in C does not tell
        return True
    return True


T = TypeVar("T")


class BrokenTaskError(Exception):
    """A task cannot be asked; becomes an episode with the fault ``gold_error``."""


class GuardedWorld:
    """An environment whose own errors are kept apart from the agent's.

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
        """The observable state of the world.

        Raises:
            BrokenTaskError: The environment raised.
        """
        return _guarded(self._world.state, "state() of its environment")


def make_world(benchmark: Benchmark, task: Task) -> GuardedWorld | None:
    """A fresh world for the task; None where no tool is run.

    Raises:
        BrokenTaskError: The environment cannot be made.
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
