"""A replica takes up what others commit, and what is committed through it is there at once."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.unreliable_store import UnreliableStore

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StaleVersionError, StoreError, StoreUnavailableError, UsageError
from agentkit.library import Author, EpisodeFilter, LibraryChange, Replica, Store
from agentkit.library.dag import DAG
from agentkit.library.events import EventDraft, chained
from agentkit.testing.conformance.fixtures import start_writer

AT = "2026-11-21T10:00:00+00:00"


def test_a_commit_is_found_by_looking(kept, far, replicate, put, eventually):
    """A store is looked at again and again."""
    replica = replicate(far)
    put(kept, "a")
    eventually(lambda: replica.load().version == 1)
    assert list(replica.load().tools) == ["a"]


def test_another_program_is_followed(tmp_path, replicate, eventually):
    """What a process commits reaches the replica in another one."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with replicate(url) as replica:
        with start_writer(url, "commit", "p", 5) as writer:
            writer.communicate()
        eventually(lambda: replica.load().version == 5)


def test_reading_asks_nobody(far, replicate):
    """A snapshot is at hand: while the store is away reading it is not even tried."""
    replica = replicate(far, refresh_seconds=3600)
    replica.refresh()
    far.away()
    assert {replica.load().version for _ in range(100)} == {0}
    assert far.refused == 0


def test_own_commits_are_there_at_once(far, replicate, put):
    """Who commits through a replica reads that commit from it, without a look of the thread."""
    replica = replicate(far, refresh_seconds=3600)
    for version in range(1, 6):
        assert put(replica, f"tool{version}") == version == replica.load().version


def test_a_late_writer_gets_what_came_before(kept, far, replicate, put):
    """Who was told that somebody was faster can build the change anew at once."""
    replica = replicate(far, refresh_seconds=3600)
    put(kept, "theirs")
    change = LibraryChange(proposal_id="mine", upserts=(ToolDefinition(name="mine"),))
    with pytest.raises(StaleVersionError):
        replica.commit(change, expected_version=replica.load().version)
    assert replica.commit(change, expected_version=replica.load().version) == 2
    assert list(replica.load().tools) == ["theirs", "mine"]


def test_the_rest_goes_to_the_store(kept, replicate, put):
    """Episodes, events, versions and histories are those of the store."""
    replica = replicate(kept)
    put(replica, "a")
    drafts = [EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))]
    events = chained(None, drafts, at=AT)
    replica.commit(LibraryChange(proposal_id="e", events=events), expected_version=1)
    replica.append(Episode(episode_id="e1", request="hello"))
    assert kept.get("e1") == replica.get("e1")
    assert list(replica.select(EpisodeFilter())) == list(kept.select(EpisodeFilter()))
    assert tuple(replica.events()) == events
    assert (list(replica.versions()), len(replica.history("a"))) == ([1], 1)
    assert replica.store is kept
    assert isinstance(replica, Store)


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


def test_followers_get_each_version_in_order(kept, replicate, put, eventually):
    """Who follows is handed the snapshot that is there, and later ones ascending."""
    replica = replicate(kept)
    seen = []
    replica.follow(lambda library: seen.append(library.version))
    for number in range(20):
        put(kept, f"tool{number}")
    eventually(lambda: seen[-1] == 20)
    assert seen == sorted(set(seen))
    assert seen[0] == 0


def test_a_follower_that_nobody_uses_is_forgotten(kept, replicate, put):
    """Following keeps nobody alive."""

    class Runner:
        seen: list[int] = []  # noqa: RUF012 - read after its object is gone

        def take_up(self, library):
            self.seen.append(library.version)

    replica, runner = replicate(kept), Runner()
    replica.follow(runner.take_up)
    del runner
    put(replica, "a")
    assert Runner.seen == [0]


def test_a_follower_that_fails_is_said_and_asked_again(kept, replicate, put, eventually):
    """One who can not take up a version does not keep others from it, and is no secret."""
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


def test_many_readers_see_whole_versions_that_only_grow(kept, replicate, put):
    """While somebody commits, each snapshot read is one that was committed, never an older one."""
    replica = replicate(kept, refresh_seconds=0.001)
    wrong: list[object] = []
    done = threading.Event()

    def read():
        last = 0
        while not done.is_set():
            library = replica.load()
            texts = {tool.definition.description.summary for tool in library}
            if library.version < last or (texts or {"0"}) != {str(library.version)}:
                wrong.append((last, library.version, texts))
            if len(library) not in {0, 5}:
                wrong.append(len(library))
            last = library.version
            time.sleep(0.001)  # two hundred that never rest would leave the writer no time

    readers = [threading.Thread(target=read) for _ in range(200)]
    for reader in readers:
        reader.start()
    for version in range(1, 31):
        put(kept, "a", "b", "c", "d", "e", summary=str(version))
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert replica.refresh().version == 30


@pytest.mark.parametrize(
    "options",
    [
        {"refresh_seconds": 0},
        {"refresh_seconds": float("inf")},
        {"refresh_seconds": float("nan")},
        {"max_staleness_seconds": 0.5},
        {"max_staleness_seconds": float("nan")},
    ],
)
def test_numbers_that_make_no_sense_are_refused(kept, options):
    """A replica that would never look, or always be stale, is not made."""
    with pytest.raises(UsageError):
        Replica(kept, **options)


def test_a_replica_of_a_url_opens_and_closes_it():
    """The URL of a store is enough."""
    with Replica("memory:") as replica:
        assert replica.load().version == 0
        replica.store.load()
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


def test_closing_ends_the_thread_and_the_store(kept):
    """A second close does nothing."""
    replica = Replica(kept)
    assert len(threads()) == 1
    replica.close()
    assert threads() == []
    replica.close()


def test_stopping_leaves_the_store_open(kept, put):
    """Who made the store may go on with it; the replica serves what it has, and looks if asked."""
    replica = Replica(kept)
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


NAMES = st.sampled_from(["a", "b", "c"])
BOUND_SECONDS = 30.0


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
        self.replica = Replica(
            self.far,
            refresh_seconds=20.0,
            max_staleness_seconds=BOUND_SECONDS,
            clock=lambda: self.now,
        )
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
        assert status.refuses == (status.staleness_seconds > BOUND_SECONDS)

    def teardown(self):
        if hasattr(self, "replica"):
            self.replica.close()


TestReplica = ReplicaMachine.TestCase
TestReplica.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
