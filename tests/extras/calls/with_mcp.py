"""The extra ``mcp``: an agent calls a tool of an official server, the official client one of ours."""

import asyncio
import os
import sys
from pathlib import Path

from shared import AGENTKIT, SQUARE_12, TOOLS, caller, check

from agentkit import Agent, RunResult
from agentkit.interop.mcp import McpServer

THEIRS = str(Path(__file__).with_name("squares_server.py"))


async def call_their_server() -> RunResult:
    """What an agent answers whose tool is at a server of the official package."""
    async with McpServer.stdio(sys.executable, [THEIRS], new_tools="screen") as server:
        return await Agent(caller(SQUARE_12), tools=server.tools).run("What is 12 squared?")


async def call_with_their_client() -> str:
    """What the official client gets from ``agentkit serve --mcp stdio``."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    arguments = ["serve", "--mcp", "stdio", "--store", "memory:", "--tools", TOOLS]
    # Their client passes few variables on; this Python is found, and hides modules, by more.
    command = StdioServerParameters(command=AGENTKIT, args=arguments, env=dict(os.environ))
    async with Client(stdio_client(command)) as ours:
        called = await ours.call_tool("square", {"n": 12})
    return called.content[0].text


# Ours is asked first: without the extra, our error is the one to read.
check(asyncio.run(call_their_server()), {"result": 144}, "their server", "mcp")
assert asyncio.run(call_with_their_client()) == "144"
print("their client: 144")
