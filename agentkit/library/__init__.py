"""2. The versioned set of tools: the snapshot, and the seam that keeps it.

The stores themselves load with ``open_store(url)``; importing this package loads none of them.
"""

from agentkit.library.library import Library, nearest_names
from agentkit.library.store import (
    EpisodeFilter,
    EpisodeStore,
    LibraryChange,
    Store,
    ToolRevision,
    ToolStore,
)

__all__ = [
    "EpisodeFilter",
    "EpisodeStore",
    "Library",
    "LibraryChange",
    "Store",
    "ToolRevision",
    "ToolStore",
    "nearest_names",
]
