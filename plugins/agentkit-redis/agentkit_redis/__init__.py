"""Tool libraries and episodes in Redis, for agentkit: quick commits, shared by a fleet."""

from __future__ import annotations

from agentkit_redis._version import __version__

__all__ = ["__version__"]
