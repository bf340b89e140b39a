"""A copy of a store tells the same; damage is found and told with its place, and whoever reads changes nothing."""

import re
import sqlite3
from contextlib import closing

import pytest
from support.histories import BareStore, HistoryStep, all_told, write_history

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import (
    EpisodeFormatError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UsageError,
)
from agentkit.library import EpisodeFilter, LibraryChange
from agentkit.library.chain import read_signer
from agentkit.library.checking import check_store
from agentkit.library.copying import Copied, copy_store
from agentkit.library.opening import open_to_read
from agentkit.library.store import holds_episode
from agentkit.tools.definition import ChildReference, Signature

STEPS = [
    HistoryStep(wishes={"a": ("one", "here"), "b": ("", "")}, events=2, episodes=2, reason="x"),
    HistoryStep(events=3),
    HistoryStep(wishes={"a": ("one", "there")}),
    HistoryStep(wishes={"b": None}, events=1, episodes=1),
    HistoryStep(wishes={"b": ("back", "")}, episodes=1),
    HistoryStep(events=2),
]


@pytest.fixture
def source():
    """A store with a history."""
    store = open_store("memory:")
    write_history(store, STEPS)
    return store


@pytest.fixture(params=["memory", "sqlite"])
def target(request, tmp_path):
    """An empty store of each kind."""
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'target.db'}"
    with closing(open_store(url)) as store:
        yield store


def test_a_copy_tells_the_same(source, target):
    """Versions, events and episodes are copied as they are, and counted."""
    assert copy_store(source, target) == Copied(versions=4, events=8, episodes=4)
    assert all_told(target) == all_told(source)


@pytest.mark.parametrize(
    "own",
    [HistoryStep(wishes={"a": ("other", "")}), HistoryStep(events=1), HistoryStep(episodes=1)],
    ids=["a version", "an event", "an episode"],
)
def test_a_target_that_holds_something_is_left_alone(source, target, own):
    """A copy goes into an empty store; another one is refused, and untouched."""
    write_history(target, [own])
    before = all_told(target)
    with pytest.raises(UsageError, match="not empty, and nothing was written"):
        copy_store(source, target)
    assert all_told(target) == before


def test_what_comes_meanwhile_is_left_out(source, target):
    """A version and an event that are written behind the copy's back are no part of it."""

    class Busy(BareStore):
        """Gets a version and an event when its changes are about to be copied."""

        def __init__(self, store):
            super().__init__(store)
            self.changes = self._changes

        def _changes(self):
            more = [HistoryStep(wishes={"new": ("", "")}, events=1)]
            write_history(source, more, name="meanwhile")
            return source.changes()

    before = all_told(source)
    copy_store(Busy(source), target)
    assert all_told(target) == before


@pytest.mark.parametrize("number", [200_000_000, 2**63 - 1])
def test_a_damaged_version_number_is_not_counted_to(tmp_path, number):
    """Changes are read as they lie in the file, however great the newest version's number is."""
    path = tmp_path / "damaged.db"
    with closing(open_store(str(path))) as source:
        write_history(source, STEPS)
        newest = source.versions()[-1]
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA foreign_keys=OFF")
        for table in ("versions", "revisions"):
            raw.execute(f"UPDATE {table} SET version = ? WHERE version = ?", (number, newest))
    with closing(open_store(str(path))) as source:
        assert [one.version for one in source.changes()][-2:] == [newest - 1, number]
        assert check_store(source)


def test_a_damaged_definition_is_not_copied(tmp_path, target):
    """A definition that is not the one of its digest is found before it is written."""
    path = tmp_path / "damaged.db"
    with closing(open_store(str(path))) as source:
        write_history(source, STEPS)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE definitions SET body = replace(body, 'back', 'evil')")
    with closing(open_store(str(path))) as source:
        with pytest.raises(StoreFormatError, match=r"'b' that was changed.*agentkit check"):
            copy_store(source, target)
        assert list(target.versions()) == []


