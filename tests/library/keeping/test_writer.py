"""The writer of episodes gathers, keeps order, reads its own writes, and waits where it is full."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from agentkit import Agent, Episode, ToolDefinition
from agentkit.errors import EpisodeFormatError, StoreError, StoreUnavailableError, UsageError
from agentkit.library import EpisodeFilter, LibraryChange, Store
from agentkit.library.episode_stores import pruning, with_episodes
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import BatchAppending, Pruning
from agentkit.testing import EpisodeStoreConformance, EventStoreConformance, ScriptedModel

QUICK = WriterSettings(
    linger_seconds=0.005,
    pause_seconds=0.0002,
    wait_seconds=0.02,
    close_seconds=0.05,
)


def episode(name, *, session="s", text=""):
    """A small episode."""
    return Episode(episode_id=name, request=text, session_id=session)


def ids(store, **matching):
    """The episodes of a store, oldest first."""
    found = store.select(EpisodeFilter(oldest_first=True, **matching))
    return [one.episode_id for one in found]


@pytest.fixture
def make(store, tmp_path):
    """Makes writers that are closed when the test is over."""
    made = []

    def make_one(over=store, **settings):
        made.append(
            EpisodeWriter(over, spill=tmp_path / "spill", settings=replace(QUICK, **settings))
        )
        return made[-1]

    yield make_one
    store.is_on.set()
    for writer in made:
        writer.close()


def test_what_was_flushed_is_in_the_store_in_order(make, store):
    """After flush the store has everything, in the order in which it was appended."""
    writer = make()
    names = [f"e{i}" for i in range(100)]
    for name in names:
        writer.append(episode(name))
    writer.flush()
    assert ids(store) == names
    assert (writer.state.pending, writer.state.written) == (0, 100)


def test_episodes_are_written_in_batches(make, store):
    """What comes while the writer lingers goes to the store in one step, bounded by count."""
    writer = make(linger_seconds=60, batch_count=40)
    writer.append_many([episode(f"e{i}") for i in range(100)])
    writer.flush()
    assert store.batches == [40, 40, 20]


def test_a_store_without_batches_gets_one_by_one(make, plain_store):
    """A plugin that knows ``append`` alone is written to as well."""
    writer = make(plain_store)
    writer.append_many([episode("a"), episode("bad", text="bad"), episode("b")])
    writer.flush()
    assert ids(plain_store) == ["a", "b"]
    assert writer.state.refused == 1


def test_pending_episodes_are_read(make, store):
    """What the store has not got yet is found by id, session, and in its place among the others."""
    store.append_many([episode("old"), episode("other", session="t")])
    store.is_on.clear()
    writer = make()
    writer.append_many([episode("new1"), episode("new2", session="t"), episode("new3")])
    assert writer.get("new2").session_id == "t"
    assert writer.get("none") is None
    assert ids(writer) == ["old", "other", "new1", "new2", "new3"]
    assert ids(writer, session_id="s") == ["old", "new1", "new3"]
    assert ids(writer, session_id="s", limit=2) == ["old", "new1"]
    newest = writer.select(EpisodeFilter(limit=4))
    assert [one.episode_id for one in newest] == ["new3", "new2", "new1", "other"]
    assert ids(writer, limit=0) == []
    with pytest.raises(UsageError):
        writer.select(EpisodeFilter(limit=-1))


def test_a_selection_has_each_episode_once_while_they_arrive(make, store):
    """An episode that reaches the store in the middle of a selection comes once."""
    for oldest_first in (True, False):
        store.is_on.clear()
        writer = make()
        names = [f"{oldest_first}{i}" for i in range(10)]
        writer.append_many([episode(name, session=str(oldest_first)) for name in names])
        wanted = EpisodeFilter(session_id=str(oldest_first), oldest_first=oldest_first)
        found = writer.select(wanted)
        first = next(found).episode_id
        store.is_on.set()
        writer.flush()
        seen = [first, *(one.episode_id for one in found)]
        assert seen == (names if oldest_first else names[::-1])


def test_an_episode_that_is_no_json_is_refused_at_once(make, store):
    """Whoever appends it hears of it, and none of its group is taken."""
    writer = make()
    with pytest.raises(EpisodeFormatError, match="odd"):
        writer.append_many([episode("a"), Episode(episode_id="odd", request="", output=object())])
    writer.flush()
    assert ids(store) == []


def test_a_full_writer_waits_for_room(make, store):
    """Appending waits while the store is slow, and goes on when there is room."""
    store.is_on.clear()
    writer = make(max_count=5, wait_seconds=60)
    writer.append_many([episode(f"e{i}") for i in range(5)])
    more = threading.Thread(target=writer.append, args=(episode("e5"),))
    more.start()
    more.join(0.05)
    assert more.is_alive()
    assert writer.state.pending == 5
    store.is_on.set()
    more.join(30)
    writer.flush()
    assert ids(store) == [f"e{i}" for i in range(6)]


def test_the_state_tells_of_a_store_that_is_away(make, store):
    """Pending episodes, how long the oldest waits, failures and the last error can be watched."""
    store.is_on.clear()
    writer = make()
    writer.append(episode("a"))
    with pytest.raises(StoreUnavailableError, match="switched off"):
        writer.flush(timeout_seconds=0.05)
    state = writer.state
    assert (state.pending, state.written) == (1, 0)
    assert state.pending_bytes > 0
    assert state.oldest_seconds > 0
    assert state.failures > 0
    assert "switched off" in state.last_error
    store.is_on.set()
    writer.flush()
    assert (writer.state.pending, writer.state.failures, writer.state.oldest_seconds) == (0, 0, 0)


def test_a_refused_episode_is_set_aside_and_holds_up_no_other(tmp_path, make, caplog, picky_store):
    """What the store will never take is in a file with the reason, which the log names."""
    writer = make(picky_store)
    writer.append_many([episode("a"), episode("b", text="bad"), episode("c")])
    writer.flush()
    assert ids(picky_store) == ["a", "c"]
    (file,) = (tmp_path / "spill").iterdir()
    assert "not to our taste" in file.read_text()
    assert json.loads(file.read_text())["episode"]["episode_id"] == "b"
    assert str(file) in caplog.text
    assert (writer.state.refused, writer.state.written) == (1, 2)


def test_an_episode_that_is_changed_meanwhile_holds_up_no_other(tmp_path):
    """One that stops being JSON while it waits is set aside as it came, and the rest is written."""
    with EpisodeWriter(
        SQLiteStore(tmp_path / "s.db"),
        spill=tmp_path / "spill",
        settings=replace(QUICK, linger_seconds=60),
    ) as writer:
        answer = {"a": 1}
        writer.append(Episode(episode_id="odd", request="?", output=answer))
        writer.append(episode("b"))
        answer["a"] = object()
        writer.flush()
        assert ids(writer) == ["b"]
    (file,) = (tmp_path / "spill").iterdir()
    assert json.loads(file.read_text())["episode"]["output"] == {"a": 1}


class Unspeakable(Exception):  # noqa: N818 - it is odd on purpose
    """An error of a careless plugin that can not even be printed."""

    def __str__(self):
        raise LookupError("no words for it")


def test_the_unexpected_does_not_end_the_thread(make, store, caplog):
    """What nobody thought of is in the log and the state, and what waits is tried again."""
    keep, faults = store.append_many, [Unspeakable()]

    def append_many(episodes):
        if faults:
            raise faults.pop()
        keep(episodes)

    store.append_many = append_many
    writer = make()
    writer.append(episode("a"))
    writer.flush()
    assert ids(store) == ["a"]
    assert "no words for it" in writer.state.last_error
    assert "no words for it" in caplog.text


def test_closing_writes_what_is_held_and_closes_the_store(make, store):
    """Close loses nothing, a second one does nothing, and a closed writer refuses."""
    writer = make(linger_seconds=60)
    writer.append(episode("a"))
    writer.close()
    writer.close()
    assert ids(store) == ["a"]
    assert store.closed == 1
    for use in (partial(writer.append, episode("b")), writer.select, writer.flush):
        with pytest.raises(StoreError, match="closed"):
            use()


def test_threads_lose_nothing_and_keep_their_order(make, store):
    """Many threads append through a small buffer; each session is whole and in order."""
    writer = make(max_count=7, wait_seconds=60, batch_count=3)

    def work(name):
        for i in range(50):
            writer.append(episode(f"{name}-{i}", session=name))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()
    for name in "abcd":
        assert ids(store, session_id=name) == [f"{name}-{i}" for i in range(50)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_is_told(make):
    """In a forked process the thread does not run, and the writer says so, whatever was locked."""
    writer = make()
    uses = (
        partial(writer.append, episode("a")),
        partial(writer.get, "a"),
        writer.select,
        writer.flush,
        lambda: writer.state,
    )
    with writer._changed:  # as another thread may have it at the moment of the fork
        child = os.fork()
    if child == 0:
        told = 0
        for use in uses:
            try:
                use()
            except StoreError as error:
                told += "fork" in str(error)
        writer.close()
        os._exit(len(uses) - told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_redaction_comes_before_anything_is_held(tmp_path, store):
    """What is pending, in memory or in a file, is redacted already."""
    store.is_on.clear()
    writer = EpisodeWriter(
        store,
        spill=tmp_path / "spill",
        settings=QUICK,
        redact=lambda one: replace(one, request="-"),
    )
    writer.append(episode("a", text="secret"))
    assert writer.get("a").request == "-"
    writer.close()
    (file,) = (tmp_path / "spill").glob("*.jsonl")
    assert "secret" not in file.read_text()


def test_an_agent_keeps_its_episodes_through_a_writer(tmp_path, store):
    """An agent takes a store with a writer in it, and reads the conversation that is pending."""
    tools, kept = MemoryStore(), store
    writer = EpisodeWriter(kept, spill=tmp_path / "spill", settings=QUICK)
    with closing(with_episodes(tools, episodes=writer)) as both:
        assert isinstance(both, Store)
        assert isinstance(both, BatchAppending)
        assert not isinstance(both, Pruning)
        agent = Agent(ScriptedModel(["One.", "Two."]), store=both)
        kept.is_on.clear()
        agent.run_sync("first", session_id="s")
        again = agent.run_sync("second", session_id="s")
        assert again.episode.history_length == 2
        kept.is_on.set()
        assert tools.volume().count == 0
    assert [one.request for one in kept.select()] == ["second", "first"]


def test_a_locked_file_loses_nothing(tmp_path):
    """While another program holds a SQLite file, episodes wait, and then they are there."""
    path = tmp_path / "s.db"
    with closing(SQLiteStore(path)) as holder:
        store = SQLiteStore(path, timeout_seconds=0.01)
        with EpisodeWriter(store, spill=tmp_path / "spill", settings=QUICK) as writer:
            with holder._connection.transaction():
                writer.append(episode("a"))
                with pytest.raises(StoreUnavailableError, match="locked"):
                    writer.flush(timeout_seconds=0.3)
                assert writer.get("a") is not None
            writer.flush()
        assert ids(holder) == ["a"]


class TestWriter(EpisodeStoreConformance):
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


class TestSplitStore(EventStoreConformance, EpisodeStoreConformance):
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
    for ability in (BatchAppending, Pruning):
        assert isinstance(store, ability)
    plain = with_episodes(MemoryStore(), episodes=plain_store)
    assert isinstance(plain, Store)
    assert not isinstance(plain, BatchAppending | Pruning)


def test_a_store_that_keeps_all_is_refused():
    """A store that can not let episodes go says so."""
    with pytest.raises(UsageError, match="can not let episodes go"):
        pruning(object())
