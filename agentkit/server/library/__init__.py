"""The library of a store over HTTP, read-only; see docs/stores.md."""

from __future__ import annotations

from agentkit.server.library.app import create_library_app

__all__ = ["create_library_app"]
