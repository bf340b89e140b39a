"""A server on stdio, of the official library, that can be asked to fail."""

import asyncio
import os
import sys

from mcp.server import MCPServer

server = MCPServer("faulty")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def die() -> str:
    """Stop the whole server in the middle of the call."""
    sys.stderr.write("these are my last words\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
async def wait(seconds: float) -> str:
    """Wait before answering."""
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def variable(name: str) -> str:
    """Look up an environment variable of the server, or its process id as PID."""
    return str(os.getpid()) if name == "PID" else os.environ.get(name, "absent")


if __name__ == "__main__":
    server.run()
