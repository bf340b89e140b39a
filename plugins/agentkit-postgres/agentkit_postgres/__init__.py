"""Tool libraries and episodes in PostgreSQL, for agentkit: a fleet shares one database."""

from __future__ import annotations

from agentkit_postgres._version import __version__
from agentkit_postgres.store import PostgresStore

__all__ = ["PostgresStore", "__version__", "open_postgres"]


def open_postgres(url: str) -> PostgresStore:
    """Open the store of a URL; ``open_store`` calls this for ``postgresql:`` and ``postgres:``."""
    return PostgresStore(url)
