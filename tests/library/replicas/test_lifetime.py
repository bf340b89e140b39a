"""The thread of a replica ends with it, and a fork or an event loop changes nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time

import pytest

from agentkit import Agent
from agentkit.errors import StoreError
from agentkit.library import Replica
from agentkit.testing import ScriptedModel

NAME = "agentkit-replica"


def threads():
    """The threads of replicas."""
    return [thread for thread in threading.enumerate() if thread.name == NAME]


@pytest.fixture(autouse=True)
def nothing_left(eventually):
    """Whatever a test did, no thread is left when it is over."""
    yield
    eventually(lambda: threads() == [])


def test_closing_ends_the_thread_and_the_store(kept):
    """A second close does nothing."""
    replica = Replica(kept)
    assert len(threads()) == 1
    replica.close()
    assert threads() == []
    replica.close()


def test_stopping_leaves_the_store_open(kept, put):
    """Who made the store may go on with it; the replica serves what it has, and looks if asked."""
    replica = Replica(kept, hints=False)
    replica.stop()
    put(kept, "a")
    assert (threads(), replica.load().version) == ([], 0)
    assert replica.refresh().version == 1


def test_a_replica_that_nobody_holds_ends(kept, eventually):
    """A program that forgets to close one has no thread for ever."""
    Replica(kept)
    gc.collect()
    eventually(lambda: threads() == [])


def test_a_store_that_is_closed_under_it_does_no_harm(kept, eventually):
    """The thread says that the store is away, and ends when it is told to."""
    replica = Replica(kept, refresh_seconds=0.01)
    kept.close()
    eventually(lambda: replica.status.state == "away")
    assert "closed" in replica.status.last_error
    replica.close()


def test_a_plain_agent_starts_no_thread(kept):
    """Nobody pays for what was not asked for."""
    Agent(ScriptedModel(["a"]), store=kept).run_sync("hi")
    assert threads() == []


def test_event_loops_come_and_go(kept, put, eventually):
    """A replica belongs to no event loop."""
    with Replica(kept, refresh_seconds=0.01) as replica:
        agent = Agent(ScriptedModel(["a", "b"]), store=replica)
        asyncio.run(agent.run("hi"))
        put(kept, "a")
        eventually(lambda: agent.library.version == 1)
        assert asyncio.run(agent.run("hi")).episode.library_version == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_fork_follows_on_its_own(tmp_path, put, kind):
    """A worker that was forked serves what was there, and follows what comes, as its parent."""
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path / 'store.db'}"
    with Replica(url, refresh_seconds=0.01) as replica:
        agent = Agent(ScriptedModel(["a"]), store=replica)
        put(replica, "a")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            _in_child(replica, agent, write, put if kind == "memory" else None)
        os.close(write)
        with os.fdopen(read) as answers:
            assert answers.readline() == "1\n"
            if kind == "sqlite":
                put(replica, "b")
            assert answers.readline() == "2 current\n"
        os.waitpid(child, 0)
        assert put(replica, "c") == agent.library.version


def _in_child(replica, agent, write, put):  # pragma: no cover - another process
    """Tells the version that is there, the next one, and how it stands; never returns."""
    try:
        with os.fdopen(write, "w") as answers:
            print(replica.load().version, file=answers, flush=True)
            if put is not None:
                put(replica, "b")
            until = time.monotonic() + 20
            while agent.library.version == 1 and time.monotonic() < until:
                time.sleep(0.01)
            print(agent.library.version, replica.status.state, file=answers, flush=True)
    finally:
        os._exit(0)


def test_closing_ends_the_wait_for_a_hint(kept, eventually):
    """The watch is closed under the thread, which takes that for no fault and says nothing."""
    waits = Waits(kept)
    replica = Replica(waits, refresh_seconds=3600)
    eventually(waits.begun.is_set)
    replica.stop()
    assert waits.ended == ["closed"]
    assert threads() == []


class Waits:
    """A store whose watch hears nothing, and waits until it is closed however short it may wait."""

    def __init__(self, store):
        self._store = store
        self.begun, self._closed, self.ended = threading.Event(), threading.Event(), []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def watch(self):
        return self

    def wait(self, timeout_seconds):
        self.begun.set()
        self.ended.append("closed" if self._closed.wait(20) else "late")
        raise StoreError("the watch is closed")

    def close(self):
        self._closed.set()
