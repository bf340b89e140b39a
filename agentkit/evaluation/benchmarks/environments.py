"""Worlds for tasks: plain tools, and environments out of a user's own Python file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

from agentkit.errors import UsageError
from agentkit.evaluation.task import Environment, Task
from agentkit.messages import JsonObject
from agentkit.tools.sources.python_place import import_place
from agentkit.tools.tool import Tool

EnvironmentFactory: TypeAlias = Callable[[Task], Environment]
"""Makes the world of one attempt at a task."""


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


def environment_from(target: str) -> EnvironmentFactory:
    """What makes environments, out of a Python file or module. The file is run.

    Args:
        target: ``path/to/file.py:Name`` or ``package.module:Name``. ``Name`` is a class or a
            function that takes a ``Task`` and gives an ``Environment``: an object with the methods
            ``tools()`` and ``state()``. Without ``:Name`` the module's only such class is taken.

    Raises:
        UsageError: It can not be imported, or makes no environments.
    """
    place, _, name = target.partition(":")
    module = import_place(place)
    made = getattr(module, name, None) if name else _only_environment(vars(module), target)
    if made is None:
        names = ", ".join(sorted(known for known in vars(module) if not known.startswith("_")))
        raise UsageError(f"{target}: {place} has no {name!r}; it has: {names}")
    if not callable(made) or not _takes_a_task(made):
        raise UsageError(
            f"{target}: {name or made!r} has to be a class or a function that takes one argument, "
            "the task; write def __init__(self, task)"
        )
    return cast("EnvironmentFactory", made)


def _only_environment(names: JsonObject, target: str) -> object:
    found = [value for value in names.values() if _is_environment(value, names["__name__"])]
    if len(found) != 1:
        known = ", ".join(sorted(value.__name__ for value in found)) or "none"
        raise UsageError(
            f"{target}: expected one class with the methods tools() and state(), found {known}; "
            f"say which: {target}:Name"
        )
    return found[0]


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
