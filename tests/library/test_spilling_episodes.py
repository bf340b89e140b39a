"""While a store takes no episodes they wait in files: nothing is lost, and each comes once."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from support.cost import fault_runs
from support.unreliable_store import UnreliableStore

from agentkit import Agent, Episode
from agentkit.episodes.files import read_episodes
from agentkit.errors import EpisodeFormatError, StoreError, StoreUnavailableError, UsageError
from agentkit.library import EpisodeFilter, Store, spilling
from agentkit.library.episode_stores import pruning, with_episodes
from agentkit.library.memory import MemoryStore
from agentkit.library.spilling import SpillingEpisodes
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.store import BatchAppending, Pruning
from agentkit.testing import EpisodeStoreConformance, ScriptedModel


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The store is tried again at once."""
    monkeypatch.setattr(spilling, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(spilling, "_LONGEST_PAUSE_SECONDS", 0.02)


@pytest.fixture
def kept():
    """What the store holds, whoever closes it."""
    store = MemoryStore()
    store.close = lambda: None
    return store


@pytest.fixture
def store(kept):
    """A store that may go away."""
    return UnreliableStore(kept)


@pytest.fixture
def folder(tmp_path):
    """Where episodes are spilled."""
    return tmp_path / "spill"


def episode(name, *, session="s", text="Hi"):
    """A small episode."""
    return Episode(episode_id=name, request=text, session_id=session)


def ids(store, **matching):
    """The episodes of a store, oldest first."""
    found = store.select(EpisodeFilter(oldest_first=True, **matching))
    return [one.episode_id for one in found]


def wait_until(holds):
    """Wait for what a thread does."""
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.001)


def spill(store, folder, *names):
    """Leave episodes in a file, as a program does whose store is away."""
    store.away()
    with SpillingEpisodes(store, folder=folder) as episodes:
        episodes.append_many([episode(name) for name in names])
    (file,) = folder.glob("[0-9a-f]*.jsonl")
    return file


def take_in(store, folder):
    """Start again with the store there, and wait for the end of it."""
    store.back()
    with SpillingEpisodes(store, folder=folder) as episodes:
        wait_until(lambda: not episodes._files)


def test_what_is_in_files_is_read(store, kept, folder):
    """It is found by id, session, and in its place among the others."""
    kept.append_many([episode("old"), episode("other", session="t")])
    reading = UnreliableStore(kept, episode_faults=["refused"] * 1_000)
    with SpillingEpisodes(reading, folder=folder) as episodes:
        episodes.append_many([episode("new1"), episode("new2", session="t"), episode("new3")])
        assert episodes.get("new2").session_id == "t"
        assert episodes.get("none") is None
        assert ids(episodes) == ["old", "other", "new1", "new2", "new3"]
        assert ids(episodes, session_id="s", limit=2) == ["old", "new1"]
        newest = episodes.select(EpisodeFilter(limit=4))
        assert [one.episode_id for one in newest] == ["new3", "new2", "new1", "other"]
        with pytest.raises(UsageError):
            episodes.select(EpisodeFilter(limit=-1))
        assert episodes.in_files == 3
        assert "lost" in episodes.last_error


def test_files_come_before_what_is_younger(store, kept, folder, caplog):
    """A later program brings over what an earlier one left, and then its own."""
    file = spill(store, folder, "a", "b")
    assert [one.episode_id for one in read_episodes(file)] == ["a", "b"]
    assert f"2 episodes wait for the next start in {file}" in caplog.text
    with SpillingEpisodes(store, folder=folder) as episodes:
        assert episodes.in_files == 2
        episodes.append(episode("c"))
        store.back()
        wait_until(lambda: not episodes._files)
        episodes.append(episode("d"))
        assert episodes.last_error == ""
    assert ids(kept) == ["a", "b", "c", "d"]
    assert list(folder.iterdir()) == []


def test_what_comes_while_a_file_is_taken_in_is_kept(store, kept, folder):
    """An episode that is appended between the last look at a file and its end is not lost."""
    append_many, came = kept.append_many, threading.Event()

    def slow(episodes):
        if [one.episode_id for one in episodes] == ["a"] and not came.is_set():
            came.set()
            late = threading.Thread(target=taking_in.append, args=(episode("late"),))
            late.start()
            late.join()
        append_many(episodes)

    kept.append_many = slow
    store.away()
    with SpillingEpisodes(store, folder=folder) as taking_in:
        taking_in.append(episode("a"))
        store.back()
        wait_until(lambda: not taking_in._files)
    assert came.is_set()
    assert ids(kept) == ["a", "late"]


