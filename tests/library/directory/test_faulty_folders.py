"""Whatever is wrong with the folder: a clear error, and the folder as it was."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import (
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.library import LibraryChange
from agentkit.library.directory import DirectoryStore, open_directory
from agentkit.library.directory.folder import Folder
from agentkit.testing.store_fixtures import together


def refused(workshop, match: str) -> None:
    """Opening raises a StoreFormatError and changes nothing."""
    before = workshop.contents()
    with pytest.raises(StoreFormatError, match=match):
        workshop.again()
    assert workshop.contents() == before


def entry(workshop, place: int):
    """The file of a change."""
    return workshop.path / "history" / f"{place:08}.json"


@pytest.mark.parametrize("cut", [0, 1, 50, -2])
def test_half_a_change_is_named(workshop, make_tool, cut):
    """A change whose file lost its end is refused, with its name."""
    workshop.put(make_tool("ping", "New."))
    entry(workshop, 2).write_bytes(entry(workshop, 2).read_bytes()[:cut])
    refused(workshop, r"00000002\.json is damaged")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("place", 1), ("version", 7), ("version", "2"), ("upserts", {}), ("upserts", [7])),
        *(("removals", ["absent"]), ("evidence", [1]), ("author", None), ("events", [{}])),
        ("upserts", [{"digest": "", "definition": {"name": "x", "signature": 7}}]),
    ],
)
def test_a_change_that_makes_no_sense_is_named(workshop, make_tool, name, value):
    """A change that somebody broke by hand is refused."""
    workshop.put(make_tool("ping", "New."))
    record = json.loads(entry(workshop, 2).read_text())
    entry(workshop, 2).write_text(json.dumps(record | {name: value}))
    refused(workshop, r"damaged|can not be read|not a library event")


def test_a_change_that_was_altered_is_found_out(workshop, make_tool):
    """Its definitions have other digests; and the file behind does not follow it any more."""
    workshop.put(make_tool("ping", "New."))
    first = entry(workshop, 1)
    whole = first.read_text()
    first.write_text(whole.replace("Ping a host.", "Pay the bill."))
    refused(workshop, "changed after it was written")
    first.write_text(whole.replace('"author": ""', '"author": "eve"'))
    assert first.read_text() != whole
    refused(workshop, "forked")
    first.write_text(whole.replace("Ping a host.", "Pay the bill."))
    entry(workshop, 2).unlink()
    (workshop.path / "index.json").unlink()
    refused(workshop, "has the digest")


def test_a_gap_is_named(workshop, make_tool):
    """A history that lacks a place in its middle is refused; one that lacks its end too."""
    workshop.put(make_tool("ping", "2"))
    workshop.put(make_tool("ping", "3"))
    second, third = entry(workshop, 2).read_bytes(), entry(workshop, 3).read_bytes()
    entry(workshop, 2).unlink()
    refused(workshop, r"00000002\.json is missing")
    entry(workshop, 2).write_bytes(second)
    entry(workshop, 3).unlink()
    refused(workshop, "tells of 3 changes, and the history holds 2")
    entry(workshop, 3).write_bytes(third)
    assert list(workshop.again().check()) == []


@pytest.mark.parametrize("place", ["index.json", "history/00000001.json"])
def test_a_newer_format_is_refused(workshop, place):
    """What a newer agentkit wrote is refused with the way out."""
    path = workshop.path / place
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    refused(workshop, "format 2.*pip install --upgrade agentkit-evolve")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"a": 1}',
        '{"format": 1}',
        json.dumps(
            {"format": 1, "form": "yaml", "version": 1, "place": 1, "head": ""}
            | {"tools": {"ping": ["../../ping", "", ""]}}
        ),
    ],
)
def test_a_damaged_index_is_named_and_can_be_deleted(workshop, content):
    """An index that can not be read is refused; without it, it is made again."""
    (workshop.path / "index.json").write_text(content)
    refused(workshop, r"index\.json")
    (workshop.path / "index.json").unlink()
    assert list(workshop.again().check()) == []


def test_the_folder_of_another_program_is_refused(tmp_path):
    """A folder with tools that are not ours is left alone, and one with other files is not."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "hammer.yaml").write_text("mine")
    with pytest.raises(StoreError, match="not from a store"):
        open_directory(f"dir:{tmp_path}")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.json").write_text('{"pages": []}')
    with pytest.raises(StoreFormatError, match="not written by agentkit"):
        open_directory(f"dir:{tmp_path / 'other'}")


