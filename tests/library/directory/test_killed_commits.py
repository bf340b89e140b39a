"""A commit that is killed anywhere was made, or was not; and nothing else was touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("stale", [True, False])
def test_a_lost_index_is_made_again(workshop, make_tool, stale):
    """Without the index, files of earlier versions are told from edits by hand."""
    old = workshop.file("ping").read_bytes()
    workshop.put(make_tool("ping", "New."))
    after = workshop.contents()
    (workshop.path / "index.json").unlink()
    if stale:
        workshop.file("ping").write_bytes(old)
    workshop.edit("pong", "Answer.", "Answer by hand.")
    (edit,) = workshop.again().edits()
    assert (edit.name, edit.is_conflict) == ("pong", False)
    workshop.store.take_back("pong")
    assert workshop.contents() == after


@pytest.mark.parametrize("is_stale", [True, False])
def test_a_clone_without_an_index_tells_of_edits(workshop, make_tool, is_stale):
    """Where nothing is written, as in a fresh clone, edits are told from files left behind."""
    old = workshop.contents()
    workshop.put(make_tool("ping", "New."), make_tool("more"))
    for name, content in old.items() if is_stale else ():
        if not name.startswith("history"):
            (workshop.path / name).write_bytes(content)
    if not is_stale:
        (workshop.path / "index.json").unlink()
    workshop.edit("pong", "Answer.", "Answer by hand.")
    shutil.rmtree(workshop.path / "local")
    before = workshop.contents()
    (edit,) = workshop.again().edits()
    assert (edit.name, edit.is_conflict, edit.faults) == ("pong", False, ())
    index = str(workshop.path / "index.json")
    assert {fault.place for fault in workshop.store.check()} == {str(edit.file), index}
    assert (workshop.contents(), (workshop.path / "local").exists()) == (before, False)


COUNT_READS = """
import sys

reads = []
sys.addaudithook(lambda event, told: reads.append(told[0]) if event == "open" else None)

from agentkit.library.checking import check_store
from agentkit.library.directory import DirectoryStore

store = DirectoryStore(sys.argv[1])
for tool in store.load() if sys.argv[2] == "history" else ():
    assert len(store.history(tool.name)) == 1
if sys.argv[2] == "check":
    assert check_store(store).is_sound
print(sum(str(one).endswith("00000002.json") for one in reads))
"""


@pytest.mark.parametrize("asked", ["history", "check", "index"])
def test_a_change_of_many_tools_is_read_a_few_times(workshop, make_tool, asked):
    """Histories, a check and a lost index need it; a read for each tool would take minutes."""
    workshop.put(*(make_tool(f"tool_{number}", "One of many.") for number in range(60)))
    workshop.put(make_tool("late"), remove=("ping", "pong"))
    if asked == "index":
        (workshop.path / "index.json").unlink()
    command = [sys.executable, "-c", COUNT_READS, str(workshop.path), asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 1 <= int(done.stdout) <= 6
