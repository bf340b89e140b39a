"""Compacting gives back room and loses nothing, whoever else is at the store."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from support.histories import HistoryStep, all_told, write_history

from agentkit import Episode, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import EpisodeFilter
from agentkit.library.capabilities import Retention
from agentkit.library.checking import check_store
from agentkit.library.comparing import compare_stores
from agentkit.library.copying import copy_store
from agentkit.library.sqlite import SQLiteStore

STEPS = [
    HistoryStep(wishes={"a": ("one", "here"), "b": ("two", "")}, events=2, episodes=2),
    HistoryStep(wishes={"a": None}, events=3),
    HistoryStep(wishes={"a": ("three", "there")}, episodes=2),
]


def big_episodes(count):
    """Episodes of some kilobytes each."""
    return [Episode(episode_id=f"big {n}", request="x" * 5_000) for n in range(count)]


@pytest.fixture
def path(tmp_path):
    """A file with a history, and with much room that deleted episodes took."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        store.append_many(big_episodes(200))
        store.prune(Retention(max_count=0))
        write_history(store, STEPS)
    return path


def test_room_is_given_back_and_nothing_is_lost(path):
    """The file is smaller, as was said, and equal to a copy that was made before."""
    with closing(SQLiteStore(path)) as store, closing(open_store("memory:")) as before:
        copy_store(store, before)
        told = all_told(store)
        size = path.stat().st_size
        done = store.compact()
        assert done.bytes_before >= size
        assert done.bytes_after == path.stat().st_size < size / 2
        assert compare_stores(before, store).is_equal
        assert all_told(store) == told
        assert check_store(store).is_sound
        write_history(store, STEPS, name="after")


def test_compacting_twice_finds_nothing_more(path):
    """What was compacted takes the same room afterwards."""
    with closing(SQLiteStore(path)) as store:
        once = store.compact()
        again = store.compact()
        assert again.bytes_after == once.bytes_after


def test_what_was_worked_out_for_older_libraries_goes(path):
    """Of derived values those stay that the last one who worked something out named."""
    with closing(SQLiteStore(path)) as store:
        cache = store.load().cache
        cache.put({"old": b"x" * 50_000, "kept": b"y"})
        cache.put({"new": b"z"}, keep=["kept"])
        store.compact()
        assert cache.get(["old", "kept", "new"]) == {"kept": b"y", "new": b"z"}


def test_others_read_and_write_meanwhile(path):
    """A reader and a writer on other connections get and keep all, before, during and after."""
    stop, errors, written = threading.Event(), [], []

    def work(action):
        try:
            with closing(SQLiteStore(path, timeout_seconds=30)) as store:
                while not stop.is_set():
                    action(store)
        except Exception as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    def read(store):
        assert "a" in store.load()
        assert sum(1 for _ in store.select(EpisodeFilter(limit=3))) == 3

    def write(store):
        episode = Episode(episode_id=f"late {len(written)}", request="y" * 2_000)
        store.append(episode)
        written.append(episode)

    threads = [threading.Thread(target=work, args=(one,)) for one in (read, write)]
    for thread in threads:
        thread.start()
    try:
        with closing(SQLiteStore(path, timeout_seconds=30)) as store:
            for _ in range(5):
                store.compact()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    with closing(SQLiteStore(path)) as store:
        kept = {episode.episode_id for episode in store.select()}
        assert {episode.episode_id for episode in written} <= kept
        assert check_store(store).is_sound


def test_a_file_that_another_program_holds_is_left_alone(path):
    """While somebody else writes, compacting gives up after the timeout, and says so."""
    with (
        closing(SQLiteStore(path, timeout_seconds=0.05)) as store,
        closing(sqlite3.connect(path)) as other,
    ):
        told = all_told(store)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="locked"):
            store.compact()
        other.rollback()
        assert all_told(store) == told


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.name != "posix" or os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_loses_nothing(small_disk):
    """Where the new file does not fit, compacting fails, says so, and nothing is lost."""
    path = Path(small_disk) / "store.db"
    with closing(SQLiteStore(path)) as store:
        write_history(store, STEPS)
        store.append_many(big_episodes(300))
        told = all_told(store)
        filler = Path(small_disk) / "filler"
        with filler.open("wb") as file:
            while shutil.disk_usage(small_disk).free > 200_000:
                file.write(b"x" * 50_000)
                file.flush()
        with pytest.raises(StoreError, match="make room"):
            store.compact()
        assert all_told(store) == told
        filler.unlink()
        store.compact()
        assert all_told(store) == told


def test_a_memory_store_has_nothing_to_give_back():
    """A memory store takes no disk, and keeps what it holds."""
    store = open_store("memory:")
    write_history(store, STEPS)
    told = all_told(store)
    done = store.compact()
    assert (done.bytes_before, done.bytes_after) == (0, 0)
    assert all_told(store) == told
