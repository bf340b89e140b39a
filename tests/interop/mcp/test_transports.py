"""Both directions over real transports: streamable HTTP on loopback, and a process on stdio."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from agentkit import Agent, Library, tool
from agentkit.cli.loading import load_tools
from agentkit.errors import McpConnectionError, MissingExtraError
from agentkit.evolution import ToolManager
from agentkit.interop.mcp import LibraryServer, McpLimits, McpServer
from agentkit.library import Author, open_store
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

TOOLS = '''"""Tools of a test."""
from agentkit import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    print("a line on stdout, which is the wire")
    return a + b
'''
SERVE = (
    "import sys; from agentkit.cli.main import main; "
    "main(['serve', '--mcp', 'stdio', '--store', sys.argv[1], '--tools', sys.argv[2]])"
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
    limits = McpLimits(connect_seconds=2.0)
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
    limits = McpLimits(connect_seconds=5.0)
    headers = {"Authorization": "Bearer ours"}
    server = McpServer.http(url, headers=headers, limits=limits, protocol=protocol)
    with pytest.raises(McpConnectionError):
        await server.__aenter__()
    assert seen == []


RAW = Path(__file__).parent / "servers" / "raw.py"


def call(name, /, **arguments):
    """One call of a scripted model."""
    return ToolCall(call_id=name, name=name, arguments=arguments)


@pytest.fixture(scope="module")
def running(faulty):
    """One server for all tests that leave it as it is; starting one takes a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "secret")
        with faulty(limits=McpLimits(call_seconds=0.5)) as server:
            yield server


def test_run_sync_calls_a_server_that_was_entered_without_a_loop(running):
    """The connection has a thread of its own, so that each run may bring its own event loop."""
    for _ in range(2):
        agent = Agent(ScriptedModel([[call("add", a=1, b=1)], "2"]), tools=running.tools)
        assert agent.run_sync("1 + 1?").episode.results[0].value == {"result": 2}


async def test_a_server_that_dies_is_started_again(entry, eventually):
    """The call under way is a failed result that says why; the next one starts the server anew."""
    listed = json.dumps([entry("die"), entry("process")])
    raw = McpServer.stdio(
        sys.executable, ["-I", str(RAW), listed], protocol="legacy", new_tools="screen"
    )
    async with raw as server:
        os.kill(int(await server.library["process"]()), signal.SIGKILL)
        await asyncio.to_thread(eventually, lambda: server.state == "lost")
        script = [[call("die")], [call("process")], "done"]
        result = await Agent(ScriptedModel(script), tools=server.tools).run("Go.")
        died, answered = result.episode.results
        assert died.failure.cause == "McpConnectionError"
        assert "hung up while 'die' ran" in died.text
        assert answered.status == "ok"
        assert server.connects == 3


async def test_a_slow_call_times_out_and_others_go_on(running):
    """Each server has its own limit; a call beyond it fails, and the server stays usable."""
    script = [[call("wait", seconds=30.0), call("add", a=1, b=2)], "done"]
    result = await Agent(ScriptedModel(script), tools=running.tools).run("Go.")
    waited, added = result.episode.results
    assert waited.failure.kind == "timeout"
    assert added.status == "ok"
    with pytest.raises(TimeoutError, match=r"within 0\.5 seconds"):
        await running.library["wait"](seconds=30.0)


async def test_our_environment_is_not_handed_on(running):
    """A server sees the variables that it was given, and no key that lies around."""
    assert await running.library["variable"](name="PATH") != {"result": "absent"}
    assert await running.library["variable"](name="OPENAI_API_KEY") == {"result": "absent"}


async def test_a_program_that_ends_at_once_is_told_with_its_last_words():
    """What the program wrote to stderr is in the error, because nothing else tells why."""
    program = "import sys; sys.exit('no database at port 5432')"
    server = McpServer.stdio(sys.executable, ["-c", program], name="orders", new_tools="screen")
    with pytest.raises(McpConnectionError, match="no database at port 5432") as failed:
        async with server:
            pass
    assert failed.value.server == "orders"
    assert server.state == "closed"


async def test_stderr_without_an_end_of_line_is_not_kept():
    """A server cannot fill our memory with one line that never ends."""
    program = "import sys; [sys.stderr.write('x' * 1_000_000) for _ in range(30)]; sys.exit(1)"
    server = McpServer.stdio(sys.executable, ["-c", program], name="orders", new_tools="screen")
    tracemalloc.start()
    try:
        with pytest.raises(McpConnectionError, match="xxxx"):
            async with server:
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


async def test_a_program_that_says_nothing_is_given_up():
    """A process that does not speak the protocol does not hold us up for ever."""
    limits = McpLimits(connect_seconds=0.5)
    silent = McpServer.stdio("sleep", ["60"], limits=limits, new_tools="screen")
    with pytest.raises(McpConnectionError, match=r"did not answer within 0\.5 seconds"):
        async with silent:
            pass


async def test_calls_outside_of_the_context_say_so_and_it_can_be_entered_again(fake, entry):
    """A tool of a server that was left is a failed call with the way out; then it works again."""
    server = McpServer.in_process(fake(entry("add")).server, new_tools="screen")
    async with server:
        add = server.library["add"]
    with pytest.raises(McpConnectionError, match="inside 'async with server:'"):
        await add()
    async with server:
        assert await add() == "done"


def test_without_the_official_package_the_pip_line_is_named(monkeypatch):
    """The extra is named when it is absent, before anything is started."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError, match=r"agentkit-evolve\[mcp\]"):
        McpServer.stdio("server", new_tools="screen")
