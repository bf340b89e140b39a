"""``sqlite:``, the default store: one file that several programs may use at a time."""

from __future__ import annotations

from agentkit.library.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
