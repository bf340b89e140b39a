"""Connections to MCP servers: transports, answers within bounds."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import resource
import signal
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from support.media import PDF, RED, WAV

from agentkit import Agent, Library, tool
from agentkit.errors import McpConnectionError, MissingExtraError, ToolFailed
from agentkit.evolution import EvidenceProposer, ToolManager, evolve, explore
from agentkit.interop.mcp import LibraryServer, McpLimits, McpServer
from agentkit.library import Author, open_store
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import FunctionModel, ScriptedModel


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


NUMBER = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


@pytest.fixture
def answered(fake, entry):
    """Calls a tool of a server that gives this answer, and gives the result."""

    async def ask(answer, protocol="auto", limits=None, **parts):
        server = fake(entry("ask", **parts))
        server.answers["ask"] = answer
        options = {"protocol": protocol, "limits": limits}
        async with McpServer.in_process(server.server, new_tools="screen", **options) as connected:
            script = [[ToolCall(call_id="1", name="ask", arguments={})], "done"]
            agent = Agent(ScriptedModel(script), tools=connected.tools)
            return (await agent.run("Go.")).episode.results[0]

    return ask


def text(words):
    """A text in an answer."""
    return {"type": "text", "text": words}


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_structured_content_is_the_value(answered, protocol):
    """The data that a server declares and sends is what the tool returns, in both eras."""
    answer = {"content": [text("12")], "structuredContent": {"total": 12}}
    result = await answered(answer, protocol, outputSchema=NUMBER)
    assert result.value == {"total": 12}


async def test_text_is_the_value_and_pictures_are_told_of(answered):
    """Texts are joined; what a model cannot read as text is named with its size."""
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    link = {"type": "resource_link", "name": "log", "uri": "file:///log"}
    inner = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}
    result = await answered({"content": [text("one"), picture, link, inner]})
    assert result.value == (
        "one\n[image: image/png, 3 bytes]\n[resource: log, file:///log]\ninside"
    )


async def test_pictures_sounds_and_files_are_shown_to_the_model(answered):
    """They are what a function of ours would return; bytes of another type are only told of."""
    content = [
        text("Look:"),
        {"type": "image", "data": RED.base64, "mimeType": "image/png"},
        {"type": "audio", "data": WAV.base64, "mimeType": "audio/x-wav"},
        {"type": "image", "data": PDF.base64, "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {
                "uri": "file:///b/bill.pdf",
                "blob": PDF.base64,
                "mimeType": "application/pdf",
            },
        },
    ]
    result = await answered({"content": content})
    assert [one.data for one in result.media] == [RED.data, WAV.data, PDF.data]
    assert result.text.splitlines() == [
        "Look:",
        "[image: image/png, 69 bytes]",
        "[audio: audio/wav, 16 bytes]",
        "[image: image/png, 15 bytes]",
        "[file bill.pdf: application/pdf, 13 bytes]",
    ]


async def test_an_error_of_the_tool_is_told_to_the_model(answered):
    """An answer with isError is a failed call in the server's words, which the model may correct."""
    result = await answered({"content": [text("no such city: Bern")], "isError": True})
    assert result.status == "failed"
    assert result.failure.kind == "retry_requested"
    assert "no such city: Bern" in result.text


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [text("12")], "structuredContent": {"total": "twelve"}},
        {"content": [text("12")], "structuredContent": {}},
        {"content": [text("12")]},
    ],
)
async def test_a_server_that_breaks_its_own_schema_has_failed(answered, answer):
    """A lie about the result is a final failure, and no value of it reaches the model."""
    result = await answered(answer, outputSchema=NUMBER)
    assert result.failure.kind == "tool_failed"
    assert "broke its word" in result.text
    assert result.value is None


def nested(levels, innermost):
    """A value that many levels of lists are around."""
    for _ in range(levels):
        innermost = [innermost]
    return innermost


@pytest.mark.parametrize("many", [nested(400, 1), [[]] * 600_000], ids=["deep", "wide"])
async def test_structure_without_end_is_a_failure(answered, many):
    """Few bytes that stand for many values or levels end the call, and nothing else."""
    result = await answered({"content": [], "structuredContent": {"total": many}})
    assert result.status == "failed"
    assert len(result.text) < 1_000


SMALL = McpLimits(max_message_bytes=1_000_000)
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
        ("endless", McpConnectionError, "a line without an end"),
        ("stray", McpConnectionError, "lines on stdout that are not messages.*stderr"),
        ("asks", McpConnectionError, "messages that nobody asked for, without end"),
        ("tells", McpConnectionError, "messages that nobody asked for, without end"),
    ],
)
async def test_a_server_that_writes_too_much_fails_one_call(entry, name, error, why):
    """Parts, bytes and stray lines are bounded: the call says so, and the next one is answered."""
    limits = McpLimits() if name in {"crowd", "group"} else SMALL
    async with raw(entry, name, "calm", limits=limits) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pause, raised = await longest_pause(server.library[name]())
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert await soon_answered(server.library["calm"])
    with pytest.raises(error, match=why):
        raise raised
    assert pause < 0.5
    assert grown < 60


