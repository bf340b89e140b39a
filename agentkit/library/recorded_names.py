"""Under which name a library holds a tool in code: its own, or the one that it was given there.

A definition that came under a name which was taken is stored as ``name__2``
(``agentkit.library.conflicts``). It keeps where it came from and the name that it had, and that is
how the same tool in code finds it again.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

_Source = tuple[str, str, str]


class RecordedNames:
    """The names that a library gave to definitions from elsewhere.

    Args:
        tools: What the library holds, by name.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._renamed: dict[_Source, str] = {}
        for name, tool in tools.items():
            if tool.definition.origin.original_name and (source := _source(tool.definition)):
                self._renamed.setdefault(source, name)

    def of(self, definition: ToolDefinition) -> str:
        """The name of a definition here; its own when nothing else is recorded."""
        source = _source(definition)
        namesake = self._tools.get(definition.name)
        if source is None or (namesake and _source(namesake.definition) == source):
            return definition.name
        return self._renamed.get(source, definition.name)


def _source(definition: ToolDefinition) -> _Source | None:
    """Kind, place and name at the source; None when the place is not known."""
    origin = definition.origin
    if not origin.reference:
        return None
    return origin.kind, origin.reference, origin.original_name or definition.name
