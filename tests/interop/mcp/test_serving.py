"""A library as an MCP server, and what servers ask back."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest
from hypothesis import given, strategies as st
from mcp import Client, MCPError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    Implementation,
    Tool as WireTool,
    ToolListChangedNotification,
)
from support.app_stage import NO_BODIES, raw_answer
from support.media import PDF, RED, WAV

from agentkit import Agent, Audio, File, Image, Library, composite, tool
from agentkit.agent import Approval
from agentkit.errors import McpConnectionError, ToolFailed
from agentkit.evolution import ToolManager
from agentkit.interop.mcp import LibraryServer, McpLimits, McpServer, keep_tools
from agentkit.interop.mcp.elicitation import ElicitationHandler
from agentkit.interop.mcp.listing import RawListing, record_of
from agentkit.interop.mcp.screening import ImportPolicy, Memory, import_listing
from agentkit.library import Author, LibraryChange, open_store
from agentkit.messages import ToolCall
from agentkit.server import Keys, ServerLimits, serving
from agentkit.server.runs import Runs
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.sources.json_records import tool_record
from agentkit.tools.tool import Tool
from tests.interop.mcp.servers.curious import SIZE, curious

ERAS = ["auto", "legacy"]


@tool(effects=Effects.pure())
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effects=["destructive"])
def wipe(path: str) -> dict[str, str]:
    """Delete a folder."""
    return {"gone": path}


def library(*more):
    """A library with a tool that runs and one that needs approval."""
    return Library([add, wipe, *more])


def answering(action, content=None):
    """A person at a client, who always answers the same; and what they were asked."""
    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        return ElicitResult(action=action, content=content)

    return elicit, asked


def names(listing):
    """Names in a listing."""
    return [one.name for one in listing.tools]


@pytest.mark.parametrize("mode", ERAS)
async def test_tools_are_listed_and_called(mode):
    """The official client reads schemas, hints and results, and calls are checked as an agent's."""
    async with Client(LibraryServer(library()).sdk_server(), mode=mode) as client:
        (listed,) = (await client.list_tools()).tools
        assert listed.input_schema == add.definition.parameters_schema
        assert listed.output_schema["properties"]["result"] == {"type": "integer"}
        assert listed.annotations.read_only_hint is True
        assert listed.annotations.open_world_hint is False
        answer = await client.call_tool("add", {"a": 1, "b": "2"})
        assert (answer.structured_content, answer.content[0].text) == ({"result": 3}, "3")
        broken = await client.call_tool("add", {"a": 1})
        assert broken.is_error
        assert "missing required argument `b`" in broken.content[0].text
        absent = await client.call_tool("ad", {})
        assert absent.is_error
        assert "Similar: add" in absent.content[0].text


@pytest.mark.parametrize("mode", ERAS)
async def test_media_are_content_of_their_kind(mode):
    """A tool's image, audio and file are blocks, and come back as they were through a client of ours."""

    @tool
    def album() -> list[str | Image | Audio | File]:
        """Show everything."""
        return ["Look:", RED, WAV, PDF, Image(url="https://x.example/a.png")]

    server = LibraryServer(Library([album])).sdk_server()
    async with Client(server, mode=mode) as client:
        kinds = [one.type for one in (await client.call_tool("album", {})).content]
    assert kinds == ["text", "image", "audio", "resource", "resource_link"]

    @tool
    def photo() -> Image:
        """Show one."""
        return RED

    served = LibraryServer(Library([photo])).sdk_server()
    async with McpServer.in_process(served, new_tools="screen") as connected:
        (shown,) = connected.tools
        label, medium = await shown.function()
    assert (label, medium.data) == ("[image red.png: image/png, 69 bytes]", RED.data)


