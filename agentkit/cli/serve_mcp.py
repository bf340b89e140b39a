"""What ``agentkit serve --mcp`` runs: the library of a store as an MCP server."""

from __future__ import annotations

import asyncio
import os
from typing import Literal

from agentkit.cli.agents import binding_told, tell_binding
from agentkit.cli.loading import load_tools
from agentkit.cli.output import plural, say
from agentkit.cli.stores import followed, opened
from agentkit.interop.mcp.library_server import LibraryServer
from agentkit.server.keys import Keys
from agentkit.server.limits import ServerLimits
from agentkit.server.running import serve as serve_app

Transport = Literal["stdio", "http"]


def serve_mcp(
    *,
    store: str,
    tools: tuple[str, ...] = (),
    transport: Transport = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str = "agentkit",
    keys: Keys | None = None,
    insecure: bool = False,
    drain: float = 30.0,
    refresh: float = 1.0,
    max_staleness: float | None = None,
    pin: int | None = None,
    frozen: bool = False,
) -> None:
    """Serve the library of a store until the client hangs up (stdio) or Ctrl-C (http).

    Every call is kept in the store as an episode. Tools that need approval are listed only to
    clients that can ask their person. Messages go to stderr: with stdio, stdout is the wire.

    Args:
        store: The store's URL.
        tools: ``module:name`` or ``file.py[:name]`` of the tools' code.
        transport: ``stdio`` for a client that starts this process, ``http`` for streamable HTTP
            at ``http://host:port/mcp``.
        host: Where to listen, for ``http``.
        port: Where to listen, for ``http``; 0 takes a free one.
        name: What the server calls itself.
        keys: Who may use it over ``http``; None lets everybody in.
        insecure: Listen where other machines reach it although there are no keys.
        drain: Seconds that calls may still take when the server is told to stop.
        refresh: Seconds between two looks for a new version of the library.
        max_staleness: Seconds after which calls are refused; see ``followed``.
        pin: A version of the library that is served, whatever is promoted.
        frozen: Refuse to start where code and library differ.

    Raises:
        MissingExtraError: ``mcp`` is absent, or ``uvicorn`` for ``http``.
        UsageError: A target of ``tools`` can not be imported, or other machines would reach a
            server without keys.
    """
    code = load_tools(tools)
    with opened(store) as opened_store, followed(opened_store, refresh, max_staleness) as source:
        with binding_told():
            server = LibraryServer(source, tools=code, name=name, pin=pin, frozen=frozen)
        tell_binding(server.binding)
        _tell(server)
        if transport == "stdio":
            asyncio.run(server.serve_stdio())
            return
        app = server.http_app(host=host, holder=None if keys is None else keys.holder)
        app.state.has_keys = keys is not None
        app.state.limits = ServerLimits(drain_seconds=drain)
        app.state.runs = server  # what is drained before the end
        serve_app(
            app,
            host=host,
            port=port,
            insecure=insecure,
            on_start=lambda url: say(f"MCP at {url}/mcp. Ctrl-C stops it. Process {os.getpid()}."),
        )


def _tell(server: LibraryServer) -> None:
    exposure = server.exposure
    needing = len(exposure.runnable) - len(exposure.open)
    waits = f"; {needing} more for clients that can ask for approval" if needing else ""
    version = exposure.library.version
    say(f"Serving {plural(len(exposure.open), 'tool')} of library version {version}{waits}.")
    for hidden in server.hidden:
        say(f"  not served: {hidden.name}: {hidden.reason}")
