"""A replica of a SQLite file that is locked, moved, damaged, or on a disk that is full."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from agentkit.errors import StoreError
from agentkit.library import Replica
from agentkit.library.sqlite import SQLiteStore


@pytest.fixture
def path(tmp_path, put):
    """A file with one version."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        put(store, "a")
    return path


def test_a_locked_file_is_no_trouble_for_readers(path, replicate):
    """While another program writes for long, looking goes on; it is the own commits that wait."""
    store = SQLiteStore(path, timeout_seconds=0.01)
    with closing(store), closing(sqlite3.connect(path, isolation_level=None)) as other:
        replica = replicate(store)
        other.execute("BEGIN IMMEDIATE")
        assert replica.refresh().version == 1
        assert replica.status.state == "current"


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
        replica = replicate(store, hints=False)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("INSERT INTO versions VALUES (2,'p2','','','[]','2026-11-22T00:00:00Z')")
            other.execute("INSERT INTO definitions VALUES ('x','b','{broken')")
            other.execute("INSERT INTO revisions VALUES (2,'b','x','{}',2,0)")
        eventually(lambda: replica.status.state == "behind")
        assert "holds a definition that can not be read" in replica.status.last_error
        assert (list(replica.load().tools), replica.load().version) == (["a"], 1)
        assert "the newest library can not be taken up; version 1 is served on" in caplog.text


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of its own that is soon full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not hasattr(os, "geteuid") or os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_on_a_full_disk_reading_goes_on(small_disk, put):
    """What can not be written is an error; what is there is served, and room makes it well."""
    ballast = small_disk / "ballast"
    with Replica(f"sqlite:///{small_disk / 'store.db'}", refresh_seconds=0.01) as replica:
        put(replica, "a")
        _fill(ballast)
        with pytest.raises(StoreError, match="its disk is full"):
            put(replica, "too_long", summary="long " * 500_000)
        version = replica.load().version
        assert replica.refresh().version == version
        assert replica.status.state == "current"
        ballast.unlink()
        assert put(replica, "z") == replica.load().version == version + 1


def _fill(ballast):
    """Take all that is left of a disk."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return
