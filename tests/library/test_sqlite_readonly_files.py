"""Reading a SQLite file in a folder that this user may not write, while another user writes to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange

pytestmark = pytest.mark.skipif(
    os.name != "posix" or os.getuid() != 0, reason="only root may become another user"
)

READER = """
import os, sqlite3, sys  # the user below may not be allowed to read modules
from agentkit.errors import StoreError
from agentkit.library.sqlite import SQLiteStore

os.setuid(65534)
store = SQLiteStore(sys.argv[1], read_only=True)
print(*store.load().tools, flush=True)
for _ in range(2):
    sys.stdin.readline()
    for read in (store.load, store.versions, store.events, lambda: list(store.select())):
        try:
            read()
            print("read", end=" ")
        except StoreError as error:
            print(error.__class__.__name__, "changed by another user" in str(error), end=" ")
    print(flush=True)
"""


def change(name: str) -> LibraryChange:
    """A change that adds a tool."""
    return LibraryChange(proposal_id=name, upserts=(ToolDefinition(name=name),))


def test_a_file_that_another_user_changes_is_read_no_further(tmp_path):
    """What is read of a file that changes, without a log to tell, is an error and no old library."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    try:
        path = folder / "store.db"
        with closing(open_store(path)) as store:
            store.commit(change("first"), expected_version=0)
        folder.chmod(0o755)
        path.chmod(0o644)  # it is made for its owner alone
        command = [sys.executable, "-c", READER, str(path)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader:
            assert reader.stdout.readline() == "first\n"
            reader.stdin.write("go\n")
            reader.stdin.flush()
            assert reader.stdout.readline().split() == ["read"] * 4
            with closing(open_store(path)) as store:
                store.commit(change("second"), expected_version=1)
            told, _ = reader.communicate("go\n")
            assert told.split() == ["StoreUnavailableError", "True"] * 4
    finally:
        shutil.rmtree(folder)
