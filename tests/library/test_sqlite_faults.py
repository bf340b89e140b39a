"""Whatever is wrong with a file or interrupted: a clear error, and the file as it was; forks lose nothing."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn
from agentkit.errors import StoreError, StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.sqlite import SQLiteStore
from agentkit.library.sqlite.schema import STEPS
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import sample_library
from agentkit.tools.definition import Description

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def change(proposal_id: str, *names: str, summary: str = "") -> LibraryChange:
    """A change that puts tools of one text."""
    description = Description(summary=summary)
    tools = tuple(ToolDefinition(name=name, description=description) for name in names)
    return LibraryChange(proposal_id=proposal_id, upserts=tools)


@pytest.fixture
def filled(tmp_path):
    """A closed store that holds the sample library and some episodes."""
    path = tmp_path / "store.db"
    store = SQLiteStore(path)
    store.commit(
        LibraryChange(proposal_id="1", upserts=sample_library().definitions), expected_version=0
    )
    for number in range(20):
        store.append(Episode(episode_id=f"e{number}", request="hello " * 50))
    store.close()
    return path


def assert_refused(path: Path, match: str) -> None:
    """Opening raises a StoreFormatError and changes neither the file nor its folder."""
    before, beside = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(StoreFormatError, match=match):
        SQLiteStore(path)
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == beside


@pytest.mark.parametrize("content", [b"x", b"hello, world\n" * 1000])
def test_a_file_that_is_no_database_is_refused(tmp_path, content):
    """A file of anything else is refused and left alone."""
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    assert_refused(path, "not a SQLite database")


def test_a_locked_file_is_reported(filled):
    """A writer that another program keeps waiting raises after the timeout; readers go on."""
    store = SQLiteStore(filled, timeout_seconds=0.05)
    with closing(sqlite3.connect(filled)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked.*0\.05 s"):
            store.commit(change("2", "new"), expected_version=1)
        with pytest.raises(StoreError, match="locked"):
            store.append(Episode(episode_id="late", request="?"))
        assert store.load().version == 1
    assert store.commit(change("2", "new"), expected_version=1) == 2
    store.close()


READ_ONLY = """
import os, sqlite3, sys  # the user below may not be allowed to read modules
from agentkit import Episode
from agentkit.errors import StoreError
from agentkit.library.sqlite import SQLiteStore

if hasattr(os, "getuid") and os.getuid() == 0:
    os.setuid(65534)  # for root nothing is read-only
try:
    store = SQLiteStore(sys.argv[1])
    print("opened", len(store.load()))
    store.append(Episode(episode_id="new", request="?"))
except StoreError as error:
    print("StoreError:", error)
"""


@pytest.mark.skipif(os.name != "posix", reason="file permissions of POSIX")
@pytest.mark.parametrize("folder_mode", [0o555, 0o755])
def test_a_read_only_file_is_reported(filled, folder_mode):
    """Without the right to write, a StoreError says so and the file stays as it was."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    try:
        path = Path(shutil.copy(filled, folder))
        path.chmod(0o444)
        folder.chmod(folder_mode)
        ran = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(path)], capture_output=True, text=True, check=True
        )
        assert "StoreError: " in ran.stdout
        assert "read-only" in ran.stdout or "may not write" in ran.stdout
        assert path.read_bytes() == filled.read_bytes()
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_full_disk_changes_nothing(filled):
    """A commit that does not fit raises, the version before it stays, and a smaller one works."""
    store = SQLiteStore(filled)
    ((pages,),) = store._connection.execute("PRAGMA page_count")
    store._connection.execute(f"PRAGMA max_page_count = {pages + 8}")
    with pytest.raises(StoreError, match="disk is full"):
        store.commit(change("big", "big", summary="long " * 100_000), expected_version=1)
    assert store.load().version == 1
    assert store.commit(change("small", "small"), expected_version=1) == 2
    store.close()