def test_the_folder_above_has_to_be_there(tmp_path):
    """A store is not made somewhere by a mistyped path, nor in the place of a file."""
    with pytest.raises(StoreError, match="does not exist; make it first"):
        open_directory(f"dir:{tmp_path / 'absent' / 'library'}")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is a file"):
        open_directory(f"dir:{tmp_path / 'file'}")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_looking_makes_nothing(tmp_path):
    """A folder is made with the first change or episode, not by reading."""
    store = open_store(f"dir:{tmp_path / 'library'}")
    store.load()
    list(store.select())
    assert (store.get("x"), store.edits(), list(store.check())) == (None, (), [])
    assert not (tmp_path / "library").exists()
    store.append(Episode(episode_id="e", request="?"))
    assert [path.name for path in (tmp_path / "library").iterdir()] == ["local"]
    store.close()


@pytest.mark.parametrize(
    "url", ["dir:", "dir:?format=json", "dir:a?form=json", "dir:a?format=toml"]
)
def test_a_url_that_means_nothing_is_refused(url):
    """A URL without a folder, or with another wish than a format, is misuse."""
    with pytest.raises(UsageError, match=r"dir:|yaml or json"):
        open_store(url)


def test_the_form_of_a_store_stays(workshop):
    """A store of YAML files is not opened as one of JSON."""
    with pytest.raises(UsageError, match="keeps its tools as yaml"):
        open_store(f"dir:{workshop.path}?format=json")


def test_json_files_are_edited_too(tmp_path):
    """A store of JSON files keeps its form without being asked, and sees what people edit."""
    path = tmp_path / "json"
    store = DirectoryStore(path, form="json")
    change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
    store.commit(change, expected_version=0)
    store.close()
    (file,) = (path / "tools").iterdir()
    assert file.name == "ping.json"
    file.write_text(file.read_text().replace('"ping"', '"ping", "nam": 1'))
    store = open_store(f"dir:{path}")
    assert "`nam` is not a key of a definition" in store.edits()[0].faults[0]
    store.close()


def test_without_pyyaml_the_extra_is_named(tmp_path):
    """Where PyYAML is absent, the error says what to install; JSON needs nothing."""
    program = (
        "import sys; sys.modules['yaml'] = None  # as if it were absent\n"
        "from agentkit.library.directory import open_directory\n"
        f"open_directory('dir:{tmp_path}/json?format=json')\n"
        f"open_directory('dir:{tmp_path}/yaml')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert "MissingExtraError" in ran.stderr
    assert 'pip install "agentkit-evolve[dir]"' in ran.stderr


def test_one_writer_takes_a_place_without_any_lock(tmp_path):
    """Of writers that hold no lock, as on machines that share a folder, one makes a change."""
    folder = Folder(tmp_path / "library", timeout_seconds=1)
    folder.make()
    for place in (1, 2, 3):
        claims = [partial(folder.claim, place, b"%d" % number) for number in range(6)]
        assert sorted(together(claims)) == [False] * 5 + [True]
    assert len(list(folder.history.iterdir())) == 3
    assert list(folder.local.glob("draft*")) == []


def test_a_lock_that_is_held_for_too_long_is_told(workshop, make_tool):
    """A writer that is kept waiting raises, nothing is changed, and readers go on."""
    impatient = DirectoryStore(workshop.path, timeout_seconds=0.05)
    late = LibraryChange(proposal_id="late", upserts=(make_tool("late"),))
    with Folder(workshop.path, timeout_seconds=1).locked():
        with pytest.raises(StoreUnavailableError, match=r"locked.*0\.05 s"):
            impatient.commit(late, expected_version=1)
        assert impatient.load().version == 1
    assert impatient.commit(late, expected_version=1) == 2
    impatient.close()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_that_refuses_locks_is_written(workshop, make_tool, monkeypatch, code):
    """Some file servers have no locks: links alone then keep writers apart."""
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")

    def refuse(*_asked):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert workshop.put(make_tool("ping", "New.")) == 2
    assert "New." in workshop.file("ping").read_text()


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_flushes_no_folders_is_written(workshop, make_tool, monkeypatch, code):
    """A change that is made is not said to have failed because a folder can not be flushed."""
    flush = os.fsync

    def refuse_folders(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        flush(handle)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    assert workshop.put(make_tool("ping", "New.")) == 2
    assert "New." in workshop.file("ping").read_text()
