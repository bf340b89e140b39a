"""Servers' tools in a store: where their words can evolve, and changes are seen after a restart."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from agentkit.errors import UsageError
from agentkit.evolution.manager import ToolManager
from agentkit.interop.mcp.client.translation import reference_fingerprint
from agentkit.library.library import Library
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


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
        found, origin = reference_fingerprint(tool.definition), tool.definition.origin
        if found is not None and origin.reference.startswith(f"mcp:{server}#"):
            known[origin.original_name or tool.name] = found
    return known


def _is_kept(definition: ToolDefinition, library: Library) -> bool:
    known = library.get(definition.name)
    if known is None:
        return False
    if _server(known.definition) != _server(definition):
        raise UsageError(
            f"the library has a tool {definition.name!r} that is not of this MCP server; offer the "
            "server's tools under its own name: McpServer(..., name='files', prefix=True)"
        )
    return reference_fingerprint(known.definition) == reference_fingerprint(definition)


def _server(definition: ToolDefinition) -> str:
    """Where a definition says that it comes from, without the fingerprint."""
    return definition.origin.reference.partition("#")[0] if definition.origin.kind == "mcp" else ""
