"""Recorded calls as worked calls (L4) of the tools that were called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentkit.errors import UsageError
from agentkit.evolution.dry_run import with_examples
from agentkit.library.library import Library
from agentkit.library.pins import repinned
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example, ToolDefinition


def check_recorded(worked_calls: Mapping[str, Sequence[Example]]) -> None:
    """Recorded calls are JSON data, as a store keeps it.

    Raises:
        UsageError: One is not.
    """
    for name, examples in worked_calls.items():
        for example in examples:
            if not (is_json(example.arguments) and is_json(example.result)):
                told = f"{example.arguments!r} gave {example.result!r}"
                raise UsageError(f"a recorded call of {name!r} is not JSON data: {told:.300}")


def with_recorded(
    library: Library, worked_calls: Mapping[str, Sequence[Example]], *, most: int
) -> tuple[ToolDefinition, ...]:
    """The definitions that change when recorded calls are added, children before parents.

    Raises:
        UsageError: A tool is a composite.
        ToolNotFoundError: The library has no tool of a name given.
        LibraryError: Composites above call each other in a circle.
    """
    changed = []
    for name, examples in worked_calls.items():
        known = library[name].definition
        if known.is_composite:
            raise UsageError(
                f"{name!r} is a composite: its worked calls are tried, by insert(), not recorded"
            )
        grown = with_examples(known, examples, most=most)
        if grown is not known:
            changed.append(grown)
    return repinned(library, changed) if changed else ()
