"""Both directions over real transports: streamable HTTP on loopback, and a process on stdio."""

from __future__ import annotations

import asyncio
import sys

import pytest
from mcp import Client, StdioServerParameters

from agentkit import Library, tool
from agentkit.cli.loading import load_tools
from agentkit.errors import McpConnectionError
from agentkit.evolution import ToolManager
from agentkit.interop.mcp import LibraryServer, McpLimits, McpServer
from agentkit.library import Author, open_store

TOOLS = '''"""Tools of a test."""
from agentkit import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    print("a line on stdout, which is the wire")
    return a + b
'''
SERVE = (
    "import sys; from agentkit.cli.serve_mcp import serve_mcp; "
    "serve_mcp(store=sys.argv[1], tools=(sys.argv[2],))"
)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def app(*tools):
    """An ASGI application that serves tools."""
    return LibraryServer(Library(tools)).http_app()


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_our_client_and_our_server_meet_over_http(listening, protocol):
    """Tools are listed and called over streamable HTTP, in both eras of the protocol."""
    url, _ = listening(app(add))
    async with McpServer.http(url, protocol=protocol, new_tools="screen") as server:
        assert await server.library["add"](a=1, b=2) == 3


async def test_a_server_that_was_restarted_is_found_again(listening):
    """While it is away a call fails with the reason; when it is back, calls work again."""
    url, stop = listening(app(add))
    limits = McpLimits(backoff_seconds=0.05, connect_seconds=2.0, reconnects=1)
    async with McpServer.http(url, limits=limits, protocol="legacy", new_tools="screen") as server:
        call = server.library["add"]
        assert await call(a=1, b=2) == 3
        await asyncio.to_thread(stop)
        with pytest.raises(McpConnectionError):
            await call(a=1, b=2)
        port = int(url.split(":")[2].split("/")[0])
        await asyncio.to_thread(listening, app(add), port)
        for _ in range(100):
            try:
                assert await call(a=1, b=2) == 3
                break
            except McpConnectionError:
                await asyncio.sleep(0.05)
        else:
            pytest.fail("the server was not found again")


async def test_headers_go_with_each_request_and_stay_out_of_texts(listening):
    """A key in a header reaches the server, and no repr shows it."""
    seen = []
    inner = app(add)

    async def guarded(scope, receive, send):
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]).get(b"authorization"))
        await inner(scope, receive, send)

    url, _ = listening(guarded)
    server = McpServer.http(url, headers={"Authorization": "Bearer s3cret"}, new_tools="screen")
    async with server:
        await server.library["add"](a=1, b=2)
    assert set(seen) == {b"Bearer s3cret"}
    assert "s3cret" not in repr(server)
    assert "s3cret" not in repr(server._place)


async def test_nobody_listens_is_told_at_once():
    """An address without a server is an error that says so, and names it without its secrets."""
    url = "http://user:s3cret@127.0.0.1:9/mcp?token=t0ken"
    with pytest.raises(
        McpConnectionError, match=r"\(http://127.0.0.1:9/mcp\) can not be"
    ) as caught:
        async with McpServer.http(url, limits=McpLimits(connect_seconds=5), new_tools="screen"):
            pass
    assert "s3cret" not in str(caught.value)
    assert "t0ken" not in str(caught.value)


@pytest.fixture
def stored(tmp_path):
    """A store on disk with a library, and the file that holds its code."""
    code = tmp_path / "tools_of_a_test.py"
    code.write_text(TOOLS)
    url = f"sqlite:///{tmp_path / 'library.db'}"
    store = open_store(url)
    manager = ToolManager(store, author=Author(kind="person", name="ann"))
    manager.register(load_tools([str(code)]))
    store.close()
    return url, str(code)


async def test_a_stores_library_is_served_over_stdio(stored):
    """The official client starts the process that ``agentkit serve --mcp`` runs, and calls it."""
    url, code = stored
    started = StdioServerParameters(command=sys.executable, args=["-c", SERVE, url, code])
    async with Client(started) as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["add"]
        assert (await client.call_tool("add", {"a": 2, "b": 3})).structured_content == {"result": 5}
    store = open_store(url)
    (episode,) = store.select()
    store.close()
    assert episode.results[0].value == 5


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_redirect_to_another_host_is_not_followed(listening, protocol):
    """A server may not send us, with our headers, to an address of its choice."""
    seen = []

    async def elsewhere(scope, receive, send):
        seen.append(scope.get("path"))
        await app(add)(scope, receive, send)

    target, _ = listening(elsewhere)
    seen.clear()  # the lifespan

    async def away(scope, receive, send):
        if scope["type"] == "http":
            headers = [(b"location", target.encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

    url, _ = listening(away)
    limits = McpLimits(connect_seconds=5.0, reconnects=1, backoff_seconds=0.01)
    headers = {"Authorization": "Bearer ours"}
    server = McpServer.http(url, headers=headers, limits=limits, protocol=protocol)
    with pytest.raises(McpConnectionError):
        await server.__aenter__()
    assert seen == []
