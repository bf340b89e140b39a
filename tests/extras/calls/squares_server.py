"""A server of the official MCP package, which ``with_mcp.py`` starts."""

from mcp.server import MCPServer

server = MCPServer("squares")


@server.tool()
def square(n: int) -> int:
    """The square of n."""
    return n * n


server.run()
