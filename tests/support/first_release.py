"""The tables that the first release made in SQLite, frozen: later ones must read them."""

TABLES = """
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
