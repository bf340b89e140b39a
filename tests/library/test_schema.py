"""A SQLite file reaches the newest shape from a blank file and from an earlier one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentkit import Episode, ToolDefinition
from agentkit.errors import StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.sqlite.schema import STEPS

AFTER_0001 = """
CREATE TABLE [_sqlite_migrations] (
    [id] INTEGER PRIMARY KEY, [migration_set] TEXT, [name] TEXT, [applied_at] TEXT
);
CREATE UNIQUE INDEX [idx__sqlite_migrations_migration_set_name]
    ON [_sqlite_migrations] ([migration_set], [name]);
INSERT INTO _sqlite_migrations VALUES (1, 'agentkit', 'm0001_tool_tables', '2026-03-02 10:00:00+00:00');
CREATE TABLE definitions (digest TEXT PRIMARY KEY, name TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE versions (
    version INTEGER PRIMARY KEY, proposal_id TEXT NOT NULL UNIQUE, author TEXT NOT NULL,
    reason TEXT NOT NULL, evidence TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE revisions (
    version INTEGER NOT NULL REFERENCES versions, tool_name TEXT NOT NULL,
    digest TEXT REFERENCES definitions, origin TEXT, since INTEGER NOT NULL,
    place INTEGER NOT NULL, PRIMARY KEY (tool_name, version)
);
"""

SHAPES = {"blank": "", "after 0001": AFTER_0001}


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


def test_each_step_runs_once(make_file):
    """Opening again runs none of them."""
    path = make_file("")
    SQLiteStore(path).close()
    seen = []
    SQLiteStore(path, tracer=lambda sql, _: seen.append(sql)).close()
    assert not [sql for sql in seen if not sql.lstrip().startswith(("SELECT", "PRAGMA"))]


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


def test_other_tables_in_the_file_are_left_alone(make_file):
    """A program may keep its own tables in the same file."""
    path = make_file("CREATE TABLE inventory (id INTEGER); INSERT INTO inventory VALUES (7)")
    SQLiteStore(path).close()
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT id FROM inventory").fetchall() == [(7,)]


def test_an_older_file_is_not_changed_by_a_reader(make_file):
    """A file that lacks tables is refused by who may only read, with what to do."""
    path = make_file(AFTER_0001)
    before = path.read_bytes()
    with pytest.raises(StoreFormatError, match="open it once with open_store"):
        SQLiteStore(path, read_only=True)
    assert path.read_bytes() == before