@pytest.mark.parametrize(("name", "most"), [("quiz_3", 3), ("quiz_5000", 0)])
async def test_the_questions_of_one_answer_are_counted_and_put_one_by_one(entry, name, most):
    """However many an answer holds, a person has one at a time; a server of thousands is hung up on."""
    now, at_once, asked = 0, 0, 0

    async def answer(question):
        nonlocal now, at_once, asked
        now, asked = now + 1, asked + 1
        at_once = max(at_once, now)
        await asyncio.sleep(0.01)
        now -= 1
        return {"size": 1}

    args = ["-I", str(RAW), json.dumps([entry(name)])]
    async with McpServer.stdio(
        sys.executable, args, new_tools="screen", elicit=answer, limits=SMALL
    ) as server:
        if most:
            assert await server.library[name]()
        else:
            with pytest.raises(McpConnectionError, match="questions, or messages that nobody"):
                await server.library[name]()
    assert (asked, at_once) == (most, min(most, 1))


async def test_a_call_that_can_not_be_written_ends_in_time(entry):
    """A server that stops reading keeps no call longer than the limits allow."""
    async with raw(entry, "deaf", limits=McpLimits(call_seconds=0.5)) as server:
        for words in ("", "x" * 1_000_000, "behind it"):  # more than a pipe holds
            with pytest.raises(TimeoutError, match=r"not answer within 0\.5 seconds"):
                async with asyncio.timeout(10):
                    await server.library["deaf"](words=words)


@pytest.mark.parametrize("name", ["broken", "halved"])
async def test_a_message_that_can_not_be_read_ends_its_call_at_once(entry, name):
    """Nobody waits for an answer that came and is none; the server serves on."""
    async with raw(entry, name, "calm") as server:
        begun = time.perf_counter()
        with pytest.raises(ToolFailed, match="sent a message that cannot be read"):
            await server.library[name]()
        assert time.perf_counter() - begun < 5
        assert await server.library["calm"]()


class Loud:
    """An ASGI application that speaks enough MCP to be called, and answers as a test says."""

    def __init__(self, entry, body, *headers):
        self.entry, self.body, self.headers = entry, body, headers
        self.cookies = b""  # of the last request

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        self.cookies = dict(scope["headers"]).get(b"cookie", b"")
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
        ([b"x"] * 60_000, (JSON,)),
        ([b"data: ", *[b"x"] * 60_000], (EVENTS,)),
    ],
    ids=[
        "a long body",
        "many values",
        "a long line",
        "a long event",
        "with two signs a line",
        "a compressed body",
        "a body in crumbs",
        "an event in crumbs",
    ],
)
async def test_a_message_over_http_is_bounded(listening, entry, body, headers):
    """A body, an event of a stream and compression have a limit before anything is decoded."""
    url, _ = listening(Loud(entry, body, *headers))
    limits = McpLimits(max_message_bytes=1_500_000)
    server = McpServer.http(url, protocol="legacy", new_tools="screen", limits=limits)
    async with server:
        pause, raised = await longest_pause(server.library["loud"]())
    assert isinstance(raised, ToolFailed | McpConnectionError)
    words = ("ask for less", "compressed", "in more than 4,")
    assert any(word in str(raised) for word in words), raised
    assert pause < 0.5


async def test_headers_that_take_long_to_read_hold_up_nobody(listening, entry):
    """Parameters of a type and old cookies, for which Python has quadratic parsers, are not read."""
    kind = (b"content-type", b'text/event-stream;a="' + b";" * 35_000)
    cookies = [(b"set-cookie", b"a=b"), (b"set-cookie2", b"a," * 28_000)]
    text = {"content": [{"type": "text", "text": "done"}]}
    event = b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": text}).encode() + b"\n\n"
    url, _ = listening(Loud(entry, [event], kind, *cookies))
    async with McpServer.http(url, protocol="legacy", new_tools="screen", limits=SMALL) as server:
        begun = time.process_time()
        assert await server.library["loud"]() == "done"
        assert time.process_time() - begun < 0.25


@pytest.mark.parametrize("wide", [b"", b"x" * 5_000])
async def test_few_cookies_of_a_server_are_kept(listening, entry, wide):
    """Those of a load balancer come back; a jar without a bound would fill memory and requests."""
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "done"}]}}
    event = b"data: " + json.dumps(result).encode() + b"\n\n"
    app = Loud(entry, [event], EVENTS, (b"set-cookie", b"node=7"))
    url, _ = listening(app)
    async with McpServer.http(url, protocol="legacy", new_tools="screen", limits=SMALL) as server:
        for number in range(20):
            with contextlib.suppress(ToolFailed):  # whatever it answers to the later ones
                await server.library["loud"]()
            more = [(b"set-cookie", b"c%d=%b" % (number + at, wide)) for at in range(0, 200, 20)]
            app.headers = (EVENTS, *more)
        assert b"node=7" in app.cookies
        assert len(app.cookies) < 200


