"""A server on stdio, of the official library, that can be asked to be late."""

import asyncio
import os

from mcp.server import MCPServer

server = MCPServer("faulty")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def wait(seconds: float) -> str:
    """Wait before answering."""
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def variable(name: str) -> str:
    """Look up an environment variable of the server."""
    return os.environ.get(name, "absent")


if __name__ == "__main__":
    server.run()
