"""What the store did not take in time is in files, and the next writer takes it in: nothing is lost."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from support.faults import fault_runs
from support.unreliable_store import UnreliableStore

from agentkit import Episode
from agentkit.episodes.files import read_episodes
from agentkit.errors import StoreUnavailableError
from agentkit.library import EpisodeFilter
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore

QUICK = WriterSettings(
    linger_seconds=0.001,
    first_pause_seconds=0.001,
    longest_pause_seconds=0.002,
    wait_seconds=0.001,
    close_seconds=0.02,
)


def episode(name, *, session="s"):
    """A small episode."""
    return Episode(episode_id=name, request=f"request of {name}", session_id=session)


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
        newest = writer.select(EpisodeFilter(limit=3))
        assert [one.episode_id for one in newest] == names[:-4:-1]
        store.is_on.set()
        writer.flush()
        assert ids(store) == names
    assert list(folder.iterdir()) == []


def test_no_half_batch_is_doubled(folder):
    """A file that was half taken in, then left, is taken in again without doubling anything."""
    kept = MemoryStore()
    away = UnreliableStore(kept, episode_faults=["refused"] * 1_000)
    kept.close = lambda: None
    with open_writer(away, folder) as writer:
        writer.append_many([episode(f"e{i}") for i in range(10)])
    faults = [None, "unanswered", *["refused"] * 1_000]
    with open_writer(UnreliableStore(kept, episode_faults=faults), folder, batch_count=3):
        pass
    assert ids(kept) == [f"e{i}" for i in range(6)]
    with open_writer(kept, folder, batch_count=4) as writer:
        writer.flush()
        assert ids(kept) == [f"e{i}" for i in range(10)]


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
    assert sorted(path.suffix for path in folder.iterdir()) == [".jsonl", ".jsonl", ".lock"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes == {0o700, 0o600}


def test_a_file_without_its_lock_is_taken_in(store, folder):
    """Files whose lock somebody deleted, or a backup left out, are taken in like others."""
    store.is_on.clear()
    with open_writer(store, folder) as writer:
        writer.append(episode("a"))
    (lock,) = folder.glob("*.lock")
    lock.unlink()
    mine = folder / "my-own-episodes.jsonl"
    mine.write_text("not of a writer")
    store.is_on.set()
    with open_writer(store, folder) as writer:
        writer.flush()
    assert ids(store) == ["a"]
    assert list(folder.iterdir()) == [mine]


@pytest.mark.parametrize("end", [".lock", "-000001.jsonl"])
def test_a_link_in_the_folder_is_left_alone(store, folder, tmp_path, end):
    """A link under the name of a writer's file is not followed: nothing is made or taken in."""
    store.is_on.clear()
    with open_writer(store, folder) as writer:
        writer.append(episode("a"))
    (lock,) = folder.glob("*.lock")
    link = lock.with_name(lock.stem + end)
    target = tmp_path / "elsewhere"
    if link != lock:
        link.rename(target)
    else:
        lock.unlink()
    link.symlink_to(target)
    store.is_on.set()
    with open_writer(store, folder) as writer:
        writer.flush()
    assert ids(store) == []
    assert link.is_symlink()
    assert target.exists() == (link != lock)


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
    assert [path.suffix for path in sorted(folder.iterdir())] == [".jsonl", ".lock"]
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
