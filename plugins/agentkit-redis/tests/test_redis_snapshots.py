"""Loading costs few round trips: nothing new costs one, and only what changed is read."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, strategies as st
from support.redis_server import empty_library

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreFormatError, ToolNotFoundError
from agentkit.library import LibraryChange
from agentkit.library.memory import MemoryStore
from agentkit.tools.definition import Description, Origin


def _tool(name, text="", origin=""):
    return ToolDefinition(
        name=name,
        description=Description(summary=text),
        origin=Origin(reference=origin),
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


def test_where_a_tool_came_from_is_that_of_its_revision(store):
    """Definitions of equal digest from two places keep their own origins, in every snapshot."""
    store.commit(_put("1", _tool("a", origin="one")), expected_version=0)
    assert store.load()["a"].definition.origin.reference == "one"
    store.commit(_put("2", _tool("a", origin="two words { }")), expected_version=1)
    assert store.load()["a"].definition.origin.reference == "two words { }"
    assert store.load(1)["a"].definition.origin.reference == "one"
    origins = [one.definition.origin.reference for one in store.history("a")]
    assert origins == ["one", "two words { }"]


STEPS = st.lists(
    st.tuples(
        st.sets(st.sampled_from("abcdef\0"), max_size=3),
        st.sets(st.sampled_from("abcdef\0"), max_size=2),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=12,
)


@given(steps=STEPS)
def test_it_is_what_the_memory_store_is(server_url, steps):
    """Whatever is added, edited and removed, both stores hold the same at every version."""
    with (
        empty_library(server_url) as url,
        closing(open_store(url)) as store,
        closing(open_store(url)) as lazy,
    ):
        memory = MemoryStore()
        for number, (names, gone, text, looks) in enumerate(steps):
            tools = [_tool(name, str(text)) for name in sorted(names - gone)]
            change = _put(str(number), *tools, remove=tuple(sorted(gone)))
            if not change.makes_version:
                continue
            results = []
            for one in (memory, store):
                try:
                    results.append(one.commit(change, expected_version=memory_version(one)))
                except ToolNotFoundError as error:
                    results.append(error.tool_name)
            assert results[0] == results[1]
            if looks:
                assert lazy.load().definitions == memory.load().definitions
        for version in memory.versions():
            assert store.load(version).definitions == memory.load(version).definitions
        assert lazy.load().definitions == memory.load().definitions
        for name in "abcdef\0":
            assert [r.version for r in store.history(name)] == [
                r.version for r in memory.history(name)
            ]
        assert list(store.check()) == []


def memory_version(store):
    """Where a store stands."""
    return store.load().version


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
    with pytest.raises(StoreFormatError, match="restore a backup"):
        fresh.load(1) if key == "versions" else fresh.load()
