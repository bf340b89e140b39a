"""The store ``dir:PATH``: one readable file for each tool, made for review in git."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.library.directory.hand_edits import HandEdit
    from agentkit.library.directory.store import DirectoryStore, open_directory

__all__ = ["DirectoryStore", "HandEdit", "open_directory"]

__getattr__ = lazy_door(
    __name__,
    {
        "DirectoryStore": "agentkit.library.directory.store",
        "HandEdit": "agentkit.library.directory.hand_edits",
        "open_directory": "agentkit.library.directory.store",
    },
)
