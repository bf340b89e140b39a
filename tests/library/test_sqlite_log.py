"""The log beside a SQLite file stays short, and is brought into the file under the write lock alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from agentkit import ToolDefinition
from agentkit.episodes import Episode
from agentkit.library import LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.sqlite.connection import CHECKPOINT, LOG_BYTES


def log_bytes(path) -> int:
    """Size of the log beside a file."""
    return path.with_name(f"{path.name}-wal").stat().st_size


def write(store: SQLiteStore, start: int, megabytes: int, *, each: int = 50_000) -> None:
    """Keep episodes of so many bytes each."""
    for number in range(megabytes * 1_000_000 // each):
        store.append(Episode(episode_id=f"{start}-{number}", request="x" * each))


def test_a_log_is_brought_over_again_and_again(tmp_path):
    """However much is written, by two programs in turn, the log stays near its bound."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as one, closing(SQLiteStore(path)) as other:
        for turn in range(4):
            write(one, 2 * turn, 4)
            write(other, 2 * turn + 1, 4)
        assert log_bytes(path) < 2 * LOG_BYTES
        assert path.stat().st_size > 20_000_000
        assert one.volume().count == 8 * 80


def test_big_writes_are_brought_over_each_time(tmp_path):
    """A few long transactions do not make the log longer than two of them."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        for turn in range(10):
            store.append_many(
                [Episode(episode_id=f"{turn}-{i}", request="x" * 50_000) for i in range(100)]
            )
        assert log_bytes(path) < 25_000_000


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
        write(store, 0, 6)
        assert CHECKPOINT in seen
        assert store._connection.execute("PRAGMA wal_autocheckpoint") == [(0,)]


def test_a_reader_that_holds_the_log_back_holds_back_no_writer(tmp_path):
    """While somebody reads an old state the log grows; writers go on, and later it is taken up."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store, closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM episodes").fetchall()
        write(store, 0, 10)
        assert path.stat().st_size < LOG_BYTES
        assert reader.execute("SELECT count(*) FROM episodes").fetchall() == [(0,)]
        reader.rollback()
        write(store, 1, 6)
        assert path.stat().st_size > 10_000_000


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
