"""A SQLite file reaches the newest shape from a blank file and from every earlier shape.

The earlier shapes are frozen here as SQL, as they were released; they are never edited.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentkit import Episode, ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.sqlite.migrations import MIGRATIONS

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
INSERT INTO definitions VALUES (
    '22bbda25fb5f9a911dc33e59955a7724fe19e8fb89049681a86549142a6314a6', 'ping',
    '{"format":1,"name":"ping","signature":{"parameters":{"type":"object","properties":{}}}}'
);
INSERT INTO versions VALUES (1, 'first', 'Ada', 'import', '["e1"]', '2026-03-02T10:00:00+00:00');
INSERT INTO revisions VALUES (
    1, 'ping', '22bbda25fb5f9a911dc33e59955a7724fe19e8fb89049681a86549142a6314a6',
    '{"kind":"function"}', 1, 0
);
"""

AFTER_0002 = (
    AFTER_0001
    + """
INSERT INTO _sqlite_migrations VALUES (2, 'agentkit', 'm0002_episode_tables', '2026-06-02 10:00:00+00:00');
CREATE TABLE episodes (
    sequence INTEGER PRIMARY KEY, episode_id TEXT NOT NULL UNIQUE, session_id TEXT,
    stop_reason TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX episodes_by_session ON episodes (session_id);
CREATE INDEX episodes_by_stop_reason ON episodes (stop_reason);
CREATE TABLE episode_tools (
    tool_name TEXT NOT NULL, sequence INTEGER NOT NULL REFERENCES episodes,
    PRIMARY KEY (tool_name, sequence)
) WITHOUT ROWID;
"""
)

AFTER_0003 = (
    AFTER_0002
    + """
INSERT INTO _sqlite_migrations VALUES (3, 'agentkit', 'm0003_derived_values', '2026-09-02 10:00:00+00:00');
CREATE TABLE derived (
    key TEXT PRIMARY KEY, generation INTEGER NOT NULL, checksum BLOB NOT NULL, body BLOB NOT NULL
);
CREATE INDEX revisions_by_version ON revisions (version);
"""
)

AFTER_0004 = (
    AFTER_0003
    + """
INSERT INTO _sqlite_migrations VALUES (4, 'agentkit', 'm0004_event_table', '2026-11-02 10:00:00+00:00');
CREATE TABLE library_events (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TRIGGER library_events_update BEFORE UPDATE ON library_events
BEGIN SELECT raise(ABORT, 'events are only ever appended'); END;
CREATE TRIGGER library_events_delete BEFORE DELETE ON library_events
BEGIN SELECT raise(ABORT, 'events are only ever appended'); END;
"""
)

SHAPES = {
    "blank": "",
    "after 0001": AFTER_0001,
    "after 0002": AFTER_0002,
    "after 0003": AFTER_0003,
    "after 0004": AFTER_0004,
}


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
    """Columns of each table and the names of indexes and triggers, read with the driver alone."""
    with closing(sqlite3.connect(path)) as raw:
        tables = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        shape = {name: raw.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in tables}
        shape["others"] = raw.execute(
            "SELECT type, tbl_name, name FROM sqlite_master WHERE type != 'table' ORDER BY 2, 3"
        ).fetchall()
    return shape


def tables_of(path: Path) -> set[str]:
    """The names of the tables."""
    with closing(sqlite3.connect(path)) as raw:
        rows = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in rows}


def ledger_of(path: Path) -> list[str]:
    """The names in the ledger."""
    with closing(sqlite3.connect(path)) as raw:
        rows = raw.execute("SELECT name FROM _sqlite_migrations WHERE migration_set = 'agentkit'")
        return [name for (name,) in rows]


def test_every_earlier_shape_is_tried():
    """A new migration comes with the shape that files had before it."""
    assert len(SHAPES) == len(MIGRATIONS)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_becomes_the_newest(make_file, tmp_path, shape):
    """Opening a file of any earlier shape gives the tables that a new file has, and works."""
    path = make_file(SHAPES[shape])
    store = SQLiteStore(path)
    version = store.load().version
    store.commit(
        LibraryChange(proposal_id="next", upserts=(ToolDefinition(name="pong"),)),
        expected_version=version,
    )
    store.append(Episode(episode_id="e1", request="hi"))
    assert "pong" in store.load()
    assert store.get("e1") is not None
    store.close()
    SQLiteStore(tmp_path / "new.db").close()
    assert shape_of(path) == shape_of(tmp_path / "new.db")
    assert ledger_of(path) == [migration.__name__ for migration in MIGRATIONS]


def test_what_an_older_file_holds_is_kept(make_file):
    """Tools and history of an older file are there after it was brought up to date."""
    store = SQLiteStore(make_file(AFTER_0001))
    assert list(store.load().tools) == ["ping"]
    (revision,) = store.history("ping")
    assert (revision.author, revision.evidence) == ("Ada", ("e1",))
    assert revision.definition == ToolDefinition(name="ping")
    store.close()


def test_each_migration_runs_once(make_file):
    """Opening again runs none of them."""
    path = make_file("")
    SQLiteStore(path).close()
    seen = []
    SQLiteStore(path, tracer=lambda sql, _: seen.append(sql)).close()
    assert not [sql for sql in seen if not sql.lstrip().startswith(("SELECT", "PRAGMA"))]
    assert ledger_of(path) == [migration.__name__ for migration in MIGRATIONS]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "failing", ["CREATE TABLE episode_extents", "episode_tools_by_sequence", "COMMIT"]
)
def test_a_migration_that_fails_leaves_the_file_as_it_was(make_file, shape, failing):
    """When a step fails nothing of any step stays, and the next opening runs them all."""
    path = make_file(SHAPES[shape])
    before = tables_of(path)

    def fail(sql: str, _: object) -> None:
        if failing in sql:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        SQLiteStore(path, tracer=fail)
    assert tables_of(path) == before
    SQLiteStore(path).close()
    assert ledger_of(path) == [migration.__name__ for migration in MIGRATIONS]


def test_other_tables_in_the_file_are_left_alone(make_file):
    """A program may keep its own tables, and its own migrations, in the same file."""
    path = make_file("CREATE TABLE inventory (id INTEGER); INSERT INTO inventory VALUES (7)")
    SQLiteStore(path).close()
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT id FROM inventory").fetchall() == [(7,)]
