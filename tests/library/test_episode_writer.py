"""Episodes reach their store in batches, or wait in files: nothing is lost, and each comes once."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from support.cost import fault_runs
from support.histories import BareStore
from support.unreliable_store import UnreliableStore

from agentkit import Agent, Episode
from agentkit.episodes.files import read_episodes
from agentkit.errors import EpisodeFormatError, StoreError, StoreUnavailableError, UsageError
from agentkit.library import EpisodeFilter, Store
from agentkit.library.episode_stores import pruning, with_episodes
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import BatchAppending, Pruning
from agentkit.testing import EpisodeStoreConformance, ScriptedModel


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


@pytest.fixture
def store():
    """A store that can be switched off."""
    return SwitchedStore()


@pytest.fixture
def picky_store():
    """A store that refuses some episodes."""
    return PickyStore()


QUICK = WriterSettings(
    linger_seconds=0.001,
    pause_seconds=0.0001,
    wait_seconds=0.001,
    close_seconds=0.02,
)


def episode(name, *, session="s", text=None):
    """A small episode."""
    request = f"request of {name}" if text is None else text
    return Episode(episode_id=name, request=request, session_id=session)


def ids(store, **matching):
    """The episodes of a store, oldest first."""
    found = store.select(EpisodeFilter(oldest_first=True, **matching))
    return [one.episode_id for one in found]


@pytest.fixture
def folder(tmp_path):
    """Where episodes are spilled."""
    return tmp_path / "spill"


def open_writer(store, folder, **settings):
    """A writer that does not wait long."""
    return EpisodeWriter(store, spill=folder, settings=replace(QUICK, **settings))


@pytest.fixture
def make(store, folder):
    """Makes writers that are closed when the test is over."""
    made = []

    def make_one(over=store, **settings):
        made.append(open_writer(over, folder, **settings))
        return made[-1]

    yield make_one
    store.is_on.set()
    for writer in made:
        writer.close()


def test_episodes_are_written_in_batches(make, store):
    """What comes while the writer lingers goes to the store in one step, bounded by count."""
    writer = make(linger_seconds=60, batch_count=40)
    writer.append_many([episode(f"e{i}") for i in range(100)])
    writer.flush()
    assert store.batches == [40, 40, 20]


def test_a_store_without_batches_gets_one_by_one(make, picky_store):
    """A plugin that knows ``append`` alone is written to as well."""
    plain_store = BareStore(picky_store)
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


class TestWriter(EpisodeStoreConformance):
    """What is pending is read as if it were kept; the writer is of this process alone."""

    @pytest.fixture
    def store(self, tmp_path) -> Iterator[Store]:
        """A library in memory, episodes through a writer in a file."""
        writer = EpisodeWriter(
            SQLiteStore(tmp_path / "episodes.db"),
            spill=tmp_path / "spill",
            settings=WriterSettings(linger_seconds=60.0),
        )
        store = with_episodes(MemoryStore(), episodes=writer)
        yield store
        store.close()


def test_a_store_that_keeps_all_is_refused():
    """A store that can not let episodes go says so."""
    with pytest.raises(UsageError, match="can not let episodes go"):
        pruning(object())


def test_closing_spills_and_the_next_writer_takes_it_in(store, folder, caplog):
    """With the store away at the end, episodes are in a file that the log names, then in the store."""
    store.is_on.clear()
    with open_writer(store, folder) as writer:
        writer.append_many([episode("a"), episode("b")])
    (file,) = folder.glob("*.jsonl")
    assert [one.episode_id for one in read_episodes(file)] == ["a", "b"]
    assert f"2 episodes wait in {file}" in caplog.text
    with open_writer(store, folder) as again:
        assert again.state.spilled == 2
        assert ids(again) == ["a", "b"]
        assert again.get("b").request == "request of b"
        store.is_on.set()
        again.append(episode("c"))
        again.flush()
        assert again.state.spilled == 0
    assert ids(store) == ["a", "b", "c"]
    assert list(folder.iterdir()) == []


def test_a_full_buffer_spills_in_order(store, folder):
    """Waited for too long, all that is held goes to files; younger ones stay behind them."""
    store.is_on.clear()
    names = [f"e{i:02}" for i in range(17)]
    with open_writer(store, folder, max_count=5) as writer:
        for name in names:
            writer.append(episode(name))
        assert writer.state.spilled == 15
        assert ids(writer) == names
        store.is_on.set()
        writer.flush()
        assert ids(store) == names
    assert list(folder.iterdir()) == []


def test_two_writers_leave_each_other_alone(store, folder):
    """A file whose writer lives is not taken in by another one with the same folder."""
    store.is_on.clear()
    with open_writer(store, folder, max_count=1) as one:
        one.append(episode("a"))
        one.append(episode("b"))
        assert one.state.spilled == 1
        with open_writer(store, folder) as other:
            assert other.state.spilled == 0
        store.is_on.set()
        one.flush()
    assert ids(store) == ["a", "b"]


def test_half_a_line_is_kept_aside(store, folder, caplog):
    """Of a file that a crash left half-written the whole lines are taken in, and the file is kept."""
    store.is_on.clear()
    with open_writer(store, folder) as writer:
        writer.append_many([episode("a"), episode("b")])
    (file,) = folder.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-20])
    store.is_on.set()
    with open_writer(store, folder) as writer:
        writer.flush()
    assert ids(store) == ["a"]
    (aside,) = folder.iterdir()
    assert aside.suffix == ".broken"
    assert f"{aside} is kept" in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="modes of files are a matter of POSIX")
def test_files_are_for_their_owner_alone(picky_store, folder):
    """What users said can not be read by other users of the machine, whatever the umask."""
    before = os.umask(0)
    try:
        with open_writer(picky_store, folder) as writer:
            writer.append(Episode(episode_id="a", request="bad"))
            writer.flush()
            picky_store.is_on.clear()
            writer.append(episode("b"))
    finally:
        os.umask(before)
    assert [path.suffix for path in folder.iterdir()] == [".jsonl", ".jsonl"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes == {0o700, 0o600}


def test_a_link_and_other_files_in_the_folder_are_left_alone(store, folder, tmp_path):
    """A link under the name of a writer's file is not followed, and files of others stay."""
    store.is_on.clear()
    with open_writer(store, folder) as writer:
        writer.append(episode("a"))
    (link,) = folder.glob("*.jsonl")
    target = link.rename(tmp_path / "elsewhere")
    link.symlink_to(target)
    mine = folder / "my-own-episodes.jsonl"
    mine.write_text("not of a writer")
    store.is_on.set()
    with open_writer(store, folder) as writer:
        writer.flush()
    assert ids(store) == []
    assert link.is_symlink()
    assert sorted(folder.iterdir()) == sorted([link, mine])


