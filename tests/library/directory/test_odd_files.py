"""What is no plain file among those of tools is told of, and never read through or lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.library import LibraryChange


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


@pytest.mark.parametrize("name", ["local", "history", "tools"])
@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_in_place_of_a_folder_is_refused(workshop, make_tool, tmp_path, name, is_dangling):
    """A link that git put in the place of one of the folders is refused; nothing lands behind it."""
    victim = tmp_path / "victim"
    if not is_dangling:
        victim.mkdir()
    place = workshop.path / name
    place.rename(tmp_path / "away")
    place.symlink_to("../victim")
    episode = Episode(episode_id="e", request="secret words")
    change = LibraryChange(proposal_id="2", upserts=(make_tool("new"),))
    for use in (
        lambda: workshop.store.append(episode),
        lambda: workshop.store.commit(change, expected_version=1),
        workshop.again,
    ):
        with pytest.raises(StoreError, match=f"{name} is a link"):
            use()
    assert not is_dangling or not victim.exists()
    assert is_dangling or list(victim.iterdir()) == []


@pytest.mark.parametrize("name", ["episodes.db", "lock", ".gitignore", "newest.json", "set-aside"])
def test_a_link_in_the_local_folder_is_refused(tmp_path, make_tool, name):
    """A link in ``local/`` that git brought is refused, and what it leads to is not made."""
    (tmp_path / "library" / "local").mkdir(parents=True)
    (tmp_path / "library" / "local" / name).symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="is a link"):
        open_store(f"dir:{tmp_path / 'library'}")
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("name", ["local", "local/episodes.db", "local/lock"])
def test_a_link_that_came_after_opening_is_refused(tmp_path, make_tool, name):
    """An open store looks again before it writes, for git may have put a link there meanwhile."""
    folder = tmp_path / "library"
    store = open_store(f"dir:{folder}")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(tmp_path / "victim")
    change = LibraryChange(proposal_id="1", upserts=(make_tool("ping"),))
    with pytest.raises(StoreError, match="is a link"):
        store.append(Episode(episode_id="e", request="secret words"))
    with pytest.raises(StoreError, match="is a link"):
        store.commit(change, expected_version=0)
    store.close()
    assert not (tmp_path / "victim").exists()