@pytest.mark.parametrize("mode", ERAS)
async def test_approval_is_denied_where_nobody_can_be_asked(mode):
    """A destructive tool is not listed to a client without elicitation, and not run for it."""
    async with Client(LibraryServer(library()).sdk_server(), mode=mode) as client:
        assert names(await client.list_tools()) == ["add"]
        answer = await client.call_tool("wipe", {"path": "/"})
        assert answer.is_error
        assert "cannot ask one (it has no elicitation)" in answer.content[0].text


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("action", "content", "runs"),
    [
        ("accept", None, True),
        ("accept", {}, True),
        ("accept", {"approve": True}, True),
        ("accept", {"approve": False}, False),
        ("accept", {"approve": "no"}, False),
        ("accept", {"denied": True}, False),
        ("accept", {"approve": True, "denied": True}, False),
        ("accept", {"approve": 1}, False),
        ("decline", None, False),
        ("cancel", None, False),
    ],
)
async def test_the_person_at_the_client_decides(mode, action, content, runs):
    """A client that can ask lists such tools; its person reads tool and arguments, and decides."""
    elicit, asked = answering(action, content)
    served = LibraryServer(library()).sdk_server()
    async with Client(served, mode=mode, elicitation_callback=elicit) as client:
        assert names(await client.list_tools()) == ["add", "wipe"]
        answer = await client.call_tool("wipe", {"path": "/tmp/x"})
    assert answer.is_error is not runs
    assert len(asked) == 1
    assert "Run wipe" in asked[0]
    assert "/tmp/x" in asked[0]


@pytest.mark.parametrize("mode", ERAS)
async def test_nobody_agrees_to_what_nobody_sees(mode):
    """Arguments too long to be shown are not asked about; invisible characters are written out."""
    elicit, asked = answering("accept", {})
    served = LibraryServer(library()).sdk_server()
    async with Client(served, mode=mode, elicitation_callback=elicit) as client:
        long = await client.call_tool("wipe", {"path": " " * 2_000 + "/etc"})
        assert (long.is_error, asked) == (True, [])
        assert "2,000 characters of the arguments" in long.content[0].text
        await client.call_tool("wipe", {"path": "a\u202eb\u3164\U000e0041" + "\u3000" * 500 + "c"})
    assert "a⟨U+202E⟩b⟨U+3164⟩⟨U+E0041⟩ ⟨500 blanks⟩ c" in asked[0]


async def test_calls_that_wait_for_a_person_are_counted_and_end(monkeypatch):
    """A client that never answers has a few of them kept, for minutes, and nothing long."""
    places = "agentkit.interop.mcp"
    monkeypatch.setattr(f"{places}.library_server._MOST_WAITING", 2)
    waiting, answered = asyncio.Semaphore(0), asyncio.Event()

    async def silent(context, params):
        waiting.release()
        await answered.wait()
        return ElicitResult(action="decline")

    served = LibraryServer(library()).sdk_server()
    async with Client(served, mode="legacy", elicitation_callback=silent) as client:
        held = [asyncio.create_task(client.call_tool("wipe", {"path": "a"})) for _ in range(2)]
        for _ in held:
            await waiting.acquire()
        third = await client.call_tool("wipe", {"path": "a"})
        assert "Too many calls wait" in third.content[0].text
        answered.set()
        assert all(one.is_error for one in await asyncio.gather(*held))
        answered.clear()
        monkeypatch.setattr(f"{places}.serving._ANSWER_SECONDS", 0.1)
        assert (await client.call_tool("wipe", {"path": "a"})).is_error
        answered.set()
        monkeypatch.setattr(f"{places}.serving._LONGEST_HELD", 10)
        long = await client.call_tool("wipe", {"path": "a"})
        assert "characters of the arguments" in long.content[0].text


async def test_composites_run_and_tools_without_code_are_not_listed():
    """A composite runs on the code of its children; what cannot run is told to the host."""

    @composite
    def add_twice(a: int, b: int) -> int:
        """Add b to a two times."""
        once = add(a=a, b=b)
        return add(a=once, b=b)

    away = ToolDefinition.from_schema("away", "Elsewhere.", {"type": "object", "properties": {}})
    server = LibraryServer(library(add_twice, Tool(definition=away)))
    assert [(name, "no code" in reason) for name, reason in server.hidden.items()] == [
        ("away", True)
    ]
    async with Client(server.sdk_server()) as client:
        assert names(await client.list_tools()) == ["add", "add_twice"]
        assert (await client.call_tool("add_twice", {"a": 1, "b": 2})).structured_content == {
            "result": 5
        }