def test_words_that_not_every_store_keeps_do_not_stop_a_copy(target):
    """Half a surrogate pair, which SQLite keeps as text, counts as the same."""
    source = open_store("memory:")
    change = LibraryChange(
        proposal_id="p\ud83d", upserts=(ToolDefinition(name="a"),), author="\ud83d", reason="\ud83d"
    )
    source.commit(change, expected_version=0)
    source.append(Episode(episode_id="e\ud83d", request="\ud83d"))
    assert copy_store(source, target) == Copied(versions=1, episodes=1)


KEY = read_signer("0123456789abcdef0123456789abcdef")

STEPS_checking = [
    HistoryStep(wishes={"a": ("one", "here"), "b": ("two", "")}, events=2, episodes=2),
    HistoryStep(events=3),
    HistoryStep(wishes={"a": ("three", "there")}, episodes=2),
    HistoryStep(wishes={"b": None}, events=1),
]


@pytest.fixture
def path(tmp_path):
    """A file with a history, closed."""
    path = tmp_path / "store.db"
    with closing(open_store(str(path))) as store:
        write_history(store, STEPS_checking, signer=KEY)
    return path


@pytest.fixture
def tamper(path):
    """Runs SQL on the file, after taking away what keeps programs from accidents."""

    def run(*statements):
        with closing(sqlite3.connect(path)) as raw, raw:
            for statement in statements:
                if "library_events" in statement:
                    raw.execute("DROP TRIGGER IF EXISTS library_events_update")
                    raw.execute("DROP TRIGGER IF EXISTS library_events_delete")
                raw.execute(statement)

    return run


