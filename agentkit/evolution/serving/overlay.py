"""A library with a tool defined otherwise, and everything made of that tool moved along."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from agentkit.library.library import Library
from agentkit.library.linking import link
from agentkit.library.pins import repinned
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def overlaid(library: Library, definitions: Mapping[str, ToolDefinition]) -> Library:
    """The library with these definitions in place of those of the same name.

    Code stays where it was. Composites above are pinned to the new definitions, and linked anew;
    their words stay. Tools keep their places, so that a prompt begins as before up to the first
    tool that differs.

    Args:
        library: The snapshot to start from.
        definitions: By tool name.

    Raises:
        LibraryError: Composites above call each other in a circle, so no pin can be moved.
    """
    changed = [
        one
        for name, one in definitions.items()
        if name not in library or library[name].definition.digest != one.digest
    ]
    if not changed:
        return library
    moved = repinned(library, changed)
    return link(library.with_tools(_with_code(library, one) for one in moved))


def _with_code(library: Library, definition: ToolDefinition) -> Tool:
    tool = library.get(definition.name)
    return Tool(definition=definition) if tool is None else tool.with_definition(definition)


class Overlays:
    """Keeps the libraries that were made, so that one change of one library is always one object.

    Whatever is worked out for a library (what was serialised, search indexes, validators) holds on
    then from run to run. A library is forgotten with the one that it was made from.
    """

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Library, dict[tuple[str, ...], Library]]
        self._made = WeakKeyDictionary()

    def of(self, library: Library, *definitions: ToolDefinition) -> Library:
        """As ``overlaid``; the same object for the same library and definitions."""
        made = self._made.setdefault(library, {})
        key = tuple(sorted(f"{one.digest} {one.name}" for one in definitions))
        known = made.get(key)
        if known is None:
            known = overlaid(library, {one.name: one for one in definitions})
            if known is not library:  # which would keep itself alive
                made[key] = known
        return known
