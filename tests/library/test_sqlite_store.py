"""What the SQLite store promises beyond the suite that all stores pass."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.library import EpisodeFilter, LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.sqlite.connection import CHECKPOINT
from agentkit.testing import sample_library
from agentkit.tools.definition import Description, Signature


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


def test_the_newest_snapshot_is_one_object(path):
    """Loading again gives the same object until a commit, so that it can key caches."""
    with closing(SQLiteStore(path)) as store:
        first = store.load()
        assert store.load() is first
        assert store.load(1) is first
        store.commit(edit("new", "x"), expected_version=1)
        assert store.load() is not first


def test_only_what_changed_is_read_again(path):
    """After a commit the tools that it left alone are the same objects as before."""
    with closing(SQLiteStore(path)) as store, closing(SQLiteStore(path)) as writer:
        before = store.load()
        writer.commit(edit("cars_search", "better"), expected_version=1)
        after = store.load()
        assert after["cars_search"].definition.description.summary == "better"
        kept = set(before.tools) - {"cars_search"}
        assert all(after[name] is before[name] for name in kept)


def test_a_content_is_kept_once(path):
    """Equal definitions share a row, whatever their versions; every revision has its own row."""
    with closing(SQLiteStore(path)) as store:
        tool = store.load()["bill_split"].definition
        for version, text in enumerate(["new", "old", "new", "old"], start=1):
            upsert = replace(tool, description=Description(summary=text))
            change = LibraryChange(proposal_id=f"{version}", upserts=(upsert,))
            store.commit(replace(change, proposal_id=f"p{version}"), expected_version=version)
    with closing(sqlite3.connect(path)) as raw:
        ((contents,),) = raw.execute("SELECT count(*) FROM definitions WHERE name = 'bill_split'")
        ((revisions,),) = raw.execute(
            "SELECT count(*) FROM revisions WHERE tool_name = 'bill_split'"
        )
    assert (contents, revisions) == (3, 5)


def test_the_file_uses_the_write_ahead_log(path):
    """Readers do not wait for writers: the journal is the write-ahead log, and keys are checked."""
    with closing(SQLiteStore(path)) as store:
        assert store._connection.execute("PRAGMA journal_mode") == [("wal",)]
        assert store._connection.execute("PRAGMA foreign_keys") == [(1,)]


def test_every_statement_passes_the_tracer(path):
    """The tracer sees reads, writes and the limits of transactions, with their parameters."""
    seen = []
    with closing(
        SQLiteStore(path, tracer=lambda sql, given: seen.append((sql.split()[0], given)))
    ) as store:
        seen.clear()
        store.append(Episode(episode_id="e1", request="?", session_id="s"))
        episode, extent = (given[0] for verb, given in seen if verb == "INSERT")
        assert [verb for verb, _ in seen][:2] == ["PRAGMA", "BEGIN"]
        assert seen[-1] == ("COMMIT", ())
        assert episode[:2] == ("e1", "s")
        assert extent[2] == len(episode[3])


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


async def test_threads_of_an_event_loop_may_use_it(path):
    """An async program moves calls to threads; none is lost and none fails."""
    with closing(SQLiteStore(path)) as store:
        episodes = [Episode(episode_id=f"{n:03}", request="?") for n in range(60)]
        await asyncio.gather(
            *(asyncio.to_thread(store.append, one) for one in episodes),
            *(asyncio.to_thread(store.load) for _ in range(20)),
            asyncio.to_thread(store.commit, edit("new", "x"), expected_version=1),
        )
        assert sorted(one.episode_id for one in store.select()) == [e.episode_id for e in episodes]
        assert store.load().version == 2


def test_equal_digests_are_one_definition(path):
    """What canonical JSON does not tell apart stays equal when read back."""
    one = ToolDefinition(name="n", signature=Signature(parameters={"default": 1, "type": "number"}))
    two = ToolDefinition(
        name="n", signature=Signature(parameters={"type": "number", "default": 1.0})
    )
    assert one.digest == two.digest
    with closing(SQLiteStore(path)) as store:
        for version, tool in enumerate([one, two], start=1):
            change = LibraryChange(proposal_id=f"p{version}", upserts=(tool,))
            store.commit(change, expected_version=version)
        assert store.load()["n"].definition == one == two


LIGHT = """
import sys
from agentkit import Episode, open_store
store = open_store(sys.argv[1])
store.append(Episode(episode_id="e", request="?"))
print(len(store.load()), sorted({"networkx", "pydantic", "numpy"} & set(sys.modules)))
"""


def test_using_a_file_loads_nothing_heavy(path):
    """A program that opens a store and keeps an episode imports no large library."""
    ran = subprocess.run(
        [sys.executable, "-c", LIGHT, f"sqlite:///{path}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "13 []\n"


def log_bytes(path) -> int:
    """Size of the log beside a file."""
    return path.with_name(f"{path.name}-wal").stat().st_size


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
        write(store, 0, 6)
        assert CHECKPOINT in seen
        assert store._connection.execute("PRAGMA wal_autocheckpoint") == [(0,)]


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


def test_a_tool_that_went_and_came_again_is_the_last_one(tmp_path):
    """A reader who saw neither step has the order of one who reads the version anew."""
    path = tmp_path / "s.db"
    reader, writer = SQLiteStore(path), SQLiteStore(path)
    a, b = ToolDefinition(name="a"), ToolDefinition(name="b")
    writer.commit(LibraryChange(proposal_id="1", upserts=(a, b)), expected_version=0)
    assert list(reader.load().tools) == ["a", "b"]
    writer.commit(LibraryChange(proposal_id="2", removals=("a",)), expected_version=1)
    writer.commit(LibraryChange(proposal_id="3", upserts=(a,)), expected_version=2)
    assert list(reader.load().tools) == ["b", "a"]
    reader.close()
    writer.close()