def test_what_is_no_json_is_refused_at_once(store, kept, folder):
    """Whoever appends it hears of it, and none of its group is taken."""
    store.away()
    with SpillingEpisodes(store, folder=folder) as episodes:
        with pytest.raises(EpisodeFormatError, match="odd"):
            episodes.append_many(
                [episode("a"), Episode(episode_id="odd", request="", output=object())]
            )
        assert ids(kept) == []
        assert episodes.in_files == 0


def test_an_episode_that_is_refused_later_is_set_aside(kept, folder, caplog):
    """What the store will never take stays in the file, with the reason in the log, and holds up no other."""

    class Picky(UnreliableStore):
        """Refuses episodes whose request says so."""

        def append_many(self, episodes):
            """Keep all or none."""
            self._reached()
            if any(one.request == "bad" for one in episodes):
                raise EpisodeFormatError("not to our taste")
            super().append_many(episodes)

    store = Picky(kept)
    store.away()
    with SpillingEpisodes(store, folder=folder) as episodes:
        episodes.append_many([episode("a"), episode("b", text="bad"), episode("c")])
        store.back()
        wait_until(lambda: not episodes._files)
        assert episodes.refused == 1
        with pytest.raises(EpisodeFormatError):  # with the store there, the caller hears of it
            episodes.append(episode("d", text="bad"))
    assert ids(kept) == ["a", "c"]
    (file,) = folder.iterdir()
    assert file.suffix == ".broken"
    assert [one.episode_id for one in read_episodes(file)] == ["a", "b", "c"]
    assert f"part of {file}, which is kept: 'b': EpisodeFormatError: not to our" in caplog.text


def test_two_programs_leave_each_other_alone(store, kept, folder):
    """A file whose owner lives is not taken in by another one with the same folder."""
    store.away()
    with SpillingEpisodes(store, folder=folder) as one:
        one.append(episode("a"))
        with SpillingEpisodes(UnreliableStore(kept), folder=folder) as other:
            assert other.in_files == 0
        store.back()
        wait_until(lambda: not one._files)
    assert ids(kept) == ["a"]


def test_half_a_line_is_kept_aside(store, kept, folder, caplog):
    """Of a file that a crash left half-written the whole lines are taken in, and the file is kept."""
    file = spill(store, folder, "a", "b")
    file.write_bytes(file.read_bytes()[:-20])
    take_in(store, folder)
    assert ids(kept) == ["a"]
    (aside,) = folder.iterdir()
    assert aside.suffix == ".broken"
    assert f"part of {aside}, which is kept" in caplog.text


def test_a_link_and_other_files_in_the_folder_are_left_alone(store, kept, folder, tmp_path):
    """A link under the name of a spilled file is not followed, and files of others stay."""
    link = spill(store, folder, "a")
    target = link.rename(tmp_path / "elsewhere")
    link.symlink_to(target)
    mine = folder / "my-own-episodes.jsonl"
    mine.write_text("not of ours")
    take_in(store, folder)
    assert ids(kept) == []
    assert link.is_symlink()
    assert sorted(folder.iterdir()) == sorted([link, mine])


def test_nowhere_to_write_is_told(store, kept, tmp_path):
    """With the store away and no place for a file, the appender hears it, and may try again."""
    place = tmp_path / "spill"
    place.write_text("a file where the folder should be")
    store.away()
    with SpillingEpisodes(store, folder=place) as episodes:
        with pytest.raises(StoreUnavailableError, match="cannot be written"):
            episodes.append(episode("a"))
        place.unlink()
        episodes.append(episode("a"))
        store.back()
        wait_until(lambda: not episodes._files)
    assert ids(kept) == ["a"]


