"""A library over HTTP: for those who hold a key, and to the end of the calls that run."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import Library, tool
from agentkit.errors import McpConnectionError
from agentkit.interop.mcp import LibraryServer, McpLimits, McpServer
from agentkit.server import Keys

KEY = "sk-0123456789abcdef"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers, slowly."""
    await asyncio.sleep(0.2)
    return a + b


@pytest.fixture
def guarded(listening):
    """The address of a server that asks for a key."""
    holder = Keys({"shop": KEY}).holder
    url, _ = listening(LibraryServer(Library([add])).http_app(holder=holder))
    return url


async def test_a_key_opens_and_nothing_else(guarded):
    """The official client reaches the tools with a key, and is told without one or with another."""
    headers = {"Authorization": f"bearer {KEY}"}
    async with McpServer.http(guarded, headers=headers, new_tools="screen") as server:
        assert await server.library["add"](a=1, b=2) == 3
    limits = McpLimits(connect_seconds=5)
    for wrong in ({}, {"Authorization": "Bearer sk-guessed-0123456"}, {"Authorization": KEY}):
        with pytest.raises(McpConnectionError, match="can not be reached"):
            async with McpServer.http(guarded, headers=wrong, limits=limits, new_tools="screen"):
                pass


async def test_the_health_is_told_to_everybody(guarded):
    """What watches a server needs no key for it, and learns nothing but that it lives."""
    host, port = guarded.removeprefix("http://").split("/")[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith("HTTP/1.1 200")
    assert answer.endswith('{"status":"ok"}')


async def test_a_stop_waits_for_calls_and_not_for_ever():
    """What drains the server returns when the last call has ended, or when the time is up."""
    served = LibraryServer(Library([add]))
    async with McpServer.in_process(served.sdk_server(), new_tools="screen") as server:
        await asyncio.wait_for(served.drain(5.0), 1.0)  # nothing runs
        running = asyncio.create_task(server.library["add"](a=1, b=2))
        await asyncio.sleep(0.05)
        await served.drain(0.0)
        assert not running.done()
        assert await running == 3
