"""A library as an MCP server, seen through the official client."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from mcp import Client, MCPError
from mcp_types import ElicitResult, PaginatedRequestParams, ToolListChangedNotification

from agentkit import Library, composite, tool
from agentkit.evolution import ToolManager
from agentkit.interop.mcp import LibraryServer, McpServer
from agentkit.library import Author, LibraryChange, open_store
from agentkit.testing import sample_tools
from agentkit.tools import ToolDefinition
from agentkit.tools.definition import Effects
from agentkit.tools.tool import Tool

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


def answering(action):
    """A person at a client, who always answers the same; and what they were asked."""
    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

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


async def test_a_tool_without_code_is_not_offered_in_the_place_of_itself():
    """Whoever calls a tool that is not served is told of others, by the names that they have here."""
    named = ToolDefinition.from_schema("ads", "List ads.", {"type": "object", "properties": {}})
    served = LibraryServer(library(named), prefix="shop_").sdk_server()
    async with Client(served) as client:
        answer = await client.call_tool("shop_ads", {})
    assert answer.content[0].text == "There is no tool 'shop_ads'. Similar: shop_add."


@pytest.mark.parametrize("mode", ERAS)
async def test_approval_is_denied_where_nobody_can_be_asked(mode):
    """A destructive tool is not listed to a client without elicitation, and not run for it."""
    async with Client(LibraryServer(library()).sdk_server(), mode=mode) as client:
        assert names(await client.list_tools()) == ["add"]
        answer = await client.call_tool("wipe", {"path": "/"})
        assert answer.is_error
        assert "can not ask one (it has no elicitation)" in answer.content[0].text


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_the_person_at_the_client_decides(mode, action):
    """A client that can ask lists such tools; its person reads tool and arguments, and decides."""
    elicit, asked = answering(action)
    served = LibraryServer(library()).sdk_server()
    async with Client(served, mode=mode, elicitation_callback=elicit) as client:
        assert names(await client.list_tools()) == ["add", "wipe"]
        answer = await client.call_tool("wipe", {"path": "/tmp/x"})
    assert answer.is_error is (action != "accept")
    assert len(asked) == 1
    assert "Run wipe" in asked[0]
    assert "/tmp/x" in asked[0]


async def test_the_host_can_decide_instead():
    """With an approver of its own the server lists such tools to everybody, and asks it."""
    seen = []

    def approve(call, asked):
        seen.append((asked.name, dict(call.arguments)))
        return call.arguments["path"] == "ok"

    async with Client(LibraryServer(library(), approve=approve).sdk_server()) as client:
        assert names(await client.list_tools()) == ["add", "wipe"]
        assert not (await client.call_tool("wipe", {"path": "ok"})).is_error
        assert (await client.call_tool("wipe", {"path": "no"})).is_error
    assert seen == [("wipe", {"path": "ok"}), ("wipe", {"path": "no"})]


async def test_composites_run_and_tools_without_code_are_not_listed():
    """A composite runs on the code of its children; what can not run is told to the host."""

    @composite
    def add_twice(a: int, b: int) -> int:
        """Add b to a two times."""
        once = add(a=a, b=b)
        return add(a=once, b=b)

    away = ToolDefinition.from_schema("away", "Elsewhere.", {"type": "object", "properties": {}})
    server = LibraryServer(library(add_twice, Tool(definition=away)))
    assert [(hidden.name, "no code" in hidden.reason) for hidden in server.hidden] == [
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
            with pytest.raises(MCPError, match="list them anew"):
                await client.list_tools(cursor=cursor)


def _named(name):
    return ToolDefinition.from_schema(name, "A tool.", {"type": "object", "properties": {}})


async def test_a_large_library_can_be_searched_instead():
    """Two tools stand for all: what search_tools finds, call_tool calls; approval stays."""
    server = LibraryServer(
        Library([tool(sample_tools.currency_convert), tool(sample_tools.bill_split), add, wipe]),
        search=True,
        prefix="lib_",
    )
    async with Client(server.sdk_server()) as client:
        assert names(await client.list_tools()) == ["search_tools", "call_tool"]
        found = await client.call_tool("search_tools", {"query": "add two numbers", "limit": 3})
        tools = found.structured_content["tools"]
        assert tools[0]["name"] == "lib_add"
        assert json.loads(found.content[0].text) == tools
        called = {"name": "lib_add", "arguments": {"a": 2, "b": 2}}
        assert (await client.call_tool("call_tool", called)).content[0].text == "4"
        refused = {"name": "lib_wipe", "arguments": {"path": "/"}}
        assert (await client.call_tool("call_tool", refused)).is_error
        hidden = await client.call_tool("search_tools", {"query": "wipe delete a folder"})
        assert "lib_wipe" not in [one["name"] for one in hidden.structured_content["tools"]]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_tools", {}),
        ("search_tools", {"query": " "}),
        ("search_tools", {"query": 5}),
        ("search_tools", {"query": "a", "limit": 10_000}),
        ("search_tools", {"query": "a", "limit": True}),
        ("call_tool", {}),
        ("call_tool", {"name": "add", "arguments": [1]}),
        ("call_tool", {"name": "search_tools", "arguments": {}}),
        ("nothing", None),
    ],
)
async def test_bad_calls_are_answers_that_say_what_is_wrong(name, arguments):
    """Whatever a client sends, it gets an answer with isError and words."""
    async with Client(LibraryServer(library(), search=True).sdk_server()) as client:
        answer = await client.call_tool(name, arguments)
        assert answer.is_error
        assert answer.content[0].text


async def test_our_client_gets_back_what_our_server_serves():
    """Served and imported again, with trust, a tool has the signature it had."""
    served = LibraryServer(library()).sdk_server()
    options = {"trust_annotations": True, "name": "home"}
    async with McpServer.in_process(served, new_tools="screen", **options) as server:
        (listed,) = server.tools
        assert listed.definition.signature == add.definition.signature
        assert await listed(a=2, b=2) == 4


def test_the_server_lists_pages_by_parameters():
    """The type that the official library hands to the handler is the one that we read."""
    assert PaginatedRequestParams(cursor="0:1").cursor == "0:1"
