"""The libraries that servers' tools made, one after another."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from agentkit.agent.session import Route, RouteRequest
from agentkit.interop.mcp.client.naming import prefixed
from agentkit.library.conflicts import distinct_name
from agentkit.library.library import Library
from agentkit.tools.tool import Tool

_KEPT = 32


@dataclass(frozen=True, kw_only=True)
class ToolSnapshot:
    """Tools at one moment.

    Attributes:
        number: Grows by one with each change.
        tools: The tools, in the servers' order.
    """

    number: int
    tools: tuple[Tool, ...]

    @cached_property
    def library(self) -> Library:
        """The tools alone, as a library."""
        return Library(self.tools)


class ToolSnapshots:
    """The newest tools, and older ones for conversations that began with them.

    Args:
        name: The label that tells of the snapshot in an episode is ``mcp:name``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._label = f"mcp:{name}"
        self._current = ToolSnapshot(number=0, tools=())
        self._older: OrderedDict[int, ToolSnapshot] = OrderedDict()
        self._mixed: WeakKeyDictionary[Library, dict[int, Library]] = WeakKeyDictionary()

    @property
    def current(self) -> ToolSnapshot:
        """The newest."""
        return self._current

    def take(self, tools: Iterable[Tool]) -> None:
        """Make a snapshot of ``tools``, if they differ from the newest one's."""
        given = tuple(tools)
        before = self._current
        if _facts(given) == _facts(before.tools) and before.number:
            return
        self._older[before.number] = before
        while len(self._older) > _KEPT:
            self._older.popitem(last=False)
        self._current = ToolSnapshot(number=before.number + 1, tools=given)

    def route(self, asked: RouteRequest) -> Route:
        """The run's library with the newest tools, or with those of its conversation."""
        snapshot = self._current
        label = asked.labels.get(self._label, "")
        if not asked.is_new and label.isdigit():
            snapshot = self._older.get(int(label), snapshot)
        mixed = self._mixed.setdefault(asked.library, {})
        library = mixed.get(snapshot.number)
        if library is None:
            library = self._library(asked.library, snapshot)
            mixed[snapshot.number] = library
        return Route(library=library, labels={self._label: str(snapshot.number)})

    def _library(self, base: Library, snapshot: ToolSnapshot) -> Library:
        now = {tool.name for tool in snapshot.tools}
        gone = [tool.name for tool in base if self._is_ours(tool) and tool.name not in now]
        kept = base.without(gone)
        return kept.with_tools(self._beside(tool, kept) for tool in snapshot.tools)

    def _beside(self, tool: Tool, library: Library) -> Tool:
        """The tool under a name that takes none from a tool of somebody else."""
        taken = library.get(tool.name)
        if taken is None or self._is_ours(taken):
            return tool
        name = distinct_name(prefixed(self._name, tool.name), library)
        return tool.with_definition(replace(tool.definition, name=name))

    def _is_ours(self, tool: Tool) -> bool:
        origin = tool.definition.origin
        return origin.kind == "mcp" and origin.reference.startswith(f"mcp:{self._name}#")


def _facts(tools: Iterable[Tool]) -> list[tuple[str, str, bool]]:
    return [(tool.name, tool.definition.digest, tool.needs_approval) for tool in tools]
