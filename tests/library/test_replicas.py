"""A replica takes up what others commit, and serves what it has while its store is away."""

from __future__ import annotations

import gc
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import (
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.library import LibraryChange, Replica, Store
from agentkit.library.dag import DAG
from agentkit.library.replicas import pause_after
from agentkit.library.sqlite import SQLiteStore
from agentkit.testing.conformance.fixtures import start_writer
from agentkit.tools.definition import Description

SECONDS = 30.0
"""How long a test waits for what must happen; nothing is asserted about how long it took."""


@pytest.fixture
def eventually():
    """Waits until something holds."""

    def wait(holds: Callable[[], bool]) -> None:
        until = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < until, "it did not happen"
            time.sleep(0.002)

    return wait


@pytest.fixture
def put():
    """Commits tools of one text on the newest version."""

    def commit(store: Store, *names: str, summary: str = "") -> int:
        version = max(store.versions(), default=0)
        description = Description(summary=summary)
        tools = tuple(ToolDefinition(name=name, description=description) for name in names)
        change = LibraryChange(proposal_id=f"p{version + 1}", upserts=tools)
        return store.commit(change, expected_version=version)

    return commit


@pytest.fixture
def kept():
    """What the store really holds, whether it is away or not."""
    store = open_store("memory:")
    yield store
    store.close()


@pytest.fixture
def far(kept):
    """The same store, which may go away."""
    return UnreliableStore(kept)


@pytest.fixture
def replicate():
    """Makes replicas that look every few milliseconds, and ends them."""
    made: list[Replica] = []

    def make(store: Store | str, **options: Any) -> Replica:
        made.append(Replica(store, **{"refresh_seconds": 0.01, **options}))
        return made[-1]

    yield make
    for replica in made:
        replica.stop()


def test_another_program_is_followed(tmp_path, replicate, eventually):
    """What a process commits reaches the replica in another one."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with replicate(url) as replica:
        with start_writer(url, "commit", "p", 5) as writer:
            writer.communicate()
        eventually(lambda: replica.load().version == 5)


def test_what_runs_ask_for_is_ready(kept, replicate, put, eventually):
    """What was worked out for a snapshot is brought up to date before the next one is shown."""
    put(kept, "a", "b")
    replica = replicate(kept)
    replica.load().derived(DAG)
    put(kept, "c")
    eventually(lambda: replica.load().version == 2)
    assert replica.load().has_derived(DAG)


def test_events_that_cannot_be_read_hold_up_no_version(kept, replicate, put, monkeypatch):
    """A damaged chain is told as trouble of the store, and the newest library is taken up."""
    replica = replicate(kept, refresh_seconds=3600)
    replica.events()

    def damaged(**_):
        raise StoreFormatError("event 1 cannot be read")

    monkeypatch.setattr(kept, "events", damaged)
    put(kept, "a")
    with pytest.raises(StoreFormatError, match="event 1"):
        replica.refresh()
    assert (replica.load().version, replica.status.state) == (1, "behind")


def test_a_follower_that_fails_is_said_and_asked_again(kept, replicate, put, eventually):
    """One who cannot take up a version does not keep others from it, and is no secret."""
    replica, seen, broken = replicate(kept), [], threading.Event()

    def fragile(library):
        if broken.is_set():
            raise RuntimeError(f"no room for version {library.version}")
        seen.append(library.version)

    replica.follow(fragile)
    broken.set()
    put(kept, "a")
    eventually(lambda: replica.status.state == "behind")
    assert "no room for version 1" in replica.status.last_error
    assert (replica.load().version, seen) == (1, [0])
    broken.clear()
    eventually(lambda: replica.status.state == "current")
    assert seen == [0, 1]


@pytest.mark.parametrize("options", [{"refresh_seconds": 0}, {"refresh_seconds": float("nan")}])
def test_numbers_that_make_no_sense_are_refused(kept, options):
    """A replica that would never look is not made."""
    with pytest.raises(UsageError):
        Replica(kept, **options)


def test_a_replica_of_a_url_opens_and_closes_it():
    """The URL of a store is enough."""
    with Replica("memory:") as replica:
        assert replica.load().version == 0
        replica.store.load()
        assert len(threads()) == 1
    assert threads() == []
    for use in (
        replica.load,
        replica.versions,
        lambda: replica.append(Episode(episode_id="e", request="hi")),
    ):
        with pytest.raises(StoreError, match="closed"):
            use()
    replica.close()


NAME = "agentkit-replica"


def threads():
    """The threads of replicas."""
    return [thread for thread in threading.enumerate() if thread.name == NAME]


@pytest.fixture(autouse=True)
def nothing_left(eventually):
    """Whatever a test did, no thread is left when it is over."""
    yield
    eventually(lambda: threads() == [])


def test_a_replica_that_nobody_holds_ends(kept, eventually):
    """A program that forgets to close one has no thread for ever."""
    Replica(kept)
    gc.collect()
    eventually(lambda: threads() == [])


@pytest.mark.parametrize("refresh_seconds", [0.05, 1.0, 60.0])
def test_it_looks_less_often_the_longer_it_fails(refresh_seconds):
    """A store in trouble is not asked all the time, nor by all replicas at once, nor too seldom."""
    pauses = [pause_after(n, refresh_seconds=refresh_seconds) for n in range(1, 100)]
    longest = max(10.0, refresh_seconds)
    assert refresh_seconds / 2 <= min(pauses) <= refresh_seconds
    assert all(longest / 2 <= pause <= longest for pause in pauses[20:])
    assert len(set(pauses)) == len(pauses)


def test_older_versions_are_served_as_far_as_they_are_held(far, replicate, put):
    """A conversation goes on with its version while the store is away, if this process has it."""
    replica = replicate(far, refresh_seconds=3600)
    for version in range(1, 20):
        put(replica, f"tool{version}")
    assert replica.load(1).version == 1  # used just now, so it is held
    far.away()
    assert [replica.load(version).version for version in (1, 6, 19)] == [1, 6, 19]
    with pytest.raises(StoreUnavailableError, match=r"version 2 is not among .* \(1, "):
        replica.load(2)
    far.back()
    assert list(replica.load(2).tools) == ["tool1", "tool2"]


@pytest.fixture
def path(tmp_path, put):
    """A file with one version."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        put(store, "a")
    return path


def test_a_file_that_is_moved_away_and_back(path, replicate, put, eventually):
    """The system would read on in the file that nobody sees; the replica says that it is away."""
    with closing(SQLiteStore(path)) as store:
        replica = replicate(store)
        path.rename(path.with_name("elsewhere.db"))
        eventually(lambda: replica.status.state == "away")
        assert "was moved away, deleted or replaced" in replica.status.last_error
        assert list(replica.load().tools) == ["a"]
        path.with_name("elsewhere.db").rename(path)
        eventually(lambda: replica.status.state == "current")
        put(store, "b")
        eventually(lambda: replica.load().version == 2)


def test_an_older_backup_is_not_taken_up(path, replicate, put, eventually):
    """A library never goes backwards under those who use it: a person has to start again."""
    with closing(SQLiteStore(path)) as store:
        put(store, "b")
        replica = replicate(store)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM revisions WHERE version = 2")
            other.execute("DELETE FROM versions WHERE version = 2")
        eventually(lambda: replica.status.state == "behind")
        assert "is at library version 1 and was at 2 before" in replica.status.last_error
        assert list(replica.load().tools) == ["a", "b"]
