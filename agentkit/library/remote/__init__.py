"""``http:`` and ``https:``, a library on a server; see docs/stores.md."""

from __future__ import annotations

from agentkit.library.remote.store import RemoteStore, open_remote

__all__ = ["RemoteStore", "open_remote"]