@pytest.mark.parametrize("mode", ERAS)
async def test_the_stores_library_is_followed_and_calls_are_kept(mode, eventually):
    """Active versions only: a new library version is told to clients; each call is an episode."""
    store = open_store("memory:")
    manager = ToolManager(store, author=Author(kind="person", name="ann"))
    manager.register([add])
    heard = asyncio.Event()

    async def message(one):
        if isinstance(one, ToolListChangedNotification):
            heard.set()

    server = LibraryServer(store, tools=[add], poll_seconds=0.02)
    client = Client(server.sdk_server(), mode=mode, message_handler=message, cache=None)
    async with client:
        assert names(await client.list_tools()) == ["add"]
        await client.call_tool("add", {"a": 1, "b": 2})
        await client.call_tool("add", {"a": 1})
        wait = _next_change(client) if mode == "auto" else heard.wait()
        waiting = asyncio.create_task(wait)
        await asyncio.sleep(0.05)
        words = add.definition.description
        better = replace(words, summary=f"{words.summary} Whole numbers only.")
        reworded = replace(add.definition, description=better)
        change = LibraryChange(proposal_id="p1", upserts=(reworded,))
        manager.edit(lambda _: change)
        await asyncio.wait_for(waiting, timeout=20)
        (listed,) = (await client.list_tools()).tools
        assert listed.description.endswith("Whole numbers only.")
    kept = list(store.select())
    assert sorted(one.results[0].status for one in kept) == ["failed", "ok"]
    assert {one.library_version for one in kept} == {1}
    assert kept[0].metadata["source"] == "mcp"


async def _next_change(client):
    async with client.listen(tools_list_changed=True) as changes:
        async for _ in changes:
            return


async def test_long_listings_come_in_pages_and_old_cursors_are_refused():
    """Pages together are the library; a cursor of another version makes the client begin anew."""
    many = [Tool(definition=_named(f"tool_{at:04}"), function=dict) for at in range(1_200)]
    async with Client(LibraryServer(Library(many)).sdk_server(), cache=None) as client:
        page = await client.list_tools()
        found = names(page)
        while page.next_cursor:
            page = await client.list_tools(cursor=page.next_cursor)
            found += names(page)
        assert found == [f"tool_{at:04}" for at in range(1_200)]
        for cursor in ("99:0", "nonsense", "0:-1", "0:²"):
            with pytest.raises(MCPError, match="list them again"):
                await client.list_tools(cursor=cursor)


def _named(name):
    return ToolDefinition.from_schema(name, "A tool.", {"type": "object", "properties": {}})


async def test_arguments_that_no_record_holds_are_refused():
    """They are nested too deeply or too many; nothing is run or kept."""
    store = open_store("memory:")
    deep = 1
    for _ in range(190):
        deep = [deep]
    async with Client(LibraryServer(store, tools=[add]).sdk_server()) as client:
        for value in (deep, [0] * 450_000):
            answer = await client.call_tool("add", {"a": 1, "b": value})
            assert answer.is_error
            assert "are not taken" in answer.content[0].text
    assert not list(store.select())


KEY = "sk-0123456789abcdef"


@tool(name="add")
async def add_slowly(a: int, b: int) -> int:
    """Add two numbers, slowly."""
    await asyncio.sleep(0.2)
    return a + b


@pytest.fixture
def guarded(listening):
    """The address of a server that asks for a key."""
    holder = Keys({"shop": KEY}).holder
    url, _ = listening(LibraryServer(Library([add_slowly])).http_app(holder=holder))
    return url


