"""What is interrupted leaves the file as it was; forks lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from agentkit import Episode, ToolDefinition
from agentkit.episodes import Turn
from agentkit.library import LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.messages import AssistantMessage, ToolCall

FIRST = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="a"), ToolDefinition(name="b")))
SECOND = LibraryChange(proposal_id="2", upserts=(ToolDefinition(name="c"),), removals=("a",))
EPISODE = Episode(
    episode_id="e1",
    request="?",
    turns=(Turn(message=AssistantMessage(tool_calls=(ToolCall(call_id="1", name="a"),))),),
)

COMMIT_STATEMENTS = (
    "BEGIN",
    "INSERT INTO versions",
    "INSERT OR IGNORE INTO definitions",
    "INSERT INTO revisions",
    "COMMIT",
)
APPEND_STATEMENTS = (
    "BEGIN",
    "INSERT OR IGNORE INTO episodes",
    "INSERT INTO episode_tools",
    "COMMIT",
)

WRITER = """
import os, signal, sys
from agentkit.library.sqlite import SQLiteStore
from agentkit import Episode, ToolDefinition
from agentkit.episodes import Turn
from agentkit.library import LibraryChange
from agentkit.messages import AssistantMessage, ToolCall
path, action, statement = sys.argv[1:]
def die(sql, _):
    if sql.lstrip().startswith(statement):
        os.kill(os.getpid(), signal.SIGKILL)
store = SQLiteStore(path, tracer=die)
if action == "commit":
    tools = (ToolDefinition(name="c"),)
    store.commit(LibraryChange(proposal_id="2", upserts=tools, removals=("a",)), expected_version=1)
else:
    call = ToolCall(call_id="1", name="a")
    turn = Turn(message=AssistantMessage(tool_calls=(call,)))
    store.append(Episode(episode_id="e1", request="?", turns=(turn,)))
"""


@pytest.fixture
def path(tmp_path):
    """A file with one version."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        store.commit(FIRST, expected_version=0)
    return path


def assert_nothing_happened_and_retry_works(store: SQLiteStore) -> None:
    """The store is at version 1 without episodes; the same change and episode now go in."""
    assert (store.load().version, list(store.load().tools)) == (1, ["a", "b"])
    assert list(store.select()) == []
    assert [len(store.history(name)) for name in "abc"] == [1, 1, 0]
    assert store.commit(SECOND, expected_version=1) == 2
    assert list(store.load().tools) == ["b", "c"]
    store.append(EPISODE)
    assert list(store.select()) == [EPISODE]


@pytest.mark.parametrize("statement", COMMIT_STATEMENTS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_mid_commit_changes_nothing(path, statement, error):
    """An exception or Ctrl-C before any statement of a commit rolls all of it back."""
    interrupting = True

    def interrupt(sql: str, _: object) -> None:
        if interrupting and sql.lstrip().startswith(statement):
            raise error("interrupted")

    with closing(SQLiteStore(path, tracer=interrupt)) as store:
        with pytest.raises(error):
            store.commit(SECOND, expected_version=1)
        interrupting = False
        assert_nothing_happened_and_retry_works(store)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
@pytest.mark.parametrize(
    ("action", "statement"),
    [*(("commit", one) for one in COMMIT_STATEMENTS[2:]), ("append", APPEND_STATEMENTS[-1])],
)
def test_a_kill_in_mid_transaction_changes_nothing(path, action, statement):
    """A program killed before a statement leaves nothing of its commit behind, and no lock."""
    ran = subprocess.run([sys.executable, "-c", WRITER, str(path), action, statement], check=False)
    assert ran.returncode == -signal.SIGKILL
    with closing(SQLiteStore(path)) as store:
        assert_nothing_happened_and_retry_works(store)


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
