"""Tools and definitions in what commands are given: modules, Python files, JSON, descriptions."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints

import click

from agentkit.agent.types import Instructions
from agentkit.errors import ReadingLimitError, UsageError
from agentkit.library import Library
from agentkit.reading import open_plain, read_stored, unpacked
from agentkit.tools.decorator import tool as as_tool
from agentkit.tools.invocation import ANY_DEPS, DepsFactory
from agentkit.tools.sources.function import import_place
from agentkit.tools.tool import Tool


def load_tools(targets: Iterable[str]) -> tuple[Tool, ...]:
    """The tools behind ``targets``.

    Args:
        targets: Each ``package.module:name`` or ``path/to/file.py:name``. The name is a tool, a
            function, a library or a list of these; without ``:name``, every tool that the module
            defines at its top level, and every ``Instructions`` with a name.

    Raises:
        UsageError: A target cannot be imported, or holds no tools.
    """
    return tuple(tool for target in targets for tool in _load(target))


def load_deps(target: str | None) -> tuple[DepsFactory | None, Any]:
    """The function that makes the deps of runs, and the type that it says it returns.

    Args:
        target: ``package.module:function`` or ``path/to/file.py:function``, after the tools of that
            file were loaded; None for none.

    Raises:
        UsageError: There is no such function, or its annotation cannot be read.
    """
    if target is None:
        return None, ANY_DEPS
    place, _, attribute = target.partition(":")
    loaded = sys.modules.get(f"agentkit_tools_{Path(place).stem}")  # its types are those of tools
    factory = getattr(loaded or import_place(place), attribute, None) if attribute else None
    if not callable(factory):
        raise UsageError(f"--deps {target} names no function; write FILE.py:FUNCTION")
    try:
        return factory, get_type_hints(factory).get("return", ANY_DEPS)
    except NameError as error:
        raise UsageError(f"--deps {target}: what it returns cannot be read ({error})") from error


def _load(target: str) -> list[Tool]:
    place, _, attribute = target.partition(":")
    module = import_place(place)
    if not attribute:
        values = vars(module).values()
        found = [value for value in values if isinstance(value, Tool)]
        found += [one for value in values if isinstance(value, Instructions) for one in value.tools]
        if not found:
            words = f"decorate functions with @tool, or name one function: {place}:function"
            raise UsageError(f"{target}: no tools at the top level of {place}; {words}")
        return found
    value: object = module
    for part in attribute.split("."):
        value = getattr(value, part, None)
        if value is None:
            names = ", ".join(sorted(name for name in vars(module) if not name.startswith("_")))
            raise UsageError(f"{target}: {place} has no {attribute!r}; it has: {names}")
    return _as_tools(value, target)


def _as_tools(value: object, target: str) -> list[Tool]:
    if isinstance(value, Tool):
        return [value]
    if isinstance(value, Library):
        return list(value)
    if callable(value):
        return [as_tool(value)]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [tool for entry in value for tool in _as_tools(entry, target)]
    words = "give a tool, a function, a library, or a list of these"
    raise UsageError(f"{target} is of type {type(value).__name__}; {words}")


def read_content(name: str) -> bytes:
    """The content of a file.

    Args:
        name: Plain or compressed with gzip, whatever its name; ``-`` for stdin.

    Raises:
        UsageError: The file cannot be read.
    """
    try:
        with click.open_file("-", "rb") if name == "-" else open_plain(name) as file:
            return unpacked(read_stored(file))
    except (OSError, EOFError, zlib.error, ReadingLimitError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name}: cannot be read ({reason})") from error