async def test_a_key_opens_and_nothing_else(guarded):
    """The official client reaches the tools with a key, and is told without one or with another."""
    headers = {"Authorization": f"bearer {KEY}"}
    async with McpServer.http(guarded, headers=headers, new_tools="screen") as server:
        assert await server.library["add"](a=1, b=2) == 3
    limits = McpLimits(connect_seconds=5)
    for wrong in ({}, {"Authorization": "Bearer sk-guessed-0123456"}, {"Authorization": KEY}):
        with pytest.raises(McpConnectionError, match="cannot be reached"):
            async with McpServer.http(guarded, headers=wrong, limits=limits, new_tools="screen"):
                pass


@pytest.mark.parametrize(("key", "has_session"), [(KEY, True), (KEY, False), ("sk-none", False)])
@pytest.mark.parametrize(("header", "sent", "begin"), NO_BODIES)
def test_a_body_that_is_none_costs_a_line(caplog, header, sent, begin, key, has_session):
    """Whoever sends what is no HTTP, or leaves, fills no log with tracebacks."""
    app = LibraryServer(Library([add])).http_app(holder=Keys({"shop": KEY}).holder)
    app.state.limits, app.state.has_keys, app.state.runs = ServerLimits(), True, Runs()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    with serving(app) as url:
        if has_session:
            begun = httpx.post(f"{url}/mcp", json=BEGINS, headers=headers)
            headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
        lines = (f"{name}: {value}" for name, value in headers.items())
        assert raw_answer(url, "/mcp", sent, header, *lines).startswith(begin)
    assert not [record for record in caplog.records if record.exc_info]


async def test_no_call_ends_the_server(listening):
    """Whatever a tool raises or returns, its client gets an answer, and others go on."""

    @tool(effects=["reads"])
    async def odd(kind: str) -> str:
        """Do something odd."""
        errors = {"panic": BaseException("x"), "cancel": asyncio.CancelledError("x")}
        errors["end"] = GeneratorExit("x")
        if kind in errors:
            raise errors[kind]
        return "half \ud800"

    url, _ = listening(LibraryServer(Library([add, odd])).http_app())
    async with Client(url) as client:
        for kind in ("panic", "cancel", "end"):
            answer = await client.call_tool("odd", {"kind": kind})
            assert answer.is_error
            assert "incident" in answer.content[0].text
        assert (await client.call_tool("odd", {"kind": "text"})).content[0].text == "half \ufffd"
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text == "3"


async def test_a_session_is_that_of_the_key_that_began_it(listening):
    """Another key does not reach it, even if it knows its id."""
    keys = Keys({"shop": KEY, "other": "sk-fedcba9876543210"})
    url, _ = listening(LibraryServer(Library([add])).http_app(holder=keys.holder))
    begin = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    }
    listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(headers=headers) as client:

        async def post(key, content, **further):
            sent = {"authorization": f"Bearer {key}", **further}
            return await client.post(url, json=content, headers=sent)

        session = (await post(KEY, begin)).headers["mcp-session-id"]
        of_session = {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
        assert (await post(KEY, listed, **of_session)).status_code == 200
        assert (await post("sk-fedcba9876543210", listed, **of_session)).status_code == 404


@pytest.mark.parametrize("mode", ERAS)
async def test_calls_of_one_key_are_those_of_one_user(listening, mode):
    """Episodes are labelled with the key's name or ``anonymous``, whatever a client calls itself."""

    async def call(server, name, **options):
        url, _ = listening(server.http_app(**options))
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
            transport = streamable_http_client(url, http_client=http)
            info = Implementation(name=name, version="1")
            async with Client(transport, mode=mode, client_info=info) as client:
                await client.call_tool("add", {"a": 1, "b": 2})

    store = open_store("memory:")
    ToolManager(store).register([add], reason="the first tools")
    server = partial(LibraryServer, store, tools=[add])
    for name in ("one", "another"):
        await call(server(), name, holder=Keys({"shop": KEY}).holder)
        await call(server(), name)
    async with Client(server().sdk_server(), mode=mode) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
    found = [(one.metadata["client"], one.metadata["user"]) for one in store.select()]
    users = [user for _, user in found][::-1]
    assert users == ["shop", "anonymous", "shop", "anonymous", "anonymous"]
    assert {"one", "another"} < {client for client, _ in found}


async def test_a_stop_waits_for_calls_and_not_for_ever():
    """What drains the server returns when the last call has ended, or when the time is up."""
    served = LibraryServer(Library([add_slowly]))
    async with McpServer.in_process(served.sdk_server(), new_tools="screen") as server:
        await asyncio.wait_for(served.drain(5.0), 1.0)  # nothing runs
        running = asyncio.create_task(server.library["add"](a=1, b=2))
        await asyncio.sleep(0.05)
        await served.drain(0.0)
        assert not running.done()
        assert await running == 3


FLAG = st.none() | st.booleans()
EFFECTS = st.builds(
    Effects, reads=FLAG, writes=FLAG, destructive=FLAG, idempotent=FLAG, open_world=FLAG
)
NAME = st.sampled_from(["city", "days", "default", "größe", "order id"])
LEAF = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 1},
        {"enum": ["a", "b", None]},
        {"type": ["number", "null"]},
        {"$ref": "#/$defs/point"},
        {"$ref": "#"},
        {},
    ]
)
SCHEMA = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(NAME, inner, max_size=3).map(
            lambda fields: {"type": "object", "properties": fields}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda options: {"anyOf": options}),
    ),
    max_leaves=4,
)
POINT = {"point": {"type": "object", "properties": {"x": {"type": "number"}}}}


