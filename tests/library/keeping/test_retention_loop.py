"""A loop prunes again and again, says what failed, and goes on."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from agentkit import Episode
from agentkit.errors import StoreUnavailableError, UsageError
from agentkit.library.capabilities import EpisodeVolume, Retention
from agentkit.library.episode_stores import RetentionLoop
from agentkit.library.memory import MemoryStore


class LoopStore(MemoryStore):
    """Tells when it was pruned, and fails the first time."""

    def __init__(self, failures):
        super().__init__()
        self.failures = failures
        self.rounds = threading.Semaphore(0)

    def prune(self, retention: Retention) -> EpisodeVolume:
        """Prune, or fail."""
        self.rounds.release()
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("away")
        return super().prune(retention)


def rounds(store, count):
    """Wait until a store was pruned so often."""
    for _ in range(count):
        assert store.rounds.acquire(timeout=30)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_pause_at_all_is_refused(seconds):
    """A loop that would never rest is a mistake and says so."""
    with pytest.raises(UsageError, match="every_seconds"):
        RetentionLoop(LoopStore(0), Retention(), every_seconds=seconds)


def test_old_episodes_go_every_now_and_then():
    """What became too old since the last round goes in the next one."""
    store = LoopStore(0)
    store.append(Episode(episode_id="old", request="?", started_at="2020-01-01"))
    store.append(Episode(episode_id="new", request="?"))
    with RetentionLoop(store, Retention(max_age=timedelta(1)), every_seconds=0.005) as loop:
        rounds(store, 2)
        store.append(Episode(episode_id="older", request="?", started_at="2019-01-01"))
        rounds(store, 2)
    assert [one.episode_id for one in store.select()] == ["new"]
    assert loop.state.gone.count == 2
    assert loop.state.rounds >= 3


def test_a_round_that_fails_is_made_up_for(caplog):
    """With the store away the loop says so and tries again."""
    store = LoopStore(2)
    store.append(Episode(episode_id="old", request="?", started_at="2020-01-01"))
    with RetentionLoop(store, Retention(max_age=timedelta(1)), every_seconds=0.005) as loop:
        rounds(store, 4)
    assert (loop.state.failures, loop.state.gone.count) == (0, 1)
    assert "away" in loop.state.last_error
    assert "could not be deleted" in caplog.text


def test_closing_ends_the_loop_at_once():
    """The end does not wait for the next round, and a second close does nothing."""
    store = LoopStore(0)
    loop = RetentionLoop(store, Retention(), every_seconds=3600)
    loop.close()
    loop.close()
    assert loop.state.rounds == 1


def test_a_store_that_keeps_all_is_refused():
    """A store that can not let episodes go says so when the loop is made."""
    with pytest.raises(UsageError, match="can not let episodes go"):
        RetentionLoop(object(), Retention())
