"""``dir:``, a folder with one readable file for each tool; see docs/stores.md."""

from __future__ import annotations

from agentkit.library.directory.store import DirectoryStore, open_directory

__all__ = ["DirectoryStore", "open_directory"]