def test_nowhere_to_write_loses_nothing(store, tmp_path):
    """With the store away and no place for a file, the appender hears it and all stays in memory."""
    place = tmp_path / "spill"
    place.write_text("a file where the folder should be")
    store.is_on.clear()
    writer = open_writer(store, place, max_count=2)
    writer.append_many([episode("a"), episode("b")])
    with pytest.raises(StoreUnavailableError, match="can not be written"):
        writer.append(episode("c"))
    with pytest.raises(StoreUnavailableError, match="2 in memory"):
        writer.close()
    place.unlink()
    writer.close()
    store.is_on.set()
    with open_writer(store, place) as again:
        again.flush()
    assert ids(store) == ["a", "b"]


def test_a_store_that_hangs_does_not_hold_up_the_end(store, folder):
    """Close waits a moment for a store that does not answer, then spills."""
    answer = threading.Event()
    keep = store.append_many
    store.append_many = lambda episodes: (answer.wait(60), keep(episodes))
    writer = EpisodeWriter(store, spill=folder, settings=QUICK)
    writer.append(episode("a"))
    writer.close()
    assert [path.suffix for path in folder.iterdir()] == [".jsonl"]
    answer.set()
    writer._thread.join()
    store.append_many = keep
    with open_writer(store, folder) as again:
        again.flush()
    assert ids(store) == ["a"]


PROGRAM = """
import sys
from agentkit import Episode
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.sqlite import SQLiteStore
path, folder = sys.argv[1:]
writer = EpisodeWriter(SQLiteStore(path), spill=folder, settings=WriterSettings(linger_seconds=60))
writer.append(Episode(episode_id="a", request="?"))
"""


def test_a_program_that_ends_without_closing_writes_all(tmp_path, folder):
    """What a program forgot to flush is written when it ends in the ordinary way."""
    path = tmp_path / "s.db"
    subprocess.run([sys.executable, "-c", PROGRAM, str(path), str(folder)], check=True, timeout=100)
    store = SQLiteStore(path)
    assert ids(store) == ["a"]
    store.close()


FAULTS = st.sampled_from([None, "refused", "unanswered"])
STEPS = st.lists(
    st.sampled_from(["append", "append", "append", "many", "flush", "reopen"]), max_size=25
)


@given(steps=STEPS, faults=st.lists(FAULTS, max_size=12), count=st.integers(1, 6))
def test_whatever_fails_each_episode_is_kept_once_and_in_order(
    tmp_path_factory, steps, faults, count
):
    """Appends, failures, flushes, spills and new starts in any order lose, double and swap nothing."""
    logging.disable(logging.CRITICAL)
    folder = tmp_path_factory.mktemp("spill")
    kept = MemoryStore()
    kept.close = lambda: None
    store = UnreliableStore(kept, episode_faults=faults)

    def start():
        return open_writer(store, folder, max_count=count, batch_count=2)

    writer, names, sure = start(), [], 0
    try:
        for step in steps:
            if step in {"append", "many"}:
                new = [f"e{len(names) + i:03}" for i in range(1 if step == "append" else 3)]
                writer.append_many([episode(name, session=name[-1]) for name in new])
                names += new
            elif step == "flush":
                writer.flush()
                sure = len(names)
            else:
                writer.close()
                writer = start()
            assert ids(writer) == names
            assert ids(kept)[:sure] == names[:sure]
        writer.flush()
    finally:
        writer.close()
        logging.disable(logging.NOTSET)
    assert ids(kept) == names
    for session in "0123":
        assert ids(kept, session_id=session) == [name for name in names if name[-1] == session]
    assert list(folder.iterdir()) == []


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")
def test_killed_writers_lose_nothing_that_was_flushed(tmp_path):
    """Writers are killed at any moment: what was flushed is there once and in order, nothing torn."""
    program = Path(__file__).with_name("kill_episode_writers.py")
    runs = fault_runs(5)
    command = [sys.executable, str(program), str(tmp_path), str(runs), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["killed"] == runs
    assert found["kept"] >= found["flushed"]