def with_definitions(schema):
    """A schema that holds what its references mean, and one more to itself."""
    if "$ref" not in str(schema):
        return schema
    return {**schema, "$defs": {**POINT, "again": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}


PARAMETERS = st.dictionaries(NAME, SCHEMA, max_size=3).map(
    lambda fields: with_definitions({"type": "object", "properties": fields})
)
RESULT = st.none() | SCHEMA.filter(bool).map(with_definitions)


@given(NAME, PARAMETERS, RESULT, EFFECTS)
def test_signatures_survive(name, parameters, result, effects):
    """Parameters, result and effects come back as they were, when the server is trusted."""
    definition = ToolDefinition.from_schema(
        name, "A tool.", parameters, result=result, effects=effects
    )
    wire = WireTool.model_validate(tool_record(definition), by_name=False)
    policy = ImportPolicy(server="home", new_tools="screen", trust_annotations=True)
    listing = import_listing(RawListing(records=(record_of(wire),)), policy, Memory())
    assert listing.held == ()
    assert listing.tools[0].definition.signature == definition.signature


BEGINS = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "clientInfo": {"name": "x", "version": "1"},
        "capabilities": {},
    },
}


async def test_sessions_over_http_are_counted(listening, monkeypatch):
    """A client that begins sessions without end is refused further ones."""
    monkeypatch.setattr("agentkit.interop.mcp.library_server._MOST_SESSIONS", 2)
    url, _ = listening(LibraryServer(Library([add])).http_app())
    async with httpx.AsyncClient(
        headers={"accept": "application/json, text/event-stream"}
    ) as client:
        begun = [(await client.post(url, json=BEGINS)).status_code for _ in range(3)]
    assert begun == [200, 200, 503]


@pytest.mark.parametrize("keys", [None, {"key-a": "shop"}])
async def test_a_session_keeps_little_of_its_client(listening, keys):
    """What a client says of itself stays in memory, so that it has to be short; calls may be long."""
    holder = keys and keys.get
    url, _ = listening(LibraryServer(Library([add])).http_app(holder=holder))
    said = {"experimental": {f"c{number}": {} for number in range(2_000)}}
    long = {**BEGINS, "params": {**BEGINS["params"], "capabilities": said}}
    accepts = "application/json, text/event-stream"
    headers = {"accept": accepts, "authorization": "Bearer key-a"}
    async with httpx.AsyncClient(headers=headers) as client:
        assert (await client.post(url, json=long)).status_code == 413
        assert (await client.post(url, content=b" " * (5 << 20))).status_code == 413
        begun = await client.post(url, json=BEGINS)
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        call = {"name": "add", "arguments": {"a": 1, "b": 2, "c": "x" * 50_000}}
        sent = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        assert (await client.post(url, json=sent, headers=session)).status_code == 200
        call["arguments"]["c"] = [1] * 200_000
        many = await client.post(url, json=sent, headers=session)
        assert (many.status_code, "100,000 values" in many.text) == (413, True)
        resumed = {**session, "last-event-id": "1", "accept": "text/event-stream"}
        async with client.stream("GET", url, headers=resumed) as stream:
            assert stream.status_code == 200


