"""Model Context Protocol, both ways: servers as tools, and a library as a server.

It is built on the official package ``mcp`` (the extra ``mcp``), which loads when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.mcp.client.group import McpServers
    from agentkit.mcp.client.keeping import approved_in, keep_tools
    from agentkit.mcp.client.limits import McpLimits
    from agentkit.mcp.client.listing import HeldTool, ListedTool, Listing
    from agentkit.mcp.client.server import McpServer
    from agentkit.mcp.serving.exposure import HiddenTool
    from agentkit.mcp.serving.library_server import LibraryServer

__all__ = [
    "HeldTool",
    "HiddenTool",
    "LibraryServer",
    "ListedTool",
    "Listing",
    "McpLimits",
    "McpServer",
    "McpServers",
    "approved_in",
    "keep_tools",
]

_MODULES = {
    "HeldTool": "agentkit.mcp.client.listing",
    "HiddenTool": "agentkit.mcp.serving.exposure",
    "LibraryServer": "agentkit.mcp.serving.library_server",
    "ListedTool": "agentkit.mcp.client.listing",
    "Listing": "agentkit.mcp.client.listing",
    "McpLimits": "agentkit.mcp.client.limits",
    "McpServer": "agentkit.mcp.client.server",
    "McpServers": "agentkit.mcp.client.group",
    "approved_in": "agentkit.mcp.client.keeping",
    "keep_tools": "agentkit.mcp.client.keeping",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
