"""What ``agentkit serve --mcp`` runs: the library of a store as an MCP server."""

from __future__ import annotations

import asyncio
import os

from agentkit.cli.loading import load_tools
from agentkit.cli.output import plural, say
from agentkit.cli.run import AgentOptions, binding_told, tell_binding
from agentkit.cli.serve import ServerOptions, followed
from agentkit.cli.stores import opened
from agentkit.interop.mcp.library_server import LibraryServer
from agentkit.server.limits import ServerLimits
from agentkit.server.running import serve as serve_app


def serve_mcp(
    store_url: str, server: ServerOptions, *, transport: str, options: AgentOptions
) -> None:
    """Serve the library of a store until the client hangs up (stdio) or Ctrl-C (http).

    Every call is kept in the store as an episode. Tools that need approval are listed only to
    clients that can ask their person. Messages go to stderr: with stdio, stdout is the wire.

    Args:
        store_url: Where the library is.
        server: Where to listen, and for whom.
        transport: ``stdio`` for a client that starts this process, ``http`` for streamable HTTP
            at ``http://host:port/mcp``.
        options: Of the agent's, the tools and the version that are served.
    """
    keys, code = server.keys, load_tools(options.targets)
    with opened(store_url) as store, followed(store, server.refresh) as source:
        with binding_told():
            served = LibraryServer(
                source, tools=code, name="agentkit", pin=options.pin, frozen=options.frozen
            )
        tell_binding(served.binding)
        exposure = served.exposure
        needing = len(exposure.runnable) - len(exposure.open)
        waits = f"; {needing} more for clients that can ask for approval" if needing else ""
        version = exposure.library.version
        say(f"Serving {plural(len(exposure.open), 'tool')} of library version {version}{waits}.")
        for hidden in served.hidden:
            say(f"  not served: {hidden.name}: {hidden.reason}")
        if transport == "stdio":
            asyncio.run(served.serve_stdio())
            return
        app = served.http_app(host=server.host, holder=None if keys is None else keys.holder)
        app.state.has_keys = keys is not None
        app.state.limits = ServerLimits(drain_seconds=server.drain)
        app.state.runs = served  # what is drained before the end
        serve_app(
            app,
            host=server.host,
            port=server.port,
            insecure=server.insecure,
            on_start=lambda url: say(f"MCP at {url}/mcp. Ctrl-C stops it. Process {os.getpid()}."),
        )
