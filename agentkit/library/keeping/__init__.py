"""Keeping many episodes: gathered by a writer, redacted before they are kept, gone when old."""

from __future__ import annotations

from agentkit.library.keeping.redacting import RedactingStore
from agentkit.library.keeping.retention_loop import RetentionLoop
from agentkit.library.keeping.settings import WriterSettings, WriterState
from agentkit.library.keeping.split import SplitStore, with_episodes
from agentkit.library.keeping.writer import EpisodeWriter, writer_of

__all__ = [
    "EpisodeWriter",
    "RedactingStore",
    "RetentionLoop",
    "SplitStore",
    "WriterSettings",
    "WriterState",
    "with_episodes",
    "writer_of",
]
