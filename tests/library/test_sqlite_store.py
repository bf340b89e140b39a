"""The default store: one file, its statements, versions, and how old episodes go."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.first_release import TABLES

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn
from agentkit.library import EpisodeFilter, LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.sqlite.connection import CHECKPOINT
from agentkit.library.sqlite.schema import STEPS
from agentkit.library.store import Retention
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import sample_library
from agentkit.tools.definition import Description


@pytest.fixture
def path(tmp_path):
    """A file with the sample library at version 1."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        change = LibraryChange(proposal_id="1", upserts=sample_library().definitions)
        store.commit(change, expected_version=0)
    return path


def edit(name: str, summary: str) -> LibraryChange:
    """A change to one tool."""
    tool = ToolDefinition(name=name, description=Description(summary=summary))
    return LibraryChange(proposal_id=summary, upserts=(tool,))


def test_only_what_changed_is_read_again(path):
    """After a commit the tools that it left alone are the same objects as before."""
    with closing(SQLiteStore(path)) as store, closing(SQLiteStore(path)) as writer:
        before = store.load()
        writer.commit(edit("cars_search", "better"), expected_version=1)
        after = store.load()
        assert after["cars_search"].definition.description.summary == "better"
        kept = set(before.tools) - {"cars_search"}
        assert all(after[name] is before[name] for name in kept)


@pytest.mark.parametrize(
    "matching",
    [
        EpisodeFilter(session_id="s"),
        EpisodeFilter(tool_name="t"),
        EpisodeFilter(stop_reason="error"),
    ],
)
def test_filters_use_an_index(path, matching):
    """No filter walks through all episodes, and none has to sort."""
    statements = []
    with closing(SQLiteStore(path, tracer=lambda *seen: statements.append(seen))) as store:
        list(store.select(matching))
        sql, parameters = statements[-1]
        plan = " ".join(
            row[3] for row in store._connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        )
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan


def write(store: SQLiteStore, start: int, megabytes: int, *, each: int = 50_000) -> None:
    """Keep episodes of so many bytes each."""
    for number in range(megabytes * 1_000_000 // each):
        store.append(Episode(episode_id=f"{start}-{number}", request="x" * each))


def test_the_log_is_brought_over_only_while_nobody_else_can_write(tmp_path):
    """SQLite does nothing behind a commit; each checkpoint runs inside a transaction that writes."""
    path, seen = tmp_path / "store.db", []

    def trace(sql: str, _: object) -> None:
        seen.append(sql)
        if sql == CHECKPOINT:
            stranger = sqlite3.connect(path, timeout=0, isolation_level=None)
            with closing(stranger), pytest.raises(sqlite3.OperationalError, match="locked"):
                stranger.execute("BEGIN IMMEDIATE")

    with closing(SQLiteStore(path, tracer=trace)) as store:
        write(store, 0, 12)
        assert CHECKPOINT in seen
        assert path.with_name("store.db-wal").stat().st_size < 6_000_000
        assert store._connection.execute("PRAGMA wal_autocheckpoint") == [(0,)]


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


def test_a_commit_that_finds_a_long_log_keeps_what_it_commits(tmp_path):
    """A definition is committed in the transaction that brought the log over; all is read again."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        write(store, 0, 6, each=1_000_000)
        change = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        assert store.commit(change, expected_version=0) == 1
    with closing(SQLiteStore(path)) as store:
        assert list(store.load().tools) == ["ping"]
        assert not list(store.check())


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


SHAPES = {"blank": "", "after 0001": TABLES}


@pytest.fixture
def make_file(tmp_path):
    """Makes a file from SQL with the driver alone."""

    def make(sql: str) -> Path:
        path = tmp_path / "store.db"
        with closing(sqlite3.connect(path)) as raw:
            raw.executescript(sql)
        return path

    return make


def shape_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Columns of each table, and which steps the file has behind it."""
    with closing(sqlite3.connect(path)) as raw:
        tables = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        shape = {name: raw.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in tables}
        if tables:
            shape["steps"] = raw.execute("SELECT name FROM _sqlite_migrations").fetchall()
    return shape


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_becomes_the_newest(make_file, shape):
    """Opening a file of any earlier shape gives the tables that a new file has, and works."""
    path = make_file(SHAPES[shape])
    with closing(SQLiteStore(path)) as store:
        change = LibraryChange(proposal_id="next", upserts=(ToolDefinition(name="pong"),))
        store.commit(change, expected_version=0)
        store.append(Episode(episode_id="e1", request="hi"))
        assert "pong" in store.load()
        assert store.get("e1") is not None
    assert shape_of(path)["steps"] == [(name,) for name in STEPS]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("failing", ["CREATE TABLE episode_extents", "COMMIT"])
def test_a_step_that_fails_leaves_the_file_as_it_was(make_file, shape, failing):
    """When a step fails nothing of any step stays, and the next opening runs them all."""
    path = make_file(SHAPES[shape])
    before = shape_of(path)

    def fail(sql: str, _: object) -> None:
        if failing in sql:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        SQLiteStore(path, tracer=fail)
    assert shape_of(path) == before
    SQLiteStore(path).close()
    assert shape_of(path)["steps"] == [(name,) for name in STEPS]


NOW = datetime.now(UTC)


def episode(name: str, *, days: float = 0, text: str = "", started_at: str | None = None):
    """An episode that began so many days ago."""
    began = (NOW - timedelta(days=days)).isoformat() if started_at is None else started_at
    turn = Turn(message=AssistantMessage(tool_calls=(ToolCall(call_id="1", name="add"),)))
    return Episode(
        episode_id=name, request=text, turns=(turn,), started_at=began, session_id=name[0]
    )


def test_a_second_pruner_takes_no_more(tmp_path):
    """What one program deletes while another one does is not deleted twice over."""
    path = tmp_path / "s.db"
    other = SQLiteStore(path)
    met = []

    def meanwhile(sql: str, _: object) -> None:
        if sql.startswith("BEGIN") and armed and not met:
            met.append(other.prune(Retention(max_count=500)).count)

    armed = False
    with closing(other), closing(SQLiteStore(path, tracer=meanwhile)) as store:
        store.append_many([episode(f"e{i}", days=i) for i in range(1000)])
        armed = True
        assert store.prune(Retention(max_count=500)).count == 0
        assert (met, store.volume().count) == ([500], 500)
