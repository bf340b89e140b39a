"""A store of two parts, and one that redacts, pass things on and have the abilities of their parts."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from agentkit import Episode, ToolDefinition
from agentkit.library import EpisodeStore, LibraryChange, Store
from agentkit.library.capabilities import (
    BatchAppending,
    ChangeLog,
    Pruning,
    PruningPreview,
    Retention,
    Watchable,
)
from agentkit.library.episode_stores import RedactingStore, with_episodes
from agentkit.library.memory import MemoryStore
from agentkit.testing import StoreConformance


class TestSplitStore(StoreConformance):
    """A store of two parts passes the suite of every store."""

    @pytest.fixture
    def store(self):
        store = with_episodes(MemoryStore(), episodes=MemoryStore())
        yield store
        store.close()


def test_each_part_keeps_its_own():
    """Definitions and events are in the one, episodes in the other, and closing closes both."""
    tools, episodes = MemoryStore(), MemoryStore()
    with closing(with_episodes(tools, episodes=episodes)) as store:
        change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        assert store.commit(change, expected_version=0) == 1
        store.append(Episode(episode_id="a", request="?"))
        assert (tools.versions(), episodes.versions()) == ((1,), ())
        assert (tools.get("a"), episodes.get("a").request) == (None, "?")
        assert [one.version for one in store.history("ping")] == [1]
    for part in (tools, episodes):
        with pytest.raises(Exception, match="closed"):
            part.versions()


def test_abilities_are_those_of_the_parts(plain_store):
    """The whole can do what its parts can, and nothing else."""
    store = with_episodes(MemoryStore(), episodes=MemoryStore())
    for ability in (Watchable, ChangeLog, BatchAppending, Pruning, PruningPreview):
        assert isinstance(store, ability)
    plain = with_episodes(MemoryStore(), episodes=plain_store)
    assert isinstance(plain, Store)
    assert isinstance(plain, Watchable)
    assert not isinstance(plain, BatchAppending | Pruning | PruningPreview)


def test_what_is_kept_is_redacted(plain_store):
    """One by one or many at once, nothing reaches the store as it came."""
    for kept in (MemoryStore(), plain_store):
        store = RedactingStore(kept, lambda one: replace(one, request="-"))
        store.append(Episode(episode_id="a", request="secret"))
        store.append_many([Episode(episode_id="b", request="secret")])
        assert isinstance(store, EpisodeStore)
        assert [one.request for one in kept.select()] == ["-", "-"]
        assert [one.request for one in store.select()] == ["-", "-"]
        assert store.get("a").request == "-"
    assert not isinstance(store, Pruning)
    with closing(RedactingStore(MemoryStore(), lambda one: one)) as pruned:
        pruned.append(Episode(episode_id="a", request="?"))
        assert pruned.prune(Retention(max_count=0)).count == 1


def test_a_redactor_that_fails_keeps_nothing():
    """An episode that could not be redacted is not kept as it is; whoever appends hears of it."""

    def fail(_):
        raise RuntimeError("no")

    kept = MemoryStore()
    with pytest.raises(RuntimeError, match="no"):
        RedactingStore(kept, fail).append(Episode(episode_id="a", request="?"))
    assert list(kept.select()) == []
