"""Model Context Protocol, both ways: servers as tools, and a library as a server.

It is built on the official package ``mcp`` (the extra ``mcp``), which loads when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.mcp.serving.library_server import LibraryServer

__all__ = [
    "LibraryServer",
]

_MODULES = {
    "LibraryServer": "agentkit.mcp.serving.library_server",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