FORKED = """
import os, sys
from agentkit.errors import StoreError
from agentkit.library.sqlite import SQLiteStore
store = SQLiteStore(sys.argv[1])
store.load()
child = os.fork()
if child == 0:
    try:
        store.load()
    except StoreError as error:
        print(error, flush=True)
    store.close()  # must not disturb the parent
    os._exit(0)
os.waitpid(child, 0)
print("parent reads", store.load(1).version, flush=True)
store.close()
"""


@forks
def test_a_fork_is_told_to_open_again(filled):
    """A store used in a forked process raises there, and goes on working in its own."""
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, str(filled)], capture_output=True, text=True, check=True
    )
    assert "open the store again" in ran.stdout
    assert "parent reads 1" in ran.stdout


ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r)"
TABLES = ["definitions", "episode_extents", "library_events", "_sqlite_migrations"]


def put_view(path: Path, table: str) -> None:
    """Put a view that never ends in the place of a table."""
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"ALTER TABLE {table} RENAME TO theirs")
        raw.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT theirs.* FROM theirs, r")


def test_a_number_that_nobody_counts_to_is_refused(filled):
    """An episode in the last place there is ends no call with an error of the driver."""
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute(f"UPDATE episodes SET sequence = {2**63 - 1} WHERE episode_id = 'e19'")
    store = SQLiteStore(filled)
    with pytest.raises(StoreFormatError, match=f"an episode at place {2**63 - 1}"):
        list(store.select())
    with pytest.raises(StoreFormatError, match="delete that row"):
        store.append(Episode(episode_id="new", request="?"))
    store.close()


@pytest.mark.parametrize("name", ["store.db", "store.db-journal", "store.db-wal"])
def test_a_pipe_in_place_of_a_file_is_refused(filled, name):
    """A pipe where SQLite would wait for good is refused by name, for reading and for writing."""
    path = filled.with_name(name)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=f"{name} is not a plain file"):
            SQLiteStore(filled, read_only=read_only)


