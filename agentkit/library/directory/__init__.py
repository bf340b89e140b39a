"""The store ``dir:PATH``: one readable file for each tool, made for review in git."""

from __future__ import annotations

from agentkit.library.directory.hand_edits import HandEdit
from agentkit.library.directory.store import DirectoryStore, open_directory

__all__ = ["DirectoryStore", "HandEdit", "open_directory"]
