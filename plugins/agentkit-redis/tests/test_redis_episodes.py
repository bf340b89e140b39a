"""Episodes in Redis: found by indexes, read a page at a time, let go without a trace."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st
from support.redis_server import empty_library

from agentkit import Episode, open_store
from agentkit.episodes import Turn
from agentkit.errors import EpisodeFormatError
from agentkit.library import EpisodeFilter
from agentkit.library.memory import MemoryStore
from agentkit.library.store import EpisodeVolume, Retention
from agentkit.messages import AssistantMessage, ToolCall


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


def test_a_batch_with_one_that_can_not_be_kept_keeps_none(store):
    """All of a batch or nothing: one value that JSON can not hold refuses the others with it."""
    bad = replace(_episode("bad"), output=object())
    with pytest.raises(EpisodeFormatError):
        store.append_many([_episode("good"), bad])
    assert _ids(store) == []
    assert store.volume() == EpisodeVolume(count=0, bytes=0)


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
    assert store.prune(Retention(max_bytes=0)) == size
    client, keys = raw(library_url)
    assert client.exists(keys.ids, keys.index, keys.ages) == 0
    assert client.xlen(keys.episodes) == 0
    store.append(_episode("e1", "a"))
    assert _ids(store) == ["e1"]
    assert list(store.check()) == []


def test_each_bound_lets_the_oldest_go(store):
    """By number, by size and by age those that began first go; the rest stays in its order."""
    now = datetime.now(UTC)
    for n in range(6):
        at = (now - timedelta(days=[1, 5, 3, 4, 2, 0][n])).isoformat()
        store.append(replace(_episode(f"e{n}"), started_at=at))
    assert store.prune(Retention()).count == 0
    assert store.prune(Retention(max_age=timedelta(days=4, hours=1))).count == 1
    assert _ids(store, oldest_first=True) == ["e0", "e2", "e3", "e4", "e5"]
    assert store.prune(Retention(max_count=4)).count == 1
    assert _ids(store, oldest_first=True) == ["e0", "e2", "e4", "e5"]
    each = store.volume().bytes // 4
    assert store.prune(Retention(max_bytes=2 * each + each // 2)).count == 2
    assert _ids(store, oldest_first=True) == ["e0", "e5"]


def test_age_is_reckoned_as_in_every_store(store):
    """A time without a zone is UTC, and a clock that was ahead makes nothing outlast the rest."""
    ahead = replace(_episode("ahead"), started_at="2999-01-01T00:00:00Z")
    naive = replace(_episode("naive"), started_at="2020-01-01T00:00:00")
    store.append_many([ahead, naive, _episode("late")])
    assert store.prune(Retention(max_age=timedelta(days=30))).count == 1
    assert store.get("naive") is None
    assert store.prune(Retention(max_count=1)).count == 1
    assert store.get("late") is not None
