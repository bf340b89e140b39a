"""A replica takes up what others commit, and serves what it has while its store is away."""

from __future__ import annotations

import gc
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.unreliable_store import UnreliableStore

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import (
    StaleVersionError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.library import Author, LibraryChange, Replica, Store
from agentkit.library.dag import DAG
from agentkit.library.events import EventDraft, chained
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


AT = "2026-11-21T10:00:00+00:00"


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


def test_events_alone_are_noticed(kept, far, replicate, eventually):
    """Once somebody read events here, the thread knows of later ones, which make no version."""
    replica = replicate(far)
    assert (replica.last_event, replica.events(), replica.last_event) == (None, (), 0)
    drafts = [EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))] * 3
    events = chained(None, drafts, at=AT)
    kept.commit(LibraryChange(proposal_id="e", events=events), expected_version=0)
    eventually(lambda: replica.last_event == 3)


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


NAMES = st.sampled_from(["a", "b", "c"])


class ReplicaMachine(RuleBasedStateMachine):
    """Commits by others and through the replica, a store that goes and comes, looks and time."""

    @initialize()
    def begin(self):
        self.kept = open_store("memory:")
        self.far = UnreliableStore(self.kept)
        self.now = 0.0
        self.knew = 0.0
        self.is_away = False
        # Hints come from a thread, at any moment; without them only the rules look.
        self.replica = Replica(self.far, refresh_seconds=20.0, clock=lambda: self.now)
        self.replica.stop()  # the thread has looked once by now, or never will
        self.replica.refresh()
        self.proposals = 0
        self.last = 0
        self.pinned = {}
        self.committed = {0: self.kept.load(0).digest}

    @rule(name=NAMES)
    def others_commit(self, name):
        self._commit(self.kept, name)

    @rule(name=NAMES)
    def commit_here(self, name):
        try:
            version = self._commit(self.replica, name)
        except StoreUnavailableError:
            assert self.is_away
        except StaleVersionError:  # others were faster, and now the replica knows
            assert not self.is_away
            assert self.replica.load().version == max(self.committed)
            self.knew = self.now
        else:
            assert self.replica.load().version == version
            self.knew = self.now

    def _commit(self, store, name):
        expected = self.kept.load().version if store is self.kept else store.load().version
        self.proposals += 1
        change = LibraryChange(
            proposal_id=f"p{self.proposals}", upserts=(ToolDefinition(name=name),)
        )
        version = store.commit(change, expected_version=expected)
        self.committed[version] = self.kept.load(version).digest
        return version

    @rule()
    def away(self):
        self.far.away()
        self.is_away = True

    @rule()
    def back(self):
        self.far.back()
        self.is_away = False

    @rule()
    def look(self):
        try:
            found = self.replica.refresh()
        except StoreUnavailableError:
            assert self.is_away
            assert self.replica.status.state == "away"
        else:
            assert found.version >= max(self.committed)
            assert self.replica.status.state == "current"
            self.knew = self.now

    @rule(seconds=st.floats(0, 60))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def a_conversation_begins(self):
        library = self.replica.load()
        self.pinned[library.version] = library.digest

    @invariant()
    def what_is_served_was_committed_and_only_grows(self):
        library = self.replica.load()
        assert library.version >= self.last
        assert library.digest == self.committed[library.version]
        self.last = library.version

    @invariant()
    def conversations_have_their_version(self):
        for version, digest in self.pinned.items():
            assert self.replica.load(version).digest == digest

    @invariant()
    def staleness_is_told(self):
        status = self.replica.status
        assert status.staleness_seconds == self.now - self.knew

    def teardown(self):
        if hasattr(self, "replica"):
            self.replica.close()


TestReplica = ReplicaMachine.TestCase
TestReplica.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


LOGGER = "agentkit.library.replicas"


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
