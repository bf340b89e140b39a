"""Every other write of the manager is an event too, in the same change."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from agentkit import Episode, ToolDefinition, tool
from agentkit.episodes import Turn, Verdict
from agentkit.evolution import ToolManager
from agentkit.library import LibraryChange
from agentkit.library.chain_check import verify_chain, verify_library
from agentkit.library.signing import HmacKey
from agentkit.library.sqlite import SQLiteStore
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.tools.definition import Description, Example

TOTAL = '''
@composite(examples=[{"arguments": {"a": 1, "b": 2}, "result": 4}])
def one_more(a: float, b: float) -> float:
    """One more than a sum."""
    return add(add(a, b), 1)
'''


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def written(store):
    """The operations of all writes outside of proposals, in order."""
    return [event.facts["operation"] for event in store.events() if event.kind == "written"]


def lesson():
    """An episode that teaches ``weather`` a request."""
    call = ToolCall(call_id="1", name="weather", arguments={"city": "Rome"})
    result = ToolResult(call_id="1", name="weather", status="ok", value="sunny")
    turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
    return Episode(
        episode_id="e1", request="Umbrella?", turns=(turn,), verdict=Verdict(passed=True)
    )


def test_each_writer_tells(make_manager, store):
    """register, record, learn, insert, edit and restore leave one event each, with its digests."""
    manager = make_manager(weather)
    manager.record({"weather": [Example(arguments={"city": "Oslo"}, result="rain")]})
    manager.learn([lesson()])
    manager.insert(TOTAL)
    ping = ToolDefinition(name="ping")
    manager.edit(
        lambda _held: LibraryChange(proposal_id="ping", upserts=(ping,)), operation="import"
    )
    manager.restore("weather", to_version=1)
    assert written(store) == ["register", "record", "learn", "insert", "import", "rollback"]
    assert not verify_chain(store.events())
    assert not verify_library(store, store.events())
    assert [event.library_version for event in store.events()] == [1, 2, 3, 4, 5, 6]


def test_a_repeated_write_is_told_once(make_manager, store):
    """The same id again writes neither definitions nor an event."""
    manager = make_manager()
    for _ in range(3):
        manager.insert(TOTAL, proposal_id="p")
        manager.register([weather], proposal_id="r")
    assert written(store) == ["register", "insert", "register"]


def test_a_persons_replacement_supersedes(manager, store, propose, ada):
    """Other words by a person supersede the proposal that served; new pins alone do not."""
    record = manager.submit(propose(manager))
    manager.advance()
    person = ToolManager(store, author=ada)
    same = manager.library["add"].definition
    pinned = replace(same, examples=())
    person.edit(lambda _held: LibraryChange(proposal_id="1", upserts=(pinned,)))
    assert person.ledger.proposals[record.proposal_id].state == "active"
    other = replace(same, description=Description(summary="Sum."))
    person.edit(lambda _held: LibraryChange(proposal_id="2", upserts=(other,)))
    assert person.ledger.proposals[record.proposal_id].state == "superseded"
    assert store.events()[-1].author == ada


def test_events_are_signed(make_manager, store, propose):
    """With a signer each event of the manager carries a signature that its key verifies."""
    key = HmacKey(secret=b"k" * 32)
    manager = make_manager(signer=key)
    manager.submit(propose(manager))
    manager.advance()
    assert not verify_chain(store.events(), verifier=key)
    assert verify_chain(store.events(), verifier=HmacKey(secret=b"x" * 32))


@pytest.mark.parametrize("count", [3, 1_001])
def test_an_import_of_several_tools_is_guarded(tmp_path, count):
    """One of them that is changed in the file is found, also of more than an event lists."""
    path = tmp_path / "store.db"
    summary = Description(summary="as imported")
    with closing(SQLiteStore(path)) as store:
        manager = ToolManager(store)
        manager.register(ToolDefinition(name=f"t{n}", description=summary) for n in range(count))
        assert not verify_library(store, store.events())
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(
            "UPDATE definitions SET body = replace(body, 'as imported', 'evil') WHERE rowid = 2"
        )
    with closing(SQLiteStore(path)) as store:
        assert [fault.code for fault in verify_library(store, store.events())] == ["definition"]
