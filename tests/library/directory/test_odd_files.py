"""What is no plain file among those of tools is told of, and never read through or lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentkit import ToolDefinition


@pytest.fixture
def secret(tmp_path):
    """A file outside of the store."""
    path = tmp_path / "secret"
    path.write_text("name: ping\npassword: hunter2\n")
    return path


@pytest.mark.parametrize("name", ["ping", "new"])
def test_of_a_link_nothing_is_told(workshop, make_tool, secret, name):
    """A link to a file elsewhere is a fault, its text is told nowhere, and the file stays."""
    path, text = workshop.file(name), secret.read_text()
    path.unlink(missing_ok=True)
    path.symlink_to(secret)
    (edit,) = workshop.store.edits()
    assert (edit.name, edit.after) == (name, None)
    assert "it is a link" in edit.faults[0]
    assert "hunter2" not in str([fault.message for fault in workshop.store.check()])
    workshop.put(make_tool("ping", "New."), make_tool("new", "Newer."))
    assert path.is_symlink()
    kept = workshop.store.take_back(name)
    assert (kept.is_symlink(), secret.read_text()) == (True, text)
    assert not path.is_symlink()
    assert workshop.store.edits() == ()


def lead_to_a_device(path):
    """What git can bring: a link to a file without end."""
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, lead_to_a_device, os.mkdir])
@pytest.mark.parametrize("name", ["ping", "new"])
def test_what_never_ends_is_not_read(workshop, make_tool, make, name):
    """A pipe, a device and a folder in the place of a tool's file are faults, and no hindrance."""
    path = workshop.file(name)
    path.unlink(missing_ok=True)
    make(path)
    (edit,) = workshop.store.edits()
    assert (edit.name, len(edit.faults)) == (name, 1)
    workshop.put(make_tool("ping", "New."), make_tool("new", "Newer."))
    assert workshop.again().load().version == 2
    workshop.store.take_back(name)
    assert workshop.store.edits() == ()
    assert workshop.file("ping").is_file()


def test_a_huge_file_is_not_parsed(workshop):
    """A file of many megabytes is told of at once; minutes of reading would serve nobody."""
    workshop.file("ping").write_bytes(b"name: ping\n# " + b"x" * 5_000_000)
    (edit,) = workshop.store.edits()
    assert "5,000,013 bytes" in edit.faults[0]


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/passwd", "a\\b", "..", "CON", "nul.txt", "x\n", "A", "a" * 300, ".a"]
)
def test_a_hostile_name_stays_in_the_folder(workshop, name):
    """Whatever a tool is called, its file lies in the folder, and both come back."""
    before = {path for path in workshop.path.parent.rglob("*") if workshop.path not in path.parents}
    names = {name, name.swapcase()}
    workshop.put(*(ToolDefinition(name=one) for one in names))
    after = {path for path in workshop.path.parent.rglob("*") if workshop.path not in path.parents}
    files = [path.name.casefold() for path in (workshop.path / "tools").iterdir()]
    assert (after, len(files)) == (before, len(set(files)))
    assert names <= {tool.name for tool in workshop.again().load()}
    assert workshop.store.edits() == ()


EDIT_WHILE_THE_STORE_WRITES = """
import sys
from pathlib import Path

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.directory import DirectoryStore

store = DirectoryStore(sys.argv[1])
ping, pong = (store.path / "tools" / f"{name}.yaml" for name in ("ping", "pong"))


def edit(event, told):
    if event == "os.rename" and str(told[1]) == str(ping):
        pong.write_text("name: pong\\ndescription: {summary: Mine.}\\n")


sys.addaudithook(edit)
tools = (ToolDefinition(name="ping"), ToolDefinition(name="pong"))
if sys.argv[2] == "change":
    change = LibraryChange(proposal_id="2", upserts=tools)
else:
    change = LibraryChange(proposal_id="2", upserts=tools[:1], removals=("pong",))
store.commit(change, expected_version=1)
"""


@pytest.mark.parametrize("what", ["change", "removal"])
def test_an_edit_between_plan_and_writing_stays(workshop, what):
    """Whoever saves a file while others are written keeps the text, and the library its own."""
    command = [sys.executable, "-c", EDIT_WHILE_THE_STORE_WRITES, str(workshop.path), what]
    subprocess.run(command, check=True)
    (edit,) = workshop.again().edits()
    assert (edit.name, edit.is_conflict, edit.faults) == ("pong", True, ())
    assert edit.after.description.summary == "Mine."
    assert edit.before.description.summary == "Answer."
    assert (edit.newest is None) == (what == "removal")