def checked(path, **options):
    """What a check of a file finds; the file is the same afterwards."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    with closing(open_to_read(str(path))) as store:
        found = check_store(store, **options)
    assert path.read_bytes() == before
    return found


def test_an_episode_that_can_not_be_read_ends_no_listing(path, tamper, tmp_path, caplog):
    """It is left out, and told of by its id: by the log, and as damage by a check."""
    with closing(open_store(str(path))) as store:
        ids = [one.episode_id for one in store.select()]
    bad, *others = ids
    deep = "[" * 210 + "]" * 210
    tamper(
        f"UPDATE episodes SET body = json_set(body, '$.output', json('{deep}')) "
        f"WHERE episode_id = '{bad}'"
    )
    with closing(open_to_read(str(path))) as store, closing(open_store(f"{tmp_path}/2.db")) as copy:
        caplog.clear()
        assert [one.episode_id for one in store.select()] == others
        assert [one.episode_id for one in store.select(EpisodeFilter(limit=1))] == others[:1]
        assert [line.getMessage().split(" (")[0] for line in caplog.records] == [
            f"episode {bad} cannot be read and is left out"
        ]
        assert copy_store(store, copy).episodes == len(others)
        assert holds_episode(store, bad)
        with pytest.raises(EpisodeFormatError, match="nested too deeply"):
            store.get(bad)
        (fault,) = check_store(store).faults
    assert fault.place == f"episode {bad}"
    assert "nested too deeply" in fault.message


@pytest.mark.parametrize("wrap", [lambda store: store, BareStore])
def test_a_sound_store_has_no_faults(path, wrap):
    """All is counted, signatures are checked with the key, and there is nothing to tell."""
    with closing(open_to_read(str(path))) as store:
        found = check_store(wrap(store))
        assert found.is_sound
        assert (found.versions, len(found.library), found.events, found.episodes) == (3, 1, 6, 4)
        assert any("nobody checked" in note.message for note in found.notes)
        with_key = check_store(wrap(store), verifier=KEY)
        assert {fault.place for fault in with_key.faults} == {"event 2", "event 4"}  # unsigned ones


@pytest.mark.parametrize(
    ("statement", "places", "words"),
    [
        (
            "UPDATE definitions SET body = replace(body, 'two', 'evil')",
            ["version 1", "definition"],
            "changed where it lies",
        ),
        (  # what only an earlier version had
            "UPDATE definitions SET body = replace(body, 'one', 'won')",
            ["version 1", "definition"],
            "changed where it lies",
        ),
        ("UPDATE definitions SET body = '{\"name\"'", ["definition"], "cannot be read"),
        ("DELETE FROM definitions WHERE name = 'a'", ["revisions", "versions"], "does not hold"),
        ("DELETE FROM library_events WHERE sequence = 3", ["event 3"], "missing"),
        (
            "UPDATE library_events SET body = replace(body, 'Ada', 'Eve') WHERE sequence = 2",
            ["event 2"],
            "changed",
        ),
        ("UPDATE library_events SET body = 'x' WHERE sequence = 2", ["events"], "cannot be read"),
        (
            "UPDATE episodes SET body = '{' WHERE sequence = 3",
            ["episode step 2-0"],
            "listings leave it out",
        ),
        ("UPDATE versions SET evidence = 'x' WHERE version = 2", ["versions"], "evidence"),
        ("DROP TRIGGER IF EXISTS library_events_update", ["library_events"], "trigger"),
        (
            "INSERT INTO revisions SELECT 3, 'c', digest, '{}', 1, 7 FROM revisions LIMIT 1",
            ["version 3", "definition", "library"],
            "c|order",
        ),
    ],
)
def test_damage_is_told_with_its_place(path, tamper, statement, places, words):
    """Whatever is changed by hand is found, where it is, in words that say what it is."""
    tamper(statement)
    found = checked(path)
    assert not found.is_sound
    told = "\n".join(f"{fault.place}: {fault.message}" for fault in found.faults)

    assert re.search(words, told), told
    assert any(place in told for place in places), told


def test_a_broken_pin_is_a_fault():
    """A composite whose child is gone is named, with what to do."""
    store = open_store("memory:")
    pins = (ChildReference(name="gone", digest="0" * 64),)
    composite = ToolDefinition(name="total", signature=Signature(children=pins))
    store.commit(LibraryChange(proposal_id="1", upserts=(composite,)), expected_version=0)
    faults = check_store(store).faults
    assert {fault.place for fault in faults} == {"total"}
    assert any("not in the library" in fault.message for fault in faults)


def test_a_definition_that_a_program_changed_in_place_is_found():
    """A memory store shares what definitions hold with the program that gave them."""
    store = open_store("memory:")
    schema = {"type": "object", "properties": {}}
    tool = ToolDefinition(name="a", signature=Signature(parameters=schema))
    store.commit(LibraryChange(proposal_id="1", upserts=(tool,)), expected_version=0)
    schema["properties"] = {"x": {"type": "string"}}
    found = check_store(store)
    assert [fault.place for fault in found.faults] == ["version 1", "library"]


def test_a_store_that_is_away_is_not_called_damaged(path):
    """That a store cannot be reached says nothing of what it holds."""
    with closing(open_to_read(str(path))) as store:
        away = BareStore(store)

        def fail(**_):
            raise StoreUnavailableError("the server is away")

        away.events = fail
        with pytest.raises(StoreUnavailableError):
            check_store(away)


def test_nothing_can_be_written(path):
    """A commit and an episode are refused, and the words say how to write."""
    before = path.read_bytes()
    change = LibraryChange(proposal_id="new", upserts=(ToolDefinition(name="new"),))
    with closing(open_to_read(str(path))) as store:
        with pytest.raises(StoreError, match="open_store"):
            store.commit(change, expected_version=3)
        with pytest.raises(StoreError, match="open_store"):
            store.append(Episode(episode_id="new", request="?"))
    assert path.read_bytes() == before


def test_a_foreign_file_is_refused(tmp_path):
    """Another program's database is no store, and is not changed."""
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("CREATE TABLE episodes (x)")
    before = path.read_bytes()
    with pytest.raises(StoreFormatError, match="another program"):
        open_to_read(str(path))
    assert path.read_bytes() == before