async def test_no_key_takes_all_sessions(listening, monkeypatch):
    """Half of them are left to other keys, and go to the first again when its own have ended."""
    monkeypatch.setattr("agentkit.interop.mcp.library_server._MOST_SESSIONS", 4)
    keys = {"key-a": "shop", "key-b": "desk"}
    url, _ = listening(LibraryServer(Library([add])).http_app(holder=keys.get))
    async with httpx.AsyncClient() as client:

        async def begin(key):
            accepts = "application/json, text/event-stream"
            headers = {"accept": accepts, "authorization": f"Bearer {key}"}
            return await client.post(url, json=BEGINS, headers=headers)

        begun = [await begin(key) for key in ("key-a", "key-a", "key-a", "key-b")]
        assert [one.status_code for one in begun] == [200, 200, 503, 200]
        assert "half of all sessions" in begun[2].text
        session = begun[0].headers["mcp-session-id"]
        headers = {"mcp-session-id": session, "authorization": "Bearer key-a"}
        assert (await client.delete(url, headers=headers)).status_code == 200
        assert (await begin("key-a")).status_code == 200


CURIOUS = Path(curious.__code__.co_filename)

PROTOCOLS = ["auto", "legacy"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"size": 7}, 'accept {"size": 7}'),
        ({"size": "big"}, "cancel null"),  # does not fit the form
        (True, "cancel null"),  # agrees, but the form wants a value
        (False, "decline null"),
        (Approval(approved=False, reason="no"), "decline null"),
        (None, "cancel null"),
    ],
)
async def test_the_answer_of_the_user_reaches_the_server(protocol, answer, expected):
    """Values that fit the form are sent; all else declines, or leaves the question open."""
    asked = []

    async def elicit(question):
        asked.append((asyncio.get_running_loop(), question))
        return answer

    server = McpServer.in_process(
        curious(), name="shop", protocol=protocol, new_tools="screen", elicit=elicit
    )
    async with server:
        assert await server.library["order"]() == expected
    ((loop, question),) = asked
    assert loop is asyncio.get_running_loop()
    assert (question.server, question.message, question.url) == ("shop", "Which size?", None)
    assert question.schema["required"] == ["size"]


@pytest.mark.parametrize(
    "answer",
    [
        *("no", "false", 0, 1, "", [], [False], object(), {"approved": False}, {"size": math.nan}),
        *({"size": 1, "note": "x"}, {"note": chr(0xD800)}),
    ],
)
async def test_what_is_no_answer_accepts_nothing(answer, caplog):
    """A word that means no is no yes; the log says what was wrong."""
    schema = {"type": "object", "properties": {"size": {}}}
    if answer == {"note": chr(0xD800)}:
        schema = {"type": "object", "properties": {"note": {}}}
    async with McpServer.in_process(
        curious(schema=schema), new_tools="screen", elicit=lambda _: answer
    ) as server:
        assert await server.library["order"]() in {"decline null", "cancel null"}
    assert "MCP server" in caplog.text


