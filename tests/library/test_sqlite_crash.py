"""A commit that is interrupted anywhere leaves the file as it was before, and can be retried."""

from __future__ import annotations

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


@pytest.mark.parametrize("statement", APPEND_STATEMENTS)
def test_an_error_in_mid_append_changes_nothing(path, statement):
    """An exception before any statement of an append keeps no half episode."""
    interrupting = True

    def interrupt(sql: str, _: object) -> None:
        if interrupting and sql.lstrip().startswith(statement):
            raise RuntimeError("interrupted")

    with closing(SQLiteStore(path, tracer=interrupt)) as store:
        with pytest.raises(RuntimeError):
            store.append(EPISODE)
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