def test_half_a_write_is_taken_back(store, folder, monkeypatch):
    """On a disk that is full in the middle of a line, the file is as before."""
    store.away()
    monkeypatch.setattr(spilling, "_LONGEST_PAUSE_SECONDS", 60)
    monkeypatch.setattr(spilling, "_FIRST_PAUSE_SECONDS", 60)
    with SpillingEpisodes(store, folder=folder) as episodes:
        episodes.append(episode("a"))
        (file,) = folder.iterdir()
        before = file.read_bytes()

        def full(_handle):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StoreUnavailableError, match="No space"):
                episodes.append(episode("b"))
        assert file.read_bytes() == before
        episodes.append(episode("c"))
        assert [one.episode_id for one in read_episodes(file)] == ["a", "c"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_and_whoever_comes_after_the_end_are_told(kept, folder):
    """In a forked process no thread takes files in, and it says so, whatever was locked."""
    episodes = SpillingEpisodes(kept, folder=folder)
    uses = (partial(episodes.append, episode("a")), partial(episodes.get, "a"), episodes.select)
    with episodes._lock:  # as another thread may have it at the moment of the fork
        child = os.fork()
    if child == 0:
        told = 0
        for use in uses:
            try:
                use()
            except StoreError as error:
                told += "fork" in str(error)
        episodes.close()
        os._exit(len(uses) - told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    episodes.close()
    episodes.close()
    for use in uses:
        with pytest.raises(StoreError, match="closed"):
            use()


def test_an_agent_keeps_its_episodes_in_files_meanwhile(kept, folder):
    """An agent takes a store with spilling in it, and reads the conversation that waits."""
    tools, far = MemoryStore(), UnreliableStore(kept, episode_faults=["refused"] * 1_000)
    episodes = SpillingEpisodes(far, folder=folder)
    with closing(with_episodes(tools, episodes=episodes)) as both:
        assert isinstance(both, Store)
        assert isinstance(both, BatchAppending)
        assert not isinstance(both, Pruning)
        agent = Agent(ScriptedModel(["One.", "Two."]), store=both)
        assert agent.run_sync("first", session_id="s").is_kept
        assert agent.run_sync("second", session_id="s").episode.history_length == 2
        assert tools.volume().count == kept.volume().count == 0
        far._episode_faults = iter(())
        wait_until(lambda: not episodes._files)
    assert [one.request for one in kept.select()] == ["second", "first"]


class TestSpilling(EpisodeStoreConformance):
    """What waits in files is read as if it were kept; it is of this process alone."""

    @pytest.fixture
    def store(self, tmp_path) -> Iterator[Store]:
        """A library in memory, episodes in files because their store is away."""
        far = UnreliableStore(MemoryStore(), episode_faults=["refused"] * 10_000)
        episodes = SpillingEpisodes(far, folder=tmp_path / "spill")
        store = with_episodes(MemoryStore(), episodes=episodes)
        yield store
        store.close()


def test_a_store_that_keeps_all_is_refused():
    """A store that cannot let episodes go says so."""
    with pytest.raises(UsageError, match="cannot let episodes go"):
        pruning(object())


FAULTS = st.sampled_from([None, "refused", "unanswered"])
STEPS = st.lists(st.sampled_from(["append", "append", "many", "wait", "reopen"]), max_size=20)


@given(steps=STEPS, faults=st.lists(FAULTS, max_size=12))
def test_whatever_fails_each_episode_is_kept_once_and_in_order(tmp_path_factory, steps, faults):
    """Appends, failures and new starts in any order lose, double and swap nothing."""
    logging.disable(logging.CRITICAL)
    folder = tmp_path_factory.mktemp("spill")
    kept = MemoryStore()
    kept.close = lambda: None
    store = UnreliableStore(kept, episode_faults=faults)
    episodes, names = SpillingEpisodes(store, folder=folder), []
    try:
        for step in steps:
            if step == "wait":
                wait_until(lambda held=episodes: not held._files)
            elif step == "reopen":
                episodes.close()
                episodes = SpillingEpisodes(store, folder=folder)
            else:
                new = [f"e{len(names) + i:03}" for i in range(1 if step == "append" else 3)]
                episodes.append_many([episode(name, session=name[-1]) for name in new])
                names += new
            assert ids(episodes) == names
        wait_until(lambda: not episodes._files)
    finally:
        episodes.close()
        logging.disable(logging.NOTSET)
    assert ids(kept) == names
    assert list(folder.iterdir()) == []


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")
def test_killed_programs_lose_nothing_that_was_appended(tmp_path):
    """Programs are killed at any moment: what was appended is there once and in order."""
    program = Path(__file__).with_name("kill_spilling_programs.py")
    runs = fault_runs(5)
    command = [sys.executable, str(program), str(tmp_path), str(runs), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["killed"] == runs
    assert found["kept"] >= found["appended"]


def test_sqlite_keeps_what_waited(tmp_path, store, folder):
    """A file of another store's episodes goes into the one that is there at the next start."""
    spill(store, folder, "a", "b")
    with SpillingEpisodes(SQLiteStore(tmp_path / "s.db"), folder=folder) as episodes:
        wait_until(lambda: not episodes._files)
        assert ids(episodes) == ["a", "b"]
