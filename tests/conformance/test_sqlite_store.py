"""``sqlite:///`` passes the shipped suites."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.store_conformance import ServedStoreConformance

from agentkit import open_store
from agentkit.library.opening import file_of
from agentkit.testing.conformance.formats import EditDefinitions

OLDEST_SHAPE = """
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
    'DIGEST', 'ping',
    '{"format":1,"name":"ping","signature":{"parameters":{"type":"object","properties":{}}}}'
);
INSERT INTO versions VALUES (1, 'first', 'Ada', 'import', '["e1"]', '2026-03-02T10:00:00+00:00');
INSERT INTO revisions VALUES (1, 'ping', 'DIGEST', '{"kind":"function"}', 1, 0);
"""
"""What the first release made, frozen."""

PING = "22bbda25fb5f9a911dc33e59955a7724fe19e8fb89049681a86549142a6314a6"


class TestSQLiteStore(ServedStoreConformance):
    """A file store: everything applies."""

    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'store.db'}"

    @pytest.fixture
    def oldest_store_url(self, tmp_path: Path) -> str:
        path = tmp_path / "oldest.db"
        with closing(sqlite3.connect(path)) as raw:
            raw.executescript(OLDEST_SHAPE.replace("DIGEST", PING))
        return f"sqlite:///{path}"

    @pytest.fixture
    def newer_store_url(self, tmp_path: Path) -> str:
        path = tmp_path / "newer.db"
        open_store(path).close()
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute(
                "INSERT INTO _sqlite_migrations (migration_set, name) VALUES ('agentkit', 'm9999_new')"
            )
        return f"sqlite:///{path}"

    @pytest.fixture
    def raw_contents(self) -> Callable[[str], object]:
        def read(url: str) -> object:
            path = file_of(url)
            return {one.name: one.read_bytes() for one in path.parent.iterdir()}

        return read

    @pytest.fixture
    def edit_definitions(self) -> EditDefinitions:
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            with closing(sqlite3.connect(file_of(url))) as raw, raw:
                raw.create_function("edit", 1, edit)
                raw.execute("UPDATE definitions SET body = edit(body)")

        return edit_all
