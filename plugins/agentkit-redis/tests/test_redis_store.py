"""Redis passes the suite of stores; snapshots, episodes and damage beyond it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st
from support.redis_server import empty_library
from support.store_conformance import ServedStoreConformance

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn
from agentkit.errors import StoreFormatError
from agentkit.library import EpisodeFilter, LibraryChange
from agentkit.library.checking import check_store
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.memory import MemoryStore
from agentkit.library.store import Retention
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.tools.definition import Description, Origin


class TestRedisStore(ServedStoreConformance):
    """The store of the plugin."""

    @pytest.fixture
    def store_url(self, library_url):
        return library_url

    @pytest.fixture
    def newer_store_url(self, library_url, raw):
        store = open_store(library_url)
        change = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))
        store.commit(change, expected_version=0)
        store.close()
        client, keys = raw(library_url)
        client.hset(keys.head, "format", "agentkit-redis 2")
        return library_url

    @pytest.fixture
    def raw_contents(self, raw):
        def read(url: str) -> object:
            client, keys = raw(url)
            return [client.dump(key) for key in keys.all]

        return read

    @pytest.fixture
    def edit_definitions(self, raw):
        def edit_all(url: str, edit: Callable[[str], str]) -> None:
            client, keys = raw(url)
            for digest, body in client.hgetall(keys.definitions).items():
                client.hset(keys.definitions, digest, edit(body.decode()))

        return edit_all


def _tool(name, text="", origin=""):
    return ToolDefinition(
        name=name, description=Description(summary=text), origin=Origin(reference=origin)
    )


def _put(proposal_id, *tools, remove=()):
    return LibraryChange(proposal_id=proposal_id, upserts=tools, removals=remove)


def _fill(store, count):
    for _ in range(count):
        version = store.load().version
        change = _put(f"v{version}", _tool(f"t{version % 7}", str(version)))
        store.commit(change, expected_version=version)


def _calls(client):
    stats = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): one["calls"] for name, one in stats.items()}


def _during(client, work):
    """How often each command was run meanwhile."""
    client.config_resetstat()
    work()
    calls = _calls(client)
    return {name: n for name, n in calls.items() if not name.startswith("config")}


def test_asking_again_costs_one_look_and_gives_the_same_object(start_server, open_redis, raw):
    """Nothing new: one round trip with the head and the next few versions."""
    server = start_server()
    store = open_redis(server.url)
    _fill(store, 3)
    first = store.load()
    client, _ = raw(server.url)
    assert _during(client, store.load) == {"hmget": 2}
    assert store.load() is first


@pytest.mark.parametrize("count", [1, 15, 16, 17, 60])
def test_however_far_behind_the_result_is_the_same(library_url, open_redis, count):
    """A snapshot that was caught up equals one that was read afresh, definitions stay objects."""
    store, other = open_redis(library_url), open_redis(library_url)
    other.commit(_put("first", _tool("kept"), _tool("gone"), _tool("t3")), expected_version=0)
    before = store.load()
    _fill(other, count)
    other.commit(_put("again", _tool("gone", "new"), remove=("t3",)), expected_version=count + 1)
    other.commit(_put("later", remove=("gone",)), expected_version=count + 2)
    other.commit(_put("back", _tool("gone", "back")), expected_version=count + 3)
    after = store.load()
    with closing(open_store(library_url)) as fresh:
        assert after.definitions == fresh.load().definitions
        assert (after.version, after.digest) == (fresh.load().version, fresh.load().digest)
        assert fresh.load(1).definitions == before.definitions
    assert after["kept"].definition is before["kept"].definition
    assert list(after.tools)[-1] == "gone"


@pytest.mark.parametrize("key", ["definitions", "versions", "tools"])
def test_what_is_damaged_is_not_loaded(library_url, open_redis, raw, key):
    """A definition, a version or a tool that is gone or no JSON is an error that names it."""
    store = open_redis(library_url)
    store.commit(_put("1", _tool("a")), expected_version=0)
    store.commit(_put("2", _tool("b")), expected_version=1)
    client, keys = raw(library_url)
    name = getattr(keys, key)
    client.hset(name, min(client.hkeys(name)), "{")
    fresh = open_redis(library_url)
    with pytest.raises(StoreFormatError, match=r"[Rr]estore a backup"):
        fresh.load(1) if key == "versions" else fresh.load()


def _episode(name, *tools, session=None, stop="finished"):
    calls = tuple(ToolCall(call_id=str(i), name=tool) for i, tool in enumerate(tools))
    return Episode(
        episode_id=name,
        request="?",
        turns=(Turn(message=AssistantMessage(tool_calls=calls)),),
        session_id=session,
        stop_reason=stop,
    )


def _ids(store, **matching):
    return [one.episode_id for one in store.select(EpisodeFilter(**matching))]


NAMES = st.sampled_from(["a", "b", "a\0", "a\0" + "0" * 16, "", "\ud83d"])

EPISODES = st.lists(
    st.builds(
        lambda number, tools, session, stop: _episode(
            f"e{number}", *tools, session=session, stop=stop
        ),
        st.integers(0, 9),
        st.lists(NAMES, max_size=2),
        st.none() | NAMES,
        st.sampled_from(["finished", "error"]),
    ),
    max_size=10,
)

FILTERS = st.builds(
    EpisodeFilter,
    session_id=st.none() | NAMES,
    tool_name=st.none() | NAMES,
    stop_reason=st.none() | st.sampled_from(["finished", "error"]),
    limit=st.none() | st.integers(0, 3),
    oldest_first=st.booleans(),
)


@settings(deadline=None)  # a busy machine may need long for one
@given(batches=st.lists(EPISODES, max_size=3), matching=FILTERS)
def test_it_finds_what_the_memory_store_finds(server_url, batches, matching):
    """Whatever is kept, in whatever batches, each filter finds the same in the same order."""
    with empty_library(server_url) as url, closing(open_store(url)) as store:
        memory = MemoryStore()
        for batch in batches:
            store.append_many(batch)
            for episode in batch:
                memory.append(episode)
        assert list(store.select(matching)) == list(memory.select(matching))
        assert store.volume().count == len(list(memory.select()))
        assert list(store.check()) == []


def test_episodes_that_go_while_they_are_read_are_left_out(store):
    """A selection goes on past episodes that were let go under it."""
    old = (datetime.now(UTC) - timedelta(days=9)).isoformat()
    store.append_many(
        [replace(_episode(f"e{n}", "add"), started_at=old if n < 150 else "") for n in range(200)]
    )
    for matching in (EpisodeFilter(), EpisodeFilter(tool_name="add")):
        reading = store.select(matching)
        seen = [next(reading).episode_id for _ in range(10)]
        store.prune(Retention(max_age=timedelta(days=1)))
        seen += [one.episode_id for one in reading]
        assert seen[:50] == [f"e{n}" for n in reversed(range(150, 200))]
    assert store.volume().count == 50
    assert list(store.check()) == []


def test_letting_go_leaves_no_trace(library_url, store, raw):
    """When all episodes went, their keys hold nothing, and new ones have new numbers."""
    store.append_many([_episode(f"e{n}", "a", "b", session="s") for n in range(500)])
    size = store.volume()
    assert store.prune(Retention(max_count=0)) == size
    client, keys = raw(library_url)
    assert client.exists(keys.ids, keys.index, keys.ages) == 0
    assert client.xlen(keys.episodes) == 0
    store.append(_episode("e1", "a"))
    assert _ids(store) == ["e1"]
    assert list(store.check()) == []


def _fill_everything(store):
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


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(library_url, store, raw, damage):
    """Each kind of damage gives a fault, and nothing is mended."""
    _fill_everything(store)
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
    _fill_everything(store)
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
    _fill_everything(store)
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