def journal_naming(victim: str, *, checksum_off: int = 0) -> bytes:
    """A journal that SQLite takes for hot, and that names ``victim`` as its super-journal."""
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">5I", 0, 1, 9, 512, 4096)
    name = victim.encode()
    end = struct.pack(">2I", len(name), sum(name) + checksum_off) + magic
    return header.ljust(512, b"\0") + struct.pack(">I", 2**30 // 4096 + 1) + name + end


@pytest.fixture
def victim(tmp_path):
    """A file of the user's, in another folder than the store."""
    path = tmp_path / "home" / "notes.txt"
    path.parent.mkdir()
    path.write_text("my thesis\n")
    return path


@pytest.mark.parametrize("checksum_off", [0, 1])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_journal_that_names_another_file_is_refused(filled, victim, read_only, checksum_off):
    """SQLite would delete the file that a super-journal's name leads to; nothing is touched."""
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("PRAGMA journal_mode = DELETE")
    journal = filled.with_name("store.db-journal")
    content = journal_naming(str(victim), checksum_off=checksum_off)
    journal.write_bytes(content)
    with pytest.raises(StoreError, match=r"store\.db-journal is a journal .* delete it"):
        SQLiteStore(filled, read_only=read_only)
    assert victim.read_text() == "my thesis\n"
    assert journal.read_bytes() == content


def test_a_directory_store_s_episodes_beside_such_a_journal_are_refused(tmp_path, victim):
    """The file of episodes of a ``dir:`` store is opened no other way."""
    with closing(open_store(f"dir:{tmp_path / 'lib'}")) as store:
        store.append(Episode(episode_id="e", request="?"))
    episodes = tmp_path / "lib" / "local" / "episodes.db"
    episodes.with_name("episodes.db-journal").write_bytes(journal_naming(str(victim)))
    with (
        closing(open_store(f"dir:{tmp_path / 'lib'}")) as store,
        pytest.raises(StoreError, match=r"episodes\.db-journal is a journal"),
    ):
        list(store.select())
    assert victim.exists()


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_hard_link_beside_the_file_is_refused(filled, victim, ending, read_only):
    """SQLite would write over the file that shares its content with the name beside the store."""
    os.link(victim, f"{filled}{ending}")
    with pytest.raises(StoreError, match=f"store.db{ending} is a hard link"):
        SQLiteStore(filled, read_only=read_only)
    assert victim.read_text() == "my thesis\n"


def test_a_hot_journal_of_one_file_is_rolled_back(filled, tmp_path):
    """What a killed writer in SQLite's journal mode ``delete`` left is undone as ever."""
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("PRAGMA journal_mode = DELETE")
    before = filled.read_bytes()
    killed = tmp_path / "killed" / "store.db"
    killed.parent.mkdir()
    with closing(sqlite3.connect(filled, isolation_level=None)) as raw:
        raw.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        raw.execute("BEGIN")
        raw.execute("UPDATE episodes SET body = body || hex(zeroblob(20000))")
        for ending in ("", "-journal"):
            shutil.copy(f"{filled}{ending}", f"{killed}{ending}")
        raw.execute("ROLLBACK")
    assert killed.read_bytes() != before
    assert Path(f"{killed}-journal").stat().st_size > 512
    with closing(SQLiteStore(killed)) as store:
        assert store.load().version == 1
        assert {episode.request for episode in store.select()} == {"hello " * 50}
    assert not Path(f"{killed}-journal").exists()


@pytest.mark.parametrize("content", [b"", bytes(512)])
def test_a_journal_that_was_done_with_is_no_reason_to_refuse(filled, content):
    """SQLite's journal modes ``truncate`` and ``persist`` leave one empty or without its head."""
    filled.with_name("store.db-journal").write_bytes(content)
    with closing(SQLiteStore(filled)) as store:
        assert store.load().version == 1


def remade(old: str, new: str) -> str:
    """Statements that put an otherwise equal table of episodes in the place of ours."""
    (table,) = (one for one in STEPS["m0002_episode_tables"] if "TABLE episodes " in one)
    assert old in table
    return f"DROP TABLE episodes; {table.replace(old, new)}"


@pytest.mark.parametrize("table", TABLES)
def test_a_view_in_place_of_a_table_is_refused(filled, table):
    """A view under the name of one of our tables is refused when the file is opened."""
    put_view(filled, table)
    assert_refused(filled, f"did not make.*view {table}")
    with pytest.raises(StoreFormatError, match=f"view {table}"):
        SQLiteStore(filled, read_only=True)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (
            "CREATE TRIGGER spy AFTER INSERT ON episodes BEGIN DELETE FROM episodes; END",
            "trigger spy",
        ),
        ("CREATE INDEX slow ON versions (upper(reason))", "index slow"),
        ("CREATE INDEX few ON versions (reason) WHERE length(hex(zeroblob(9))) > 0", "index few"),
        (
            "ALTER TABLE versions ADD COLUMN odd TEXT CHECK (length(hex(zeroblob(9))) > 0)",
            "table versions",
        ),
        ("ALTER TABLE versions ADD COLUMN big AS (printf('%.*c', 9, 'x'))", "table versions"),
        (
            "DROP TABLE derived; CREATE VIRTUAL TABLE derived USING fts5(key, generation)",
            "virtual table derived",
        ),
        (
            """DROP TRIGGER library_events_delete; CREATE TRIGGER library_events_delete
            BEFORE DELETE ON library_events BEGIN DELETE FROM episodes; END""",
            "trigger library_events_delete",
        ),
        (
            """DROP TRIGGER library_events_delete; CREATE TRIGGER library_events_delete
            BEFORE DELETE ON library_events
            BEGIN SELECT raise(ABORT, 'events are only -- '); DELETE FROM episodes; SELECT ('
            ever appended'); END""",
            "trigger library_events_delete",
        ),
        ("CREATE UNIQUE INDEX more ON versions (author)", "index more"),
        (
            """DROP INDEX episodes_by_session;
            CREATE UNIQUE INDEX episodes_by_session ON episodes (session_id)""",
            "index episodes_by_session",
        ),
        (remade("TEXT NOT NULL UNIQUE,", "TEXT NOT NULL COLLATE NOCASE UNIQUE,"), "table episodes"),
        (remade("body ", "b\u2003ody "), "table episodes"),
        (remade("NULL)", "NULL, UNIQUE (stop_reason) ON CONFLICT IGNORE)"), "table episodes"),
        (
            """CREATE TABLE theirs (of REFERENCES episodes ON DELETE CASCADE); CREATE TRIGGER hidden
            AFTER DELETE ON theirs BEGIN DELETE FROM definitions; END""",
            "table theirs, whose rows hang on episodes",
        ),
    ],
)
def test_what_agentkit_did_not_make_is_refused(filled, statement, named):
    """Triggers, indexes, constraints and the like on our tables that we did not make are named."""
    with closing(sqlite3.connect(filled)) as raw, raw:
        raw.executescript(statement)
    assert_refused(filled, named)