@pytest.mark.parametrize(
    ("url", "action"),
    [
        ("https://shop.example/pay", "accept"),
        ("http://localhost:8080/pay", "accept"),
        ("http://shop.example/pay", "decline"),
        ("file:///etc/passwd", "decline"),
        ("javascript:alert(1)", "decline"),
        ("https://[", "decline"),
        ("https://bank.example@shop.example/", "decline"),
        ("https://shop.example/ https://bank.example", "decline"),
        ("https://shop.example/" + "x" * 9_000, "decline"),
        ("https://shop.example/\u3164", "decline"),
        ("https://" + "\u0430" * 70 + ".example/", "decline"),
    ],
)
async def test_a_user_is_sent_to_https_alone(url, action):
    """Only a page that is safe to open is put to the user at all, in words that hide nothing."""
    asked = []
    handler = ElicitationHandler(
        server="shop", elicit=lambda q: asked.append(q.message) or True, limits=McpLimits()
    )
    said = "Pay\u202e Ann" + "\n" * 90 + "and Bob"
    params = ElicitRequestURLParams(message=said, url=url, elicitation_id="1")
    assert (await handler(None, params)).action == action
    assert asked == ["Pay⟨U+202E⟩ Ann ⟨90 blanks⟩ and Bob"] * (action == "accept")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://b\u0430nk.example/", "xn--bnk-6cd.example"),
        ("https://b\u0430nk.example/xn--bnk-6cd.example", "xn--bnk-6cd.example"),
        ("https://\u0430\u0440\u0440\u04cf\u0435.example/apple", "xn--80ak6aa92e.example"),
        (
            "https://bank.example\u2044login.shop.example/",
            "bank.xn--examplelogin-xk0g.shop.example",
        ),
        ("https://bank.example/\u0430", ""),
        ("https://BANK.example/\u0430", ""),
    ],
)
async def test_a_host_in_letters_of_others_is_spelled_out(url, host):
    """A user sees where an address leads that looks like another one; the address stays."""
    asked = []
    handler = ElicitationHandler(server="s", elicit=asked.append, limits=McpLimits())
    await handler(None, ElicitRequestURLParams(message="Log in", url=url, elicitation_id="1"))
    assert [one.url for one in asked] == [url]
    note = f"\n⟨the host of the address is {host}⟩" if host else ""
    assert asked[0].message == f"Log in{note}"


