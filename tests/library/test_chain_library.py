"""The definitions that a store holds are those of which the events tell."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.chain_check import verify_library
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.sqlite import SQLiteStore
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Description

OLD = ToolDefinition(name="weather", description=Description(summary="old words"))
NEW = replace(OLD, description=Description(summary="new words"))


def put(store, definition, *, told=True, names=None):
    """Commit a definition, with an event that tells of it unless asked otherwise."""
    version = store.load().version
    draft = EventDraft(
        kind="active",
        author=Author(kind="person", name="Ada"),
        tool_name=definition.name,
        library_version=version + 1,
        digest_after=names or definition.digest,
    )
    last = next(reversed(store.events()), None)
    events = chained(last, [draft], at="2026-11-21T10:00:00+00:00") if told else ()
    change = LibraryChange(proposal_id=f"{version}", upserts=(definition,), events=events)
    store.commit(change, expected_version=version)


@pytest.fixture
def path(tmp_path):
    """A file in which a tool was changed and changed back, each with an event."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        for definition in (OLD, NEW, OLD):
            put(store, definition)
    return path


def found_in(path):
    """What is found in a file."""
    with closing(SQLiteStore(path)) as store:
        return verify_library(store, store.events())


def tamper(path, sql):
    """Change a file with the driver alone."""
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(sql)


def test_a_library_as_the_events_say_has_no_fault(path):
    """A tool that was changed and changed back is as its events say, at each version."""
    assert found_in(path) == ()


@pytest.mark.parametrize("word", ["evil", "fine"])
def test_a_definition_changed_in_the_file_is_found(path, word):
    """Words changed behind the store's back are found at each event that tells of their tool."""
    tamper(path, f"UPDATE definitions SET body = replace(body, 'old words', '{word}')")
    assert [(fault.code, fault.sequence) for fault in found_in(path)] == [
        ("definition", 1),
        ("definition", 2),
        ("definition", 3),
    ]


def test_a_revision_moved_in_the_file_is_found(path):
    """A version that was made to show another revision is found."""
    tamper(
        path,
        "UPDATE revisions SET digest = (SELECT digest FROM revisions WHERE version = 2) "
        "WHERE version = 3",
    )
    (fault,) = found_in(path)
    assert fault.message == (
        f"event 3 says that 'weather' had the definition with digest {OLD.digest[:12]} at library "
        f"version 3, but the store holds the definition with digest {NEW.digest[:12]}"
    )


def test_a_revision_dropped_from_the_file_is_found(path):
    """A history that was shortened is found."""
    tamper(path, "DELETE FROM revisions WHERE version = 1")
    (fault,) = found_in(path)
    assert (fault.sequence, fault.message.endswith("the store holds none")) == (1, True)


def written(store, definitions, facts, *, removals=()):
    """Commit several definitions with one event, which tells of them in its facts."""
    version = store.load().version
    draft = EventDraft(
        kind="written",
        author=Author(kind="person", name="Ada"),
        library_version=version + 1,
        facts=facts,
    )
    events = chained(next(reversed(store.events()), None), [draft], at="2026-11-21T10:00:00+00:00")
    change = LibraryChange(
        proposal_id=f"many-{version}", upserts=definitions, removals=removals, events=events
    )
    store.commit(change, expected_version=version)


@pytest.fixture
def many(tmp_path):
    """A file to which two changes of several tools were written, each told in facts."""
    path = tmp_path / "many.db"
    pair = (OLD, replace(OLD, name="climate"))
    with closing(SQLiteStore(path)) as store:
        written(store, pair, {"tools": {one.name: one.digest for one in pair}})
        newer = tuple(replace(NEW, name=one.name) for one in pair)
        written(store, newer, {"repinned": {one.name: one.digest for one in newer}})
        written(store, (), {"removed": ["climate"]}, removals=("climate",))
    return path


def test_events_about_several_tools_are_held_to_the_store(many):
    """What facts say of several tools, of new pins and of removals is as the store has it."""
    assert found_in(many) == ()


@pytest.mark.parametrize(
    ("sql", "sequences"),
    [
        ("UPDATE definitions SET body = replace(body, 'old words', 'evil')", [1, 2, 3]),
        ("UPDATE definitions SET body = replace(body, 'new words', 'evil')", [1, 2, 3]),
        ("DELETE FROM revisions WHERE version = 3", [3]),
        ("DELETE FROM revisions WHERE version = 1 AND tool_name = 'climate'", [1]),
    ],
)
def test_one_of_several_tools_changed_in_the_file_is_found(many, sql, sequences):
    """A definition of which only the facts tell is guarded as any other."""
    tamper(many, sql)
    assert [(one.code, one.sequence) for one in found_in(many)] == [
        ("definition", sequence) for sequence in sequences
    ]


@pytest.mark.parametrize("sql", [None, "UPDATE definitions SET body = replace(body, 'one', 'two')"])
def test_a_digest_over_very_many_tools(tmp_path, sql):
    """Of very many definitions an event keeps one digest over all, which is worked out anew."""
    some = [replace(OLD, name=f"tool_{n}") for n in range(9)]
    some.append(ToolDefinition(name="last", description=Description(summary="one")))
    kept = {"count": len(some), "digest": digest({one.name: one.digest for one in some})}
    path = tmp_path / "many.db"
    with closing(SQLiteStore(path)) as store:
        written(store, (replace(OLD, name="earlier"),), {})
        written(store, tuple(some), kept)
        put(store, replace(NEW, name="later"))
    assert found_in(path) == ()
    if sql is not None:
        tamper(path, sql)
        (fault,) = found_in(path)
        assert (fault.code, fault.sequence) == ("definition", 2)
        assert "holds a definition of 'last' that was changed" in fault.message


def test_versions_without_events_are_a_note(path):
    """What was written around the events is told, versions in a row together."""
    with closing(SQLiteStore(path)) as store:
        for name in ("a", "b"):
            put(store, replace(OLD, name=name), told=False)
        put(store, NEW)
        put(store, replace(OLD, name="c"), told=False)
    notes = found_in(path)
    assert [(note.is_note, note.sequence, note.message) for note in notes] == [
        (True, 3, "no event tells of library versions 4 to 5"),
        (True, 4, "no event tells of library version 7"),
    ]


def test_an_event_that_lies_is_found(tmp_path):
    """An event with another digest than what was written with it is found."""
    with closing(SQLiteStore(tmp_path / "store.db")) as store:
        put(store, OLD, names=NEW.digest)
        assert [fault.code for fault in verify_library(store, store.events())] == ["definition"]
