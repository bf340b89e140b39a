"""While its store is away a replica serves what it has, says so, and comes back by itself."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing

import pytest

from agentkit import Episode, ToolDefinition
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library import LibraryChange, Replica
from agentkit.library.replicas import pause_after
from agentkit.library.sqlite import SQLiteStore

LOGGER = "agentkit.library.replicas"


def test_the_last_snapshot_is_served_and_the_state_says_so(far, replicate, put, eventually):
    """Reading goes on, and whoever looks at the state knows how good it is."""
    put(far, "a")
    replica = replicate(far)
    far.away()
    eventually(lambda: replica.status.state == "away")
    assert list(replica.load().tools) == ["a"]
    assert replica.status.last_error == "StoreUnavailableError: the store is away"
    assert replica.status.summary.startswith("the store is away; library version 1 was the newest")


def test_it_comes_back_by_itself_with_what_happened_meanwhile(
    kept, far, replicate, put, eventually
):
    """When the store answers again the newest version is taken up."""
    replica = replicate(far)
    far.away()
    eventually(lambda: replica.status.failed_looks >= 3)
    put(kept, "a")
    put(kept, "b")
    far.back()
    eventually(lambda: replica.status.state == "current")  # told after the version is taken up
    assert (replica.load().version, replica.status.last_error) == (2, "")


def test_going_and_coming_are_said_once(far, replicate, eventually, caplog):
    """The log has a line for each change, however often the store is looked for."""
    caplog.set_level(logging.WARNING, LOGGER)
    replica = replicate(far)
    far.away()
    eventually(lambda: replica.status.failed_looks >= 5)
    far.back()
    eventually(lambda: len(caplog.records) > 1)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "the store is away; library version 0 is served on" in said[0]
    assert "the store is back; library version 0 is the newest" in said[1]


@pytest.mark.parametrize("refresh_seconds", [0.05, 1.0, 60.0])
def test_it_looks_less_often_the_longer_it_fails(refresh_seconds):
    """A store in trouble is not asked all the time, nor by all replicas at once, nor too seldom."""
    pauses = [pause_after(n, refresh_seconds=refresh_seconds) for n in range(1, 100)]
    longest = max(10.0, refresh_seconds)
    assert refresh_seconds / 2 <= min(pauses) <= refresh_seconds
    assert all(longest / 2 <= pause <= longest for pause in pauses[20:])
    assert len(set(pauses)) == len(pauses)


def test_writing_fails_as_the_store_does(far, replicate):
    """What can not be kept is the caller's to know: no error is swallowed."""
    replica = replicate(far)
    far.away()
    change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="a"),))
    for write in (
        lambda: replica.append(Episode(episode_id="e", request="hello")),
        lambda: replica.commit(change, expected_version=0),
        replica.events,
        replica.versions,
        lambda: replica.history("a"),
    ):
        with pytest.raises(StoreUnavailableError, match="the store is away"):
            write()


def test_looking_by_hand_says_what_went_wrong(far, replicate):
    """``refresh`` is for somebody who wants to know."""
    replica = replicate(far, refresh_seconds=3600)
    far.away()
    with pytest.raises(StoreUnavailableError, match="the store is away"):
        replica.refresh()
    assert replica.load().version == 0


def test_staleness_is_the_time_since_it_knew(far, replicate, clock):
    """The clock of this machine counts on from the last look that found out."""
    replica = replicate(far, refresh_seconds=3600, clock=clock)
    replica.refresh()
    clock.now += 5
    assert replica.status.staleness_seconds == replica.staleness_seconds == 5
    replica.refresh()
    assert replica.staleness_seconds == 0
    far.away()
    clock.now += 70
    with pytest.raises(StoreError):
        replica.refresh()
    assert replica.staleness_seconds == 70


def test_beyond_the_bound_runs_are_refused(far, replicate, clock):
    """Where nobody knew for too long whether the library is the newest, no run begins."""
    replica = replicate(far, refresh_seconds=60.0, max_staleness_seconds=100.0, clock=clock)
    replica.refresh()
    replica.check_staleness()
    assert not replica.status.refuses
    clock.now += 101
    assert replica.status.refuses
    with pytest.raises(StoreUnavailableError, match="more than the 100 s that are allowed"):
        replica.check_staleness()
    assert replica.load().version == 0
    replica.refresh()
    replica.check_staleness()


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


def test_a_version_that_never_was_is_no_matter_of_reaching(far, replicate):
    """What the store says about versions reaches the caller as it is."""
    with pytest.raises(StoreError, match="7") as caught:
        replicate(far).load(7)
    assert not isinstance(caught.value, StoreUnavailableError)


def test_it_begins_with_its_store(far):
    """With nothing to serve there is nothing to begin with."""
    far.away()
    with pytest.raises(StoreUnavailableError, match="the store is away"):
        Replica(far)


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


def test_a_version_that_can_not_be_read_is_not_taken_up(path, replicate, put, eventually, caplog):
    """A damaged definition keeps the last whole library in use, and is said."""
    with closing(SQLiteStore(path)) as store:
        replica = replicate(store)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("INSERT INTO versions VALUES (2,'p2','','','[]','2026-11-22T00:00:00Z')")
            other.execute("INSERT INTO definitions VALUES ('x','b','{broken')")
            other.execute("INSERT INTO revisions VALUES (2,'b','x','{}',2,0)")
        eventually(lambda: replica.status.state == "behind")
        assert "holds a definition that can not be read" in replica.status.last_error
        assert (list(replica.load().tools), replica.load().version) == (["a"], 1)
        assert "the newest library can not be taken up; version 1 is served on" in caplog.text


def test_events_that_can_not_be_read_are_said(kept):
    """The library is followed on, and the state says that something new could not be read."""
    replica = Replica(kept, refresh_seconds=3600)
    replica.events()

    def torn(*, after=0):
        """The chain is damaged."""
        raise StoreFormatError(f"torn behind {after}")

    kept.events = torn
    with pytest.raises(StoreFormatError, match="torn"):
        replica.refresh()
    assert replica.status.state == "behind"
    replica.stop()