async def test_a_form_hides_nothing():
    """Its texts are written out as the question is, and a field of such a name is not answered."""
    named = {"title": "Si\u202eze\x1b[2J" + " " * 90 + "!", "enum": ["a", "b\u200b"]}
    form = {"type": "object", "properties": {"size": named, "to\u200bken": {"type": "string"}}}
    params = ElicitRequestFormParams(message="S\x1b[31mize?", requested_schema=form)
    asked = []

    async def answered(**values):
        handler = ElicitationHandler(
            server="s", elicit=lambda q: asked.append(q) or values, limits=McpLimits()
        )
        return (await handler(None, params)).action

    assert await answered(size="a") == "accept"
    assert await answered(**{"to⟨U+200B⟩ken": "x"}) == "decline"
    assert asked[0].message == "S⟨U+001B⟩[31mize?"
    fields = asked[0].schema["properties"]
    assert [*fields] == ["size", "to⟨U+200B⟩ken"]
    assert fields["size"]["title"] == "Si⟨U+202E⟩ze⟨U+001B⟩[2J ⟨90 blanks⟩ !"
    assert fields["size"]["enum"] == ["a", "b⟨U+200B⟩"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_program_asks_over_stdio(protocol):
    """Through our own transport, which bounds what a server may ask."""
    async with McpServer.stdio(
        sys.executable,
        [str(CURIOUS)],
        protocol=protocol,
        new_tools="screen",
        elicit=lambda question: {"size": 4} if question.url is None else None,
    ) as server:
        assert await server.library["order"]() == 'accept {"size": 4}'


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_question_without_bounds_is_declined_unread(protocol):
    """Neither its words nor its form may be longer than a tool's description."""
    fields = {f"field_{at}": {"type": "string"} for at in range(2_000)}
    asked = []
    for server in (curious("x" * 9_000), curious("Fill in", {**SIZE, "properties": fields})):
        async with McpServer.in_process(
            server, protocol=protocol, new_tools="screen", elicit=asked.append
        ) as connected:
            assert await connected.library["order"]() == "decline null"
    assert asked == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_without_a_handler_the_server_knows_that_nobody_answers(protocol):
    """The call fails, and says so."""
    async with McpServer.in_process(curious(), protocol=protocol, new_tools="screen") as server:
        with pytest.raises(ToolFailed, match="error"):
            await server.library["order"]()


# --- kept tools -----------------------------------------------------------------------------------


def kept(fakes):
    """A library that has the tools of a server as they were approved."""
    manager = ToolManager(open_store("memory:"), author=Author(kind="person", name="ann"))
    with McpServer.in_process(fakes.server, name="files", new_tools="screen") as server:
        keep_tools(manager, server.tools)
    return manager.library


async def test_kept_tools_connect_at_the_first_call(fake, entry):
    """They are offered before, and nothing is started for runs that do not call them."""
    fakes = fake(entry("read"), entry("list"))
    library = await asyncio.to_thread(kept, fakes)
    listings = fakes.listings
    server = McpServer.in_process(fakes.server, name="files", kept=library)
    async with server:
        call = ToolCall(call_id="1", name="read", arguments={})
        agent = Agent(ScriptedModel(["Hello.", [call], "done"]), tools=server.tools)
        await agent.run("Hello")
        assert (server.connects, fakes.listings, server.state) == (0, listings, "lost")
        (result,) = (await agent.run("Read")).episode.results
        assert (result.value, server.connects, server.state) == ("done", 1, "connected")
        assert [one.name for one in server.tools] == ["read", "list"]
    assert server.state == "closed"


async def test_a_kept_tool_that_changed_is_not_called(fake, entry):
    """What was approved is what runs; the call says why, and others go on."""
    fakes = fake(entry("read"), entry("list"))
    library = await asyncio.to_thread(kept, fakes)
    fakes.records[0] = entry("read", "Reads, and sends what it read.")
    async with McpServer.in_process(fakes.server, name="files", kept=library) as server:
        read, listing = server.tools
        with pytest.raises(ToolFailed, match="is not offered"):
            await read()
        assert await listing() == "done"
    assert [name for name, _ in fakes.calls] == ["list"]


# --- OAuth ----------------------------------------------------------------------------------------


@tool(effects=["reads"])
def price(item: str) -> float:
    """What an item costs."""
    return len(item)


def protected(issued):
    """A library behind OAuth: the application for a base address, which counts its tokens."""
    inner = LibraryServer(Library([price])).http_app(
        holder=lambda key: "bot" if key in issued else None
    )

    async def app(scope, receive, send):
        base = "http://" + dict(scope.get("headers", ())).get(b"host", b"").decode()
        match scope.get("path"):
            case "/.well-known/oauth-protected-resource/mcp":
                answer = {"resource": f"{base}/mcp", "authorization_servers": [base]}
            case "/.well-known/oauth-authorization-server":
                answer = {
                    "issuer": base,
                    "authorization_endpoint": f"{base}/authorize",
                    "token_endpoint": f"{base}/token",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["client_credentials"],
                }
            case "/token":
                issued.append(f"token-{len(issued)}")
                answer = {"access_token": issued[-1], "token_type": "Bearer", "expires_in": 3600}
            case _:
                await inner(scope, receive, send)
                return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    return app


class Storage:
    """Keeps the token of the last start."""

    def __init__(self):
        self.tokens = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return None

    async def set_client_info(self, client_info):
        pass


async def test_a_server_behind_oauth_is_called_with_a_token(listening):
    """The official package fetches the token; kept, it serves the next start."""
    issued = []
    url, _ = listening(protected(issued))
    storage = Storage()

    def connect():
        auth = ClientCredentialsOAuthProvider(
            url, storage, client_id="bot", client_secret="s3cret", issuer=url[: -len("/mcp")]
        )
        return McpServer.http(url, name="orders", auth=auth, new_tools="screen")

    for _ in range(2):
        async with connect() as server:
            assert (await server.library["price"](item="pen")) == 3
    assert issued == ["token-0"]
    assert "token-0" not in repr(connect()._place)
