"""Clients that keep their connection and read nothing from it hold up nobody."""

import asyncio
import json
import socket

import httpx
import pytest

from agentkit.models.base import TextDelta
from agentkit.server import ServerLimits
from agentkit.testing import FunctionModel

URL = "/v1/chat/completions"
LIMITS = ServerLimits(max_concurrent=1, send_seconds=0.2)


class Endless(FunctionModel):
    """Says the same for ever when it is streamed."""

    async def stream(self, request):
        while True:
            yield TextDelta(text="and " * 5000)
            await asyncio.sleep(0.001)


def unread(url, body, *, times=1):
    """A connection that sends requests back to back and reads no answer."""
    content = json.dumps(body).encode()
    head = (
        f"POST {URL} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    connection.sendall((head.encode() + content) * times)
    return connection


async def begun(app):
    """Wait until a run holds the only place."""
    while not len(app.state.runs):
        await asyncio.sleep(0.01)


async def next_answer(app, url, body, no_tls):
    """What another client gets when the place is free again."""
    while len(app.state.runs):
        await asyncio.sleep(0.01)
    async with httpx.AsyncClient(verify=no_tls, base_url=url) as client:
        return await client.post(URL, json=body("Hi"))


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such bound")
async def test_a_stream_that_nobody_reads_ends(make_app, served_alone, body, store, no_tls):
    """The client counts as gone: its run is cancelled and kept, its place is free."""
    app = make_app(Endless(lambda _: "Hi"), limits=LIMITS)
    with served_alone(app) as url, unread(url, body("talk", stream=True)):
        await begun(app)
        answer = await next_answer(app, url, body, no_tls)
    assert answer.status_code == 200
    assert sorted(episode.stop_reason for episode in store.select()) == ["cancelled", "finished"]


async def test_whole_answers_that_nobody_reads(make_app, served, body, store, no_tls, caplog):
    """Requests sent back to back by a client that reads no answer free their place as well."""
    app = make_app(lambda _: "x" * 1_000_000, limits=LIMITS)
    with served(app) as url, unread(url, body("Hi"), times=20):
        await begun(app)
        while "the client does not read" not in caplog.text:
            await asyncio.sleep(0.01)
        answer = await next_answer(app, url, body, no_tls)
    assert answer.status_code == 200
    assert {episode.stop_reason for episode in store.select()} == {"finished"}
