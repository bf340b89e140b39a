"""An MCP server on a replica has new tools when they are there, and says when it can not know."""

from __future__ import annotations

import asyncio
import time

from mcp import Client

from agentkit import open_store, tool
from agentkit.interop.mcp import LibraryServer
from agentkit.library import LibraryChange, Replica
from agentkit.library.episode_stores import with_episodes


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def double(x: int) -> int:
    """Twice a number."""
    return 2 * x


def put(store, definition):
    """Commits a tool."""
    change = LibraryChange(proposal_id=definition.name, upserts=(definition,))
    store.commit(change, expected_version=max(store.versions(), default=0))


async def test_a_new_version_is_listed_without_a_timer():
    """The replica wakes the server; when both clients are gone nobody is woken, and all is well."""
    store = open_store("memory:")
    put(store, add.definition)
    with Replica(store, refresh_seconds=0.01) as replica:
        server = LibraryServer(replica, tools=[add, double], poll_seconds=3600)
        async with Client(server.sdk_server(), cache=None) as client:
            put(store, double.definition)
            until = time.monotonic() + 20
            listed = await client.list_tools()
            while len(listed.tools) < 2 and time.monotonic() < until:
                await asyncio.sleep(0.005)
                listed = await client.list_tools()
            assert [one.name for one in listed.tools] == ["add", "double"]
        put(replica, tool(name="late")(lambda x: x).definition)
        assert replica.status.state == "current"


async def test_calls_can_be_refused_beyond_a_bound():
    """A client is told that it may try later, and nothing about the store."""
    now = [0.0]
    store = open_store("memory:")
    put(store, add.definition)
    options = {"max_staleness_seconds": 7200.0, "when_stale": "refuse", "clock": lambda: now[0]}
    with Replica(store, refresh_seconds=3600, hints=False, **options) as replica:
        replica.refresh()
        both = with_episodes(replica, episodes=open_store("memory:"))
        async with Client(LibraryServer(both, tools=[add]).sdk_server()) as client:
            answers = [await client.call_tool("add", {"a": 1, "b": 2})]
            now[0] += 7201
            answers.append(await client.call_tool("add", {"a": 1, "b": 2}))
    assert [answer.is_error for answer in answers] == [False, True]
    assert answers[1].content[0].text.endswith("their store is away; try later.")
