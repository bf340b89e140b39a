"""A commit that is killed anywhere was made, or was not; and nothing else was touched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agentkit.errors import StoreError, StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.checking import check_store
from agentkit.library.copying import copy_store
from agentkit.library.directory import DirectoryStore

PROGRAM = Path(__file__).with_name("kill_at_each_step.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_commit_may_be_killed_at_every_step(tmp_path):
    """Whoever opens next ends what was begun, around an edit by hand, and a retry is safe."""
    ran = subprocess.run(
        [sys.executable, PROGRAM, tmp_path], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["made"] > 3
    assert found["not made"] > 3
    assert found["made"] + found["not made"] == found["steps"]


def test_half_a_line_is_laid_aside(workshop, make_tool):
    """What a writer that was killed left behind the last line is no change, and is not lost."""
    log = workshop.path / "log.jsonl"
    with log.open("ab") as file:
        file.write(b'{"previous": "a killed wri')
    assert workshop.again().load().version == 1
    (note,) = workshop.store.check()
    assert "half a change" in note.message
    assert workshop.put(make_tool("ping", "New.")) == 2
    assert workshop.again().load(2)["ping"].definition.description.summary == "New."
    (aside,) = (workshop.path / "local").glob("log-*.part")
    assert aside.read_bytes() == b'{"previous": "a killed wri'
    assert list(workshop.store.check()) == []


def test_a_line_that_only_lacks_its_newline_is_a_line(workshop, make_tool):
    """An editor that takes the last newline away takes no change away; the next one writes it."""
    workshop.put(make_tool("ping", "New."))
    log = workshop.path / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole.removesuffix(b"\n"))
    for opened in (lambda: workshop.store, workshop.again):
        store = opened()
        assert store.load()["ping"].definition.description.summary == "New."
        assert (store.load().version, list(store.check())) == (2, [])
    with log.open("ab") as file:
        file.write(b"\n")
    assert (workshop.store.load().version, list(workshop.store.check())) == (2, [])
    log.write_bytes(whole.removesuffix(b"\n"))
    assert workshop.put(make_tool("ping", "Newest.")) == 3
    assert log.read_bytes().startswith(whole)
    assert [one.version for one in workshop.again().changes()] == [1, 2, 3]
    assert not list((workshop.path / "local").glob("log-*"))


def test_a_whole_line_that_does_not_follow_is_no_half_of_one(workshop, make_tool):
    """Without its newline too, what follows another line is refused, and not set aside."""
    workshop.put(make_tool("ping", "New."))
    log = workshop.path / "log.jsonl"
    first, _, last = log.read_bytes().splitlines()
    log.write_bytes(first + b"\n" + last)
    with pytest.raises(StoreFormatError, match="forked"):
        workshop.again()


def test_a_read_only_checkout_tells_of_edits(workshop, make_tool):
    """Where nothing can be written, as in a fresh clone, edits are told and nothing is made."""
    workshop.put(make_tool("ping", "New."), make_tool("more"))
    workshop.edit("pong", "Answer.", "Answer by hand.")
    shutil.rmtree(workshop.path / "local")
    before = workshop.contents()
    (edit,) = workshop.again().edits()
    assert (edit.name, edit.is_conflict, edit.faults) == ("pong", False, ())
    assert {fault.place for fault in workshop.store.check()} == {"pong"}
    assert (workshop.contents(), (workshop.path / "local").exists()) == (before, False)


OLD = Path(__file__).parents[2] / "formats" / "written_2026_11" / "directory"


def test_a_store_of_format_1_is_brought_up_to_date(tmp_path, make_tool):
    """Opening it writes the log, with every version and event; files of tools stay."""
    shutil.copytree(OLD, tmp_path / "library")
    file = tmp_path / "library" / "tools" / "with_tax.yaml"
    file.write_text(file.read_text() + "# a word of mine\n")
    with closing(DirectoryStore(tmp_path / "library")) as store:
        changes, events = list(store.changes()), store.events()
        assert (store.edits(), list(store.check())) == ((), [])
        assert file.read_text().endswith("# a word of mine\n")
        change = LibraryChange(proposal_id="new", upserts=(make_tool("new"),))
        assert store.commit(change, expected_version=len(changes)) == len(changes) + 1
    names = sorted(path.name for path in (tmp_path / "library").iterdir())
    assert names == ["local", "log.jsonl", "tools"]
    with closing(DirectoryStore(tmp_path / "library")) as store:
        assert list(store.changes())[:-1] == changes
        assert store.events() == events
        assert check_store(store).is_sound


def test_a_store_of_json_files_is_read_and_copied(workshop, make_tool, tmp_path):
    """Its library loads; writing is refused with the command that makes a store of YAML files."""
    log = workshop.path / "log.jsonl"
    first, second = log.read_bytes().splitlines()
    head = first.replace(b"yaml", b"json")
    old, new = (hashlib.sha256(one).hexdigest().encode() for one in (first, head))
    log.write_bytes(head + b"\n" + second.replace(old, new) + b"\n")
    store = workshop.again()
    assert (len(store.load()), store.edits()) == (2, ())
    with pytest.raises(StoreError, match="agentkit store copy dir:"):
        workshop.put(make_tool("new"))
    with closing(DirectoryStore(tmp_path / "copy")) as other:
        assert copy_store(store, other).compared.is_equal
        written = sorted((tmp_path / "copy" / "tools").iterdir())
        assert [one.name for one in written] == ["ping.yaml", "pong.yaml"]


def test_a_forked_store_of_format_1_is_refused(tmp_path):
    """A file of its history that does not follow the one before is told, and so is a missing one."""
    shutil.copytree(OLD, tmp_path / "library")
    first, second = sorted((tmp_path / "library" / "history").iterdir())[:2]
    content = first.read_bytes()
    first.write_bytes(content.replace(b'"format": 1', b'"format":  1'))
    with pytest.raises(StoreFormatError, match="forked"):
        DirectoryStore(tmp_path / "library")
    first.write_bytes(content)
    second.unlink()
    with pytest.raises(StoreFormatError, match=f"{second.name} is damaged: it is missing"):
        DirectoryStore(tmp_path / "library")