def test_no_episode_is_left_out_for_another_reason_than_its_id(filled):
    """A constraint that came after opening fails what it refuses, and a check names it."""
    store = SQLiteStore(filled)
    with closing(sqlite3.connect(filled)) as raw, raw:
        raw.execute("DELETE FROM episodes")
        raw.execute("CREATE UNIQUE INDEX more ON episodes (stop_reason)")
    store.append(Episode(episode_id="first", request="?"))
    store.append(Episode(episode_id="first", request="?"))
    with pytest.raises(StoreError, match="UNIQUE constraint failed"):
        store.append(Episode(episode_id="second", request="?"))
    (fault,) = store.check()
    assert "index more" in fault.message
    store.close()


ROWS = {
    "UPDATE revisions SET since = 'x' WHERE tool_name = 'bill_split'": "revision 1 of 'bill_split'",
    "UPDATE revisions SET place = 'x' WHERE tool_name = 'bill_split'": "revision 1 of 'bill_split'",
    "UPDATE revisions SET digest = NULL WHERE tool_name = 'bill_split'": "revision 1 of 'bill_spl",
    "UPDATE revisions SET version = 9 WHERE tool_name = 'bill_split'": "revision 9 of 'bill_split'",
    "UPDATE revisions SET digest = x'00' WHERE tool_name = 'bill_split'": "revision 1 of 'bill_spl",
    "DELETE FROM revisions": "version 1",
    "UPDATE versions SET version = 9": "revision 1 of",
    "UPDATE versions SET version = 9; UPDATE revisions SET version = 9, since = 9": "version 9",
    "DELETE FROM versions": "revision 1 of",
}


@pytest.mark.parametrize("statement", ROWS)
def test_rows_that_no_commit_writes_are_refused_on_load(filled, statement):
    """Loading names a version or revision that was changed by hand, and gives no smaller library."""
    with closing(sqlite3.connect(filled)) as raw, raw:
        raw.executescript(statement)
    store = SQLiteStore(filled)
    with pytest.raises(StoreFormatError, match=f"damaged at {ROWS[statement]}"):
        store.load()
    store.close()


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
    "INSERT INTO definitions",
    "INSERT INTO revisions",
    "COMMIT",
)
APPEND_STATEMENTS = ("BEGIN", "INSERT INTO episodes", "INSERT INTO episode_tools", "COMMIT")

