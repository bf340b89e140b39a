"""A store whose episodes go through a writer passes the suite of every store, flushed or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentkit.library import Store
from agentkit.library.episode_stores import with_episodes
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore
from agentkit.testing import StoreConformance


class TestWriter(StoreConformance):
    """What is pending is read as if it were kept; the writer is of this process alone."""

    @pytest.fixture(params=[0.0, 60.0], ids=["at once", "lingering"])
    def store(self, request, tmp_path) -> Iterator[Store]:
        """A library in memory, episodes through a writer in a file."""
        writer = EpisodeWriter(
            SQLiteStore(tmp_path / "episodes.db"),
            spill=tmp_path / "spill",
            settings=WriterSettings(linger_seconds=request.param),
        )
        store = with_episodes(MemoryStore(), episodes=writer)
        yield store
        store.close()
