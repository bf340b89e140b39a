"""Changes are taken back, pinned, and made outside of proposals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Episode, ToolDefinition, tool
from agentkit.episodes import Turn, Verdict
from agentkit.errors import StoreError
from agentkit.evolution.manager import ToolManager
from agentkit.library import LibraryChange
from agentkit.library.chain import HmacKey, verify_chain, verify_library
from agentkit.library.pins import pin_faults
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.tools.definition import Description, Example

# --- What was promoted is taken back by giving the tool the definition that it had before --------


@pytest.fixture
def promote(manager, propose):
    """Promotes a summary of a tool, and gives the proposal's id."""

    def make(summary, name="add"):
        record = manager.submit(propose(manager, name, summary))
        manager.advance(record.proposal_id)
        return record.proposal_id

    return make


def states(manager):
    """The state of each proposal, in order."""
    return [record.state for record in manager.ledger.proposals.values()]


def summary(library, name="add"):
    """What a library says of a tool."""
    return library[name].definition.description.summary


def test_what_was_built_on_it_goes_too(manager, store, promote, ada):
    """Taking back an earlier proposal takes back all that became active after it."""
    original = summary(store.load())
    ids = [promote(f"Add two numbers, {number}.") for number in "abc"]
    assert manager.roll_back(ids[1], author=ada, reason="wrong") == (ids[2], ids[1])
    assert summary(store.load()) == "Add two numbers, a."
    assert states(manager) == ["superseded", "rolled_back", "rolled_back"]
    assert [revision.author for revision in store.history("add")][-1] == "ada"
    assert manager.roll_back(ids[0]) == (ids[0],)
    assert summary(store.load()) == original
    assert not verify_library(store, store.events())


def test_restoring_a_version_takes_back_what_came_since(manager, store, promote):
    """Going back to a library version rolls back the promotions after it, and no others."""
    original = summary(store.load())
    promote("Add two numbers, once.")
    promote("Add two numbers, twice.")
    manager.restore("add", to_version=2)
    assert states(manager) == ["superseded", "rolled_back"]
    assert summary(store.load()) == "Add two numbers, once."
    manager.restore("add", to_version=1)
    assert states(manager) == ["rolled_back", "rolled_back"]
    assert summary(store.load()) == original
    with pytest.raises(StoreError, match="already is as it was"):
        manager.restore("add", to_version=1)


# --- A pin lets runs use one version whatever happens to the library -----------------------------


TOTAL = '''
@composite(examples=[{"arguments": {"a": 1, "b": 2}, "result": 4}])
def one_more(a: float, b: float) -> float:
    """One more than a sum."""
    return add(add(a, b), 1)
'''


def test_the_whole_library_is_pinned(manager, store, promote):
    """Runs use that version, with its code, until it is unpinned; the library goes on."""
    original = summary(manager.library)
    promote("Add two numbers, once.")
    served = manager.pin(1, reason="complaints")
    assert (served.version, summary(served)) == (1, original)
    assert served["add"](a=1, b=2) == 3
    assert manager.library.version == 2
    assert summary(manager.unpin()) == "Add two numbers, once."
    assert [event.kind for event in store.events()][-2:] == ["pinned", "unpinned"]


def test_one_tool_is_pinned(manager, promote):
    """The pinned tool has its old words; others go on; composites above run on it."""
    original = summary(manager.library)
    manager.insert(TOTAL)
    promote("Add two numbers, once.")
    served = manager.pin(2, "add")
    promote("Multiply two numbers, and no more.", "mul")
    served = manager.served
    assert summary(served) == original
    assert summary(served, "mul") == "Multiply two numbers, and no more."
    assert not pin_faults(served)
    assert served["one_more"](a=1, b=2) == 4


# --- Every other write of the manager is an event too, in the same change ------------------------


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