WRITER = """
import os, signal, sys
from agentkit.library.sqlite import SQLiteStore
from agentkit import Episode, ToolDefinition
from agentkit.episodes import Turn
from agentkit.library import LibraryChange
from agentkit.messages import AssistantMessage, ToolCall
one_version, action, statement = sys.argv[1:]
def die(sql, _):
    if sql.lstrip().startswith(statement):
        os.kill(os.getpid(), signal.SIGKILL)
store = SQLiteStore(one_version, tracer=die)
if action == "commit":
    tools = (ToolDefinition(name="c"),)
    store.commit(LibraryChange(proposal_id="2", upserts=tools, removals=("a",)), expected_version=1)
else:
    call = ToolCall(call_id="1", name="a")
    turn = Turn(message=AssistantMessage(tool_calls=(call,)))
    store.append(Episode(episode_id="e1", request="?", turns=(turn,)))
"""


@pytest.fixture
def one_version(tmp_path):
    """A file with one version."""
    one_version = tmp_path / "store.db"
    with closing(SQLiteStore(one_version)) as store:
        store.commit(FIRST, expected_version=0)
    return one_version


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
def test_an_error_in_mid_commit_changes_nothing(one_version, statement, error):
    """An exception or Ctrl-C before any statement of a commit rolls all of it back."""
    interrupting = True

    def interrupt(sql: str, _: object) -> None:
        if interrupting and sql.lstrip().startswith(statement):
            raise error("interrupted")

    with closing(SQLiteStore(one_version, tracer=interrupt)) as store:
        with pytest.raises(error):
            store.commit(SECOND, expected_version=1)
        interrupting = False
        assert_nothing_happened_and_retry_works(store)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
@pytest.mark.parametrize(
    ("action", "statement"),
    [*(("commit", one) for one in COMMIT_STATEMENTS[2:]), ("append", APPEND_STATEMENTS[-1])],
)
def test_a_kill_in_mid_transaction_changes_nothing(one_version, action, statement):
    """A program killed before a statement leaves nothing of its commit behind, and no lock."""
    ran = subprocess.run(
        [sys.executable, "-c", WRITER, str(one_version), action, statement], check=False
    )
    assert ran.returncode == -signal.SIGKILL
    with closing(SQLiteStore(one_version)) as store:
        assert_nothing_happened_and_retry_works(store)


PROGRAM = """
import os, signal, sys, threading
from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError
from agentkit.library import LibraryChange

one_version = sys.argv[1]

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

first = open_store(one_version)
add(first, "first", 0)
child_goes, parent_goes = Turn(), Turn()
"""

CLOSED_MEANWHILE = """
def work():
    store = open_store(one_version)
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
store = open_store(one_version)
print("parent reads", *store.load().tools)
add(store, "third", 2)
child_goes.give()
os.waitpid(child, 0)
store.close()
print("at last", *open_store(one_version).load().tools)
"""

KILLED_MEANWHILE = """
def die():
    add(open_store(one_version), "second", 1)
    os.kill(os.getpid(), signal.SIGKILL)

def work():
    child_goes.take()
    store = open_store(one_version)
    print("child reads", *store.load().tools)
    store.close()

child = forked(work)
first.close()
os.waitpid(forked(die), 0)
child_goes.give()
os.waitpid(child, 0)
print("at last", *open_store(one_version).load().tools)
"""


def said(program: str, one_version: object) -> list[str]:
    """The lines that a program says of a store."""
    ran = subprocess.run(
        [sys.executable, "-u", "-c", PROGRAM + program, str(one_version)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@forks
def test_nothing_is_lost_when_the_process_that_forked_closes_its_store(tmp_path):
    """A fork that opened the file again is seen by others: nobody clears its log away."""
    assert said(CLOSED_MEANWHILE, tmp_path / "store.db") == [
        "child made 2",
        "parent reads first second",
        "child reads first second third",
        "at last first second third",
    ]


@forks
def test_the_log_of_a_killed_program_outlives_what_a_fork_inherited(tmp_path):
    """Giving up an inherited connection leaves a log alone that came after the fork."""
    assert said(KILLED_MEANWHILE, tmp_path / "store.db") == [
        "child reads first second",
        "at last first second",
    ]
