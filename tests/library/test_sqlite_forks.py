"""A process that inherited an open SQLite store by a fork and opens the file again, as it is told to."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

PROGRAM = """
import os, signal, sys, threading
from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.library import LibraryChange

path = sys.argv[1]

def add(store, name, version):
    change = LibraryChange(proposal_id=name, upserts=(ToolDefinition(name=name),))
    return store.commit(change, expected_version=version)

def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            sys.stdout.flush()
            os._exit(0)
    return child

class Turn:
    def __init__(self):
        self.reads, self.writes = os.pipe()
    def take(self):
        os.read(self.reads, 1)
    def give(self):
        os.write(self.writes, b"x")

first = open_store(path)
add(first, "first", 0)
child_goes, parent_goes = Turn(), Turn()
"""

CLOSED_MEANWHILE = """
def work():
    store = open_store(path)
    store.load()
    parent_goes.give()
    child_goes.take()
    print("child made", add(store, "second", 1))
    parent_goes.give()
    child_goes.take()
    print("child reads", *store.load().tools)
    store.close()

child = forked(work)
parent_goes.take()
first.close()
child_goes.give()
parent_goes.take()
store = open_store(path)
print("parent reads", *store.load().tools)
add(store, "third", 2)
child_goes.give()
os.waitpid(child, 0)
store.close()
print("at last", *open_store(path).load().tools)
"""

KILLED_MEANWHILE = """
def die():
    add(open_store(path), "second", 1)
    os.kill(os.getpid(), signal.SIGKILL)

def work():
    child_goes.take()
    store = open_store(path)
    print("child reads", *store.load().tools)
    store.close()

child = forked(work)
first.close()
os.waitpid(forked(die), 0)
child_goes.give()
os.waitpid(child, 0)
print("at last", *open_store(path).load().tools)
"""

IN_USE = """
from agentkit.library.sqlite import SQLiteStore

inside, leave = threading.Event(), threading.Event()

def held(sql, _):
    if "COMMIT" in sql:
        inside.set()
        leave.wait()

busy = SQLiteStore(path, tracer=held)
writer = threading.Thread(target=add, args=(busy, "second", 1))
writer.start()
inside.wait()

def work():
    try:
        open_store(path)
    except StoreError as error:
        print(error)

os.waitpid(forked(work), 0)
leave.set()
writer.join()
busy.close()
print("at last", *first.load().tools)
"""


def said(program: str, path: object) -> list[str]:
    """The lines that a program says of a store."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM + program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_nothing_is_lost_when_the_process_that_forked_closes_its_store(tmp_path):
    """A fork that opened the file again is seen by others: nobody clears its log away."""
    assert said(CLOSED_MEANWHILE, tmp_path / "store.db") == [
        "child made 2",
        "parent reads first second",
        "child reads first second third",
        "at last first second third",
    ]


def test_the_log_of_a_killed_program_outlives_what_a_fork_inherited(tmp_path):
    """Giving up an inherited connection leaves a log alone that came after the fork."""
    assert said(KILLED_MEANWHILE, tmp_path / "store.db") == [
        "child reads first second",
        "at last first second",
    ]


def test_a_fork_in_the_middle_of_a_commit_is_refused(tmp_path):
    """What a thread of the other process was using can not be closed: the file stays closed here."""
    told, after = said(IN_USE, tmp_path / "store.db")
    assert "was in use by another thread when process" in told
    assert "spawn" in told
    assert after == "at last first second"
