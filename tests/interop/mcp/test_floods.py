"""Servers that write far too much: one call fails and says why, and the process goes on."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import sys
import time
from pathlib import Path

import pytest

from agentkit.errors import McpConnectionError, ToolFailed
from agentkit.interop.mcp import McpLimits, McpServer

RAW = Path(__file__).parent / "servers" / "raw.py"
SMALL = McpLimits(max_message_bytes=1_000_000, backoff_seconds=0.01)
OBJECT = {"type": "object", "properties": {}}
DISCOVERED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


def raw(entry, *names, limits=SMALL):
    """The server of ``servers/raw.py`` that lists tools of these names."""
    listed = json.dumps([entry(name) for name in names])
    args = ["-I", str(RAW), listed]
    return McpServer.stdio(
        sys.executable, args, protocol="legacy", new_tools="screen", limits=limits
    )


async def longest_pause(work):
    """How long the event loop stood still while something was awaited, and what it raised."""
    task, pause = asyncio.ensure_future(work), 0.0
    while not task.done():
        begun = time.perf_counter()
        await asyncio.sleep(0.005)
        pause = max(pause, time.perf_counter() - begun)
    return pause, task.exception()


async def soon_answered(call):
    """What a call gives, which may find the server on its way back."""
    for _ in range(50):
        try:
            return await call()
        except McpConnectionError:
            await asyncio.sleep(0.1)
    return None


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("crowd", ToolFailed, r"more than 300,000 values; ask for less"),
        ("group", ToolFailed, r"20,000 parts.*McpLimits\(max_result_parts="),
        ("long", ToolFailed, r"more than 1,000,000 bytes.*McpLimits\(max_message_bytes="),
        ("endless", ToolFailed, r"more than 1,000,000 bytes"),
        ("stray", McpConnectionError, "lines on stdout that are no messages.*stderr"),
    ],
)
async def test_a_server_that_writes_too_much_fails_one_call(entry, name, error, why):
    """Parts, bytes and stray lines are bounded: the call says so, and the next one is answered."""
    limits = McpLimits(backoff_seconds=0.01) if name in {"crowd", "group"} else SMALL
    async with raw(entry, name, "calm", limits=limits) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pause, raised = await longest_pause(server.library[name]())
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert await soon_answered(server.library["calm"])
    with pytest.raises(error, match=why):
        raise raised
    assert pause < 0.5
    assert grown < 60


class Loud:
    """An ASGI application that speaks enough MCP to be called, and answers as a test says."""

    def __init__(self, entry, body, *headers):
        self.entry, self.body, self.headers = entry, body, headers

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        asked = json.loads((await receive())["body"] or b"{}")
        if "id" not in asked:
            await self._answer(send, b"", status=202)
            return
        results = {"initialize": DISCOVERED, "tools/list": {"tools": [self.entry("loud")]}}
        if result := results.get(asked["method"]):
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
            await self._answer(send, json.dumps(answer).encode())
        else:
            await self._answer(send, *self.body, headers=self.headers)

    async def _answer(self, send, *parts, status=200, headers=()):
        kind = headers or ((b"content-type", b"application/json"),)
        await send({"type": "http.response.start", "status": status, "headers": [*kind]})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")
BOMB = gzip.compress(b" " * 50_000_000)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ([b"x" * 65_536] * 100, (JSON,)),
        ([b"[]," * 20_000] * 30, (JSON,)),
        ([b"data: ", *[b"x" * 65_536] * 100], (EVENTS,)),
        ([b"data: x\n" * 8_000] * 100, (EVENTS,)),
        ([b"data: x\r\n" * 8_000] * 100, (EVENTS,)),
        ([BOMB], (JSON, (b"content-encoding", b"gzip"))),
    ],
    ids=[
        "a long body",
        "many values",
        "a long line",
        "a long event",
        "with two signs a line",
        "a compressed body",
    ],
)
async def test_a_message_over_http_is_bounded(listening, entry, body, headers):
    """A body, an event of a stream and compression have a limit before anything is decoded."""
    url, _ = listening(Loud(entry, body, *headers))
    limits = McpLimits(max_message_bytes=1_500_000, backoff_seconds=0.01)
    server = McpServer.http(url, protocol="legacy", new_tools="screen", limits=limits)
    async with server:
        pause, raised = await longest_pause(server.library["loud"]())
    assert isinstance(raised, ToolFailed | McpConnectionError)
    assert "ask for less" in str(raised) or "compressed" in str(raised)
    assert pause < 0.5


async def test_a_stream_of_many_small_events_is_no_long_message(listening, entry):
    """Only one message is bounded, not all that a stream sends before its answer."""
    said = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}
    said["params"]["data"] = "x" * 1_000
    event = b"data: " + json.dumps(said).encode() + b"\n\n"
    text = {"content": [{"type": "text", "text": "done"}]}
    last = b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": text}).encode() + b"\n\n"
    url, _ = listening(Loud(entry, [event * 20] * 20 + [last], EVENTS))
    limits = McpLimits(max_message_bytes=30_000)
    async with McpServer.http(url, protocol="legacy", new_tools="screen", limits=limits) as server:
        assert await server.library["loud"]() == "done"


async def test_a_listing_of_very_many_tools_is_cut_before_it_is_checked(entry):
    """Entries beyond the limit are not even validated, and the listing says that it was cut."""
    listed = json.dumps([entry(f"t{at}", "") for at in range(1_000)])
    limits = McpLimits(max_tools=10)
    args = ["-I", str(RAW), listed]
    async with McpServer.stdio(
        sys.executable, args, protocol="legacy", new_tools="screen", limits=limits
    ) as server:
        assert len(server.tools) == 10
        assert "more than 10 tools" in server.listing.notes[0]