@pytest.mark.parametrize("asks", [{"id": "1", "method": "roots/list"}, {"method": "progress"}])
async def test_a_server_that_asks_without_end_over_http_fails_the_call(listening, entry, asks):
    """Requests and notifications in the events of an answer are bounded like those of a process."""
    event = b"data: " + json.dumps({"jsonrpc": "2.0", **asks}).encode() + b"\n\n"
    url, _ = listening(Loud(entry, [event * 500] * 100, EVENTS))
    server = McpServer.http(url, protocol="legacy", new_tools="screen", limits=SMALL)
    async with server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises((ToolFailed, McpConnectionError), match="without end"):
            await server.library["loud"]()
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 60


async def test_a_server_that_ends_its_streams_is_asked_once_a_second(listening):
    """Whatever ``retry`` it states, reconnecting takes no processor time."""
    asked = []

    async def app(scope, receive, send):
        body = b""
        while scope["type"] == "http" and (message := await receive()).get("more_body"):
            body += message["body"]
        body += message["body"] if scope["type"] == "http" else b""
        said = json.loads(body or b"{}")
        kind, answer = b"application/json", b""
        if scope["method"] == "GET":
            asked.append(1)
            kind, answer = b"text/event-stream", b"id: 1\nretry: 0\n\n"
        elif said.get("id") is not None:
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            found = {**about, "serverInfo": {"name": "h", "version": "1"}, "tools": []}
            answer = json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": found}).encode()
        headers = [(b"content-type", kind), (b"mcp-session-id", b"s")]
        status = 200 if answer else 202
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    url, _ = listening(app)
    async with McpServer.http(url, protocol="legacy"):
        await asyncio.sleep(1.5)
    assert 1 <= len(asked) <= 2


async def test_a_listing_of_very_many_tools_is_cut_before_it_is_checked(entry):
    """Entries beyond the limit are not even validated, and the listing says that it was cut."""
    listed = json.dumps([*(entry(f"t{at}", "") for at in range(11)), *[7] * 1_000])
    limits = McpLimits(max_tools=10)
    args = ["-I", str(RAW), listed]
    async with McpServer.stdio(
        sys.executable, args, protocol="legacy", new_tools="screen", limits=limits
    ) as server:
        assert len(server.tools) == 10
        assert "more than 10 tools" in server.listing.notes[0]


async def test_a_server_without_documentation_is_learned_from_its_refusals(fake, entry):
    """A round over recorded calls and probes gives a tool its parameters, and calls become valid."""

    def choose(arguments):
        if missing := [name for name in ("n", "k") if name not in (arguments or {})]:
            lines = "".join(f"\n{name}\n  Field required [type=missing]" for name in missing)
            said = f"Error executing tool choose: {len(missing)} validation errors{lines}"
            return {"content": [text(said)], "isError": True}
        return {"content": [text(f"{arguments['n']} over {arguments['k']}")]}

    def clerk(request):
        if isinstance(request.messages[-1], ToolMessage):
            return request.messages[-1].text
        numbers = [int(word) for word in request.messages[-1].text.split() if word.isdigit()]
        names = request.tools[0].parameters_schema["properties"]
        arguments = dict(zip(names, numbers, strict=False))
        return [ToolCall(call_id="1", name="choose", arguments=arguments)]

    hints = {"readOnlyHint": True, "openWorldHint": False}
    server = fake(entry("choose", "Ways to choose.", annotations=hints))
    server.answers["choose"] = choose
    options = {"new_tools": "screen", "trust_annotations": True}
    async with McpServer.in_process(server.server, **options) as connected:
        store, [tool] = open_store("memory:"), connected.tools
        manager = ToolManager(store, tools=[tool])
        manager.register([tool])

        async def valid():
            agent = Agent(FunctionModel(clerk), tools=[tool], store=store)
            runs = [await agent.run(f"Of {n} things take 2") for n in (5, 6)]
            return [run.episode.results[0].status for run in runs]

        assert await valid() == ["failed", "failed"]
        await explore(tool, store=store)
        report = await evolve(manager, [EvidenceProposer()], episodes=list(store.select()))
        [outcome] = report.considered
        assert outcome.why == "waits for a judge of another model or a person to agree"
        manager.approve(outcome.record.proposal_id, person=Author(kind="person", name="ann"))
        while (await manager.advance_async(outcome.record.proposal_id))[0].has_moved:
            continue
        assert manager.library["choose"].definition.known_signature.required == ("n", "k")
        assert await valid() == ["ok", "ok"]
