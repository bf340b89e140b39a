"""Tool libraries and episodes in PostgreSQL, for agentkit: a fleet shares one database."""

from __future__ import annotations

from agentkit_postgres._version import __version__

__all__ = ["__version__"]
