"""Stores for the tests of the writer: one behind a switch, one that refuses, one without abilities."""

from __future__ import annotations

import threading

import pytest

from agentkit.errors import EpisodeFormatError, StoreUnavailableError
from agentkit.library import EpisodeFilter
from agentkit.library.memory import MemoryStore


class SwitchedStore(MemoryStore):
    """A real store behind a switch, which outlives its writers: closing it does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.is_on = threading.Event()
        self.is_on.set()
        self.batches: list[int] = []
        self.closed = 0

    def append_many(self, episodes):
        """Keep episodes while switched on."""
        if not self.is_on.is_set():
            raise StoreUnavailableError("switched off")
        self.batches.append(len(episodes))
        super().append_many(episodes)

    def close(self):
        """Count it."""
        self.closed += 1


class PickyStore(SwitchedStore):
    """Refuses episodes whose request says so."""

    def append_many(self, episodes):
        """Keep all or none."""
        for one in episodes:
            if one.request == "bad":
                raise EpisodeFormatError(f"episode {one.episode_id!r} is not to our taste")
        super().append_many(episodes)


class OneByOneStore:
    """A store without abilities, as the least plugin has it."""

    def __init__(self) -> None:
        self.kept = MemoryStore()

    def append(self, episode):
        """Keep one."""
        if episode.request == "bad":
            raise EpisodeFormatError("no")
        self.kept.append(episode)

    def get(self, episode_id):
        """One of them."""
        return self.kept.get(episode_id)

    def select(self, matching=EpisodeFilter()):  # noqa: B008
        """Those that match."""
        return self.kept.select(matching)

    def close(self):
        """Nothing to do."""


@pytest.fixture
def store():
    """A store that can be switched off."""
    return SwitchedStore()


@pytest.fixture
def picky_store():
    """A store that refuses some episodes."""
    return PickyStore()


@pytest.fixture
def plain_store():
    """A store that can do no more than the seam says."""
    return OneByOneStore()
