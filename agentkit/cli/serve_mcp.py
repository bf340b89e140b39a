"""What ``agentkit serve --mcp`` runs: the library of a store as an MCP server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from agentkit.cli.loading import load_tools
from agentkit.cli.output import plural, say
from agentkit.cli.stores import opened
from agentkit.errors import MissingExtraError
from agentkit.mcp.serving.library_server import LibraryServer

if TYPE_CHECKING:
    from starlette.applications import Starlette

Transport = Literal["stdio", "http"]


def serve_mcp(
    *,
    store: str,
    tools: tuple[str, ...] = (),
    transport: Transport = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    search: bool = False,
    prefix: str = "",
    name: str = "agentkit",
) -> None:
    """Serve the library of a store until the client hangs up (stdio) or Ctrl-C (http).

    Every call is kept in the store as an episode. Tools that need approval are listed only to
    clients that can ask their person. Messages go to stderr: with stdio, stdout is the wire.

    Args:
        store: The store's URL.
        tools: ``module:name`` or ``file.py[:name]`` of the tools' code, as
            ``agentkit run --tools`` takes them.
        transport: ``stdio`` for a client that starts this process, ``http`` for streamable HTTP
            at ``http://host:port/mcp``.
        host: Where to listen, for ``http``.
        port: Where to listen, for ``http``; 0 takes a free one.
        search: Offer ``search_tools`` and ``call_tool`` in place of all tools.
        prefix: Stands before the name of every tool.
        name: What the server calls itself.

    Raises:
        MissingExtraError: ``mcp`` is absent, or ``uvicorn`` for ``http``.
        UsageError: A target of ``tools`` can not be imported.
    """
    code = load_tools(tools)
    with opened(store) as opened_store:
        server = LibraryServer(opened_store, tools=code, name=name, prefix=prefix, search=search)
        _tell(server)
        if transport == "stdio":
            asyncio.run(server.serve_stdio())
        else:
            _serve_http(server.http_app(host=host), host, port)


def _tell(server: LibraryServer) -> None:
    exposure = server.exposure
    needing = len(exposure.runnable) - len(exposure.open)
    waits = f"; {needing} more for clients that can ask for approval" if needing else ""
    say(f"Serving {plural(len(exposure.open), 'tool')}{waits}.")
    for hidden in server.hidden:
        say(f"  not served: {hidden.name}: {hidden.reason}")


def _serve_http(app: Starlette, host: str, port: int) -> None:
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(
            "serving MCP over HTTP",
            package="uvicorn",
            install='pip install "agentkit-evolve[serve]"',
        ) from error
    uvicorn.run(app, host=host, port=port, log_level="info", log_config=None)
