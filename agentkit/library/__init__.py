"""2. The versioned set of tools: the snapshot, and the seam that keeps it.

The stores themselves load with ``open_store(url)``; importing this package loads none of them, nor
the events, which agents do not write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door
from agentkit.library.library import Library, nearest_names
from agentkit.library.store import (
    EpisodeFilter,
    EpisodeStore,
    EventStore,
    LibraryChange,
    Store,
    ToolRevision,
    ToolStore,
)

if TYPE_CHECKING:
    from agentkit.library.code_writing import bind_code
    from agentkit.library.events import Author, LibraryEvent
    from agentkit.library.opening import open_store
    from agentkit.library.replicas import Replica

__all__ = [
    "Author",
    "EpisodeFilter",
    "EpisodeStore",
    "EventStore",
    "Library",
    "LibraryChange",
    "LibraryEvent",
    "Replica",
    "Store",
    "ToolRevision",
    "ToolStore",
    "bind_code",
    "nearest_names",
    "open_store",
]

__getattr__ = lazy_door(
    __name__,
    {
        "Author": "agentkit.library.events",
        "LibraryEvent": "agentkit.library.events",
        "Replica": "agentkit.library.replicas",
        "bind_code": "agentkit.library.code_writing",
        "open_store": "agentkit.library.opening",
    },
)
