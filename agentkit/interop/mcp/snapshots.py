"""The libraries that servers' tools make, one after another, and their place in a store.

In a store their words can evolve, and changes are seen after a restart.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from agentkit.agent.session import Route, RouteRequest
from agentkit.errors import UsageError
from agentkit.evolution.manager import ToolManager
from agentkit.interop.mcp.listing import prefixed, reference_fingerprint
from agentkit.library.library import Library
from agentkit.library.merging import distinct_name
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import ToolDefinition
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
        self.current = ToolSnapshot(number=0, tools=())
        self._name = name
        self._label = f"mcp:{name}"
        self._older: OrderedDict[int, ToolSnapshot] = OrderedDict()
        self._mixed: WeakKeyDictionary[Library, dict[int, Library]] = WeakKeyDictionary()

    def take(self, tools: Iterable[Tool]) -> None:
        """Make a snapshot of ``tools``, if they differ from the newest one's."""
        given, before = tuple(tools), self.current
        if _facts(given) == _facts(before.tools) and before.number:
            return
        self._older[before.number] = before
        while len(self._older) > _KEPT:
            self._older.popitem(last=False)
        self.current = ToolSnapshot(number=before.number + 1, tools=given)

    def route(self, asked: RouteRequest) -> Route:
        """The run's library with the newest tools, or with those of its conversation."""
        snapshot = self.current
        label = asked.labels.get(self._label, "")
        if not asked.is_new and label.isdigit():
            snapshot = self._older.get(int(label), snapshot)
        mixed = self._mixed.setdefault(asked.library, {})
        if snapshot.number not in mixed:
            mixed[snapshot.number] = self._library(asked.library, snapshot)
        return Route(library=mixed[snapshot.number], labels={self._label: str(snapshot.number)})

    def _library(self, base: Library, snapshot: ToolSnapshot) -> Library:
        now = {tool.name for tool in snapshot.tools}
        kept = base.without(
            [tool.name for tool in base if self._is_ours(tool) and tool.name not in now]
        )
        return kept.with_tools(self._beside(tool, kept) for tool in snapshot.tools)

    def _beside(self, tool: Tool, library: Library) -> Tool:
        """The tool under a name that takes none from a tool of somebody else."""
        taken = library.get(tool.name)
        if taken is None or self._is_ours(taken):
            return tool
        name = distinct_name(prefixed(self._name, tool.name), library)
        return tool.with_definition(replace(tool.definition, name=name))

    def _is_ours(self, tool: Tool) -> bool:
        return _server_of(tool.definition) == self._label


def _facts(tools: Iterable[Tool]) -> list[tuple[str, str, bool]]:
    return [(tool.name, tool.definition.digest, tool.needs_approval) for tool in tools]


def keep_tools(manager: ToolManager, tools: Iterable[Tool]) -> int:
    """Write the definitions of a server's tools into a store, as the Tool Manager's import.

    A tool whose server says what it said before keeps the words that it evolved to. One whose new
    text was approved gets that.

    Args:
        manager: Writes.
        tools: The offered tools of servers.

    Returns:
        The library version afterwards.

    Raises:
        UsageError: The library has another tool of that name, which is not of that server.
        StoreError: The store failed, or other writers were faster every time.
    """
    definitions = [tool.definition for tool in tools]

    def build(library: Library) -> LibraryChange | None:
        new = tuple(one for one in definitions if not _is_kept(one, library))
        if not new:
            return None
        identity = f"mcp-{uuid.uuid4().hex}"
        return LibraryChange(proposal_id=identity, upserts=new, reason="listed by an MCP server")

    return manager.edit(build, operation="import")


def approved_in(library: Library, server: str) -> dict[str, str]:
    """What a library knows of a server's tools, to be passed to ``McpServer`` as ``approved``.

    Args:
        library: A library that ``keep_tools`` filled.
        server: The server's name.
    """
    known: dict[str, str] = {}
    for tool in library:
        found = reference_fingerprint(tool.definition)
        if found is not None and _server_of(tool.definition) == f"mcp:{server}":
            known[tool.definition.origin.original_name or tool.name] = found
    return known


def _is_kept(definition: ToolDefinition, library: Library) -> bool:
    known = library.get(definition.name)
    if known is None:
        return False
    if _server_of(known.definition) != _server_of(definition):
        raise UsageError(
            f"the library has a tool {definition.name!r} that is not of this MCP server; offer the "
            "server's tools under its own name: McpServer(..., name='files', prefix=True)"
        )
    return reference_fingerprint(known.definition) == reference_fingerprint(definition)


def _server_of(definition: ToolDefinition) -> str:
    """Where a definition says that it comes from, without the fingerprint."""
    return definition.origin.reference.partition("#")[0] if definition.origin.kind == "mcp" else ""
