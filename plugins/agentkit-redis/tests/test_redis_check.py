"""``check`` finds whatever was changed by hand, and nothing where nothing was."""

from __future__ import annotations

import pytest

from agentkit import Episode, ToolDefinition
from agentkit.episodes import Turn
from agentkit.errors import StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.checking import check_store
from agentkit.library.events import Author, EventDraft, chained
from agentkit.messages import AssistantMessage, ToolCall


def _fill(store):
    last = None
    for number in range(3):
        draft = EventDraft(kind="written", author=Author(kind="program", name="t"))
        events = chained(last, [draft], at="2026-11-21T10:00:00+00:00")
        tools = (ToolDefinition(name=f"t{number}"), ToolDefinition(name="each"))
        gone = ("t0",) if number == 2 else ()
        change = LibraryChange(
            proposal_id=f"p{number}", upserts=tools, removals=gone, events=events
        )
        store.commit(change, expected_version=number)
        last = events[0]
        call = ToolCall(call_id="1", name="t1")
        turn = Turn(message=AssistantMessage(tool_calls=(call,)))
        store.append(Episode(episode_id=f"e{number}", request="?", turns=(turn,), session_id="s"))


def _first(client, key):
    return next(iter(client.hkeys(key)))


DAMAGE = {
    "a definition is gone": lambda c, k: c.hdel(k.definitions, _first(c, k.definitions)),
    "a definition is another": lambda c, k: c.hset(
        k.definitions, _first(c, k.definitions), '{"format":1,"name":"x"}'
    ),
    "a definition is no JSON": lambda c, k: c.hset(k.definitions, _first(c, k.definitions), "{"),
    "a version is gone": lambda c, k: c.hdel(k.versions, "2"),
    "a version is no JSON": lambda c, k: c.hset(k.versions, "2", "x {"),
    "a version was edited": lambda c, k: c.hset(
        k.versions, "2", c.hget(k.versions, "2").replace(b'"author":""', b'"author":"Eve"')
    ),
    "the head was turned back": lambda c, k: c.hset(k.head, "version", "2"),
    "a proposal is forgotten": lambda c, k: c.hdel(k.proposals, "p1"),
    "a tool is gone": lambda c, k: c.hdel(k.tools, "t1"),
    "a tool came back": lambda c, k: c.hset(k.tools, "t0", c.hget(k.tools, "t1")),
    "a tool is no tool": lambda c, k: c.hset(k.tools, "t1", "what"),
    "a tool was moved": lambda c, k: c.hset(k.tools, "each", b"9" + c.hget(k.tools, "each")[1:]),
    "an event is gone": lambda c, k: c.xdel(k.events, "2-0"),
    "the last event is gone": lambda c, k: c.xdel(k.events, "3-0"),
    "the chain ends elsewhere": lambda c, k: c.hset(k.head, "hash", "0" * 64),
    "an episode is gone": lambda c, k: c.xdel(k.episodes, "2-0"),
    "an episode has no id": lambda c, k: c.hdel(k.ids, "e1"),
    "an episode has no age": lambda c, k: c.zrem(k.ages, b"%016d" % 2),
}


def test_a_whole_library_has_no_fault(store):
    """After commits and episodes there is nothing to find, and looking changes nothing."""
    assert list(store.check()) == []
    _fill(store)
    assert list(store.check()) == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(library_url, store, raw, damage):
    """Each kind of damage gives a fault, and nothing is mended."""
    _fill(store)
    client, keys = raw(library_url)
    DAMAGE[damage](client, keys)
    before = [client.dump(key) for key in keys.all]
    assert not check_store(store).is_sound
    assert [client.dump(key) for key in keys.all] == before


@pytest.mark.parametrize(
    "damage", ["an event is gone", "a version is gone", "the head was turned back"]
)
def test_a_damaged_library_takes_no_commit(library_url, store, raw, damage):
    """What was shortened by hand is not written on."""
    _fill(store)
    client, keys = raw(library_url)
    DAMAGE[damage](client, keys)
    before = [client.dump(key) for key in keys.all]
    version = int(client.hget(keys.head, "version"))
    change = LibraryChange(proposal_id="next", upserts=(ToolDefinition(name="next"),))
    with pytest.raises(StoreFormatError, match="Nothing was changed"):
        store.commit(change, expected_version=version)
    assert [client.dump(key) for key in keys.all] == before


def test_a_key_of_another_type_stops_a_commit_before_its_first_write(library_url, store, raw):
    """Whichever key was replaced by something else, nothing is written, not even in part."""
    _fill(store)
    client, keys = raw(library_url)
    for key in (keys.versions, keys.proposals, keys.definitions, keys.tools, keys.revisions):
        held = client.dump(key)
        client.set(key, "foreign")
        before = [client.dump(one) for one in keys.all]
        change = LibraryChange(proposal_id="next", upserts=(ToolDefinition(name="next"),))
        with pytest.raises(StoreFormatError, match="another program"):
            store.commit(change, expected_version=3)
        assert [client.dump(one) for one in keys.all] == before
        client.restore(key, 0, held, replace=True)
    assert list(store.check()) == []
