"""A store that is opened to be read stays as it is, down to the bytes of its file."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest
from support.histories import HistoryStep, all_told, write_history

from agentkit import Episode
from agentkit.errors import StoreError, StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.opening import open_store, open_to_read
from agentkit.tools.definition import ToolDefinition

STEPS = [
    HistoryStep(wishes={"a": ("one", ""), "b": ("", "")}, events=2, episodes=2),
    HistoryStep(wishes={"b": None}, events=1),
]


@pytest.fixture
def path(tmp_path):
    """A file with a history."""
    path = tmp_path / "store.db"
    with closing(open_store(str(path))) as store:
        write_history(store, STEPS)
    return path


def test_everything_can_be_read(path):
    """What a store opened to be read tells is what it tells otherwise, and no byte changes."""
    before = path.read_bytes()
    with closing(open_to_read(str(path))) as store:
        told = all_told(store)
    assert path.read_bytes() == before
    with closing(open_store(str(path))) as store:
        assert all_told(store) == told


def test_nothing_can_be_written(path):
    """A commit and an episode are refused, and the words say how to write."""
    before = path.read_bytes()
    change = LibraryChange(proposal_id="new", upserts=(ToolDefinition(name="new"),))
    with closing(open_to_read(str(path))) as store:
        with pytest.raises(StoreError, match="open_store"):
            store.commit(change, expected_version=2)
        with pytest.raises(StoreError, match="open_store"):
            store.append(Episode(episode_id="new", request="?"))
    assert path.read_bytes() == before


def test_a_writer_is_read_along(path):
    """What another program commits while a store is open to be read is seen."""
    with closing(open_to_read(str(path))) as reader, closing(open_store(str(path))) as writer:
        assert reader.load().version == 2
        write_history(writer, [HistoryStep(wishes={"c": ("", "")})], name="later")
        assert reader.load().version == 3


@pytest.mark.parametrize("url", ["{}/absent.db", "sqlite:///{}/absent.db", "dir:{}/absent"])
def test_no_file_is_made(tmp_path, url):
    """A name that leads nowhere is refused, and nothing is made there."""
    with pytest.raises(StoreError, match="there is no store at"):
        open_to_read(url.format(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_is_refused(tmp_path):
    """Another program's database is no store, and is not changed."""
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("CREATE TABLE episodes (x)")
    before = path.read_bytes()
    with pytest.raises(StoreFormatError, match="another program"):
        open_to_read(str(path))
    assert path.read_bytes() == before


@pytest.fixture
def sealed(path, tmp_path):
    """The same file on a disk that is mounted to be read only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.name != "posix" or os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    shutil.copy(path, folder)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    yield folder / path.name
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_read_only_disk_is_no_obstacle(path, sealed):
    """A file on a disk that nobody can write to is read in full."""
    with closing(open_to_read(str(path))) as store, closing(open_to_read(str(sealed))) as other:
        assert all_told(other) == all_told(store)
    assert [one.name for one in sealed.parent.iterdir()] == [sealed.name]
