"""What a server may ask back: questions to the user, a start at the first call, and OAuth."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

from agentkit import Agent, Library, open_store, tool
from agentkit.agent import Approval
from agentkit.errors import McpError, ToolFailed
from agentkit.evolution import ToolManager
from agentkit.interop.mcp import LibraryServer, McpServer, keep_tools
from agentkit.library import Author
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from tests.interop.mcp.servers.curious import SIZE, curious

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


def test_an_agent_without_a_loop_of_its_own_asks_too():
    """A plain function answers, from a thread, inside ``with`` and ``run_sync``."""
    call = ToolCall(call_id="1", name="order", arguments={})
    with McpServer.in_process(
        curious(), new_tools="screen", elicit=lambda question: {"size": len(question.message)}
    ) as server:
        agent = Agent(ScriptedModel([[call], "done"]), tools=server.tools)
        (result,) = agent.run_sync("Order").episode.results
    assert result.value == 'accept {"size": 11}'


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_handler_that_fails_leaves_the_question_open(protocol, caplog):
    """The log has the error, the server learns nothing of it, and the call ends."""

    def elicit(question):
        raise RuntimeError("password=hunter2")

    async with McpServer.in_process(
        curious(), protocol=protocol, new_tools="screen", elicit=elicit
    ) as server:
        assert await server.library["order"]() == "cancel null"
    assert "could not be answered" in caplog.text


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


async def test_a_kept_server_that_cannot_be_reached_fails_the_call(fake, entry):
    """The error names it, and the next call tries again."""
    library = await asyncio.to_thread(kept, fake(entry("read")))
    async with McpServer.stdio("/nowhere/at-all", name="files", kept=library) as server:
        for _ in range(2):
            with pytest.raises(McpError, match="cannot be reached"):
                await server.tools[0]()


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
            url,
            storage,
            client_id="bot",
            client_secret="s3cret",
            issuer=url[: -len("/mcp")],
        )
        return McpServer.http(url, name="orders", auth=auth, new_tools="screen")

    for _ in range(2):
        async with connect() as server:
            assert (await server.library["price"](item="pen")) == 3
    assert issued == ["token-0"]
    assert "token-0" not in repr(connect()._place)
