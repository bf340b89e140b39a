"""Programs that open the same new SQLite file at the same moment all stay connected to it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing

from agentkit import open_store
from agentkit.library import LibraryChange
from agentkit.tools.definition import ToolDefinition

PROGRAM = """
import sys
from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange
store = open_store(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
print(*store.load().tools)
change = LibraryChange(proposal_id="third", upserts=(ToolDefinition(name="third"),))
print(store.commit(change, expected_version=2))
store.close()
"""


def change(name: str) -> LibraryChange:
    """A change that adds a tool."""
    return LibraryChange(proposal_id=name, upserts=(ToolDefinition(name=name),))


def test_whoever_makes_the_tables_keeps_its_lock_on_the_file(tmp_path):
    """A file that another program has just begun is opened without giving up SQLite's locks.

    A program without them is not seen: the next one to close would clear away the log that this
    one still writes to.
    """
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as beginner:
        beginner.execute("PRAGMA journal_mode = WAL")  # it has come so far, and has made no table
        command = [sys.executable, "-c", PROGRAM, str(path)]
        program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert program.stdout.readline() == "open\n"
    with closing(open_store(path)) as store:
        assert store.commit(change("first"), expected_version=0) == 1
    with closing(open_store(path)) as store:
        assert store.commit(change("second"), expected_version=1) == 2
        told, _ = program.communicate("go\n")
        assert (told.split(), program.returncode) == (["first", "second", "3"], 0)
        assert list(store.load().tools) == ["first", "second", "third"]
    with closing(open_store(path)) as store:
        assert list(store.load().tools) == ["first", "second", "third"]
