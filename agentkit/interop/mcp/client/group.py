"""``McpServers``: several servers together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from agentkit.agent.session import Route, RouteRequest
from agentkit.errors import UsageError
from agentkit.interop.mcp.client.listing import HeldTool
from agentkit.interop.mcp.client.server import McpServer
from agentkit.library.library import Library
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from types import TracebackType


class McpServers:
    """Several servers, whose tools keep their names where these are their own.

    Tools of one name are offered as ``server__tool``, each of them, so that none stands in the
    place of another; ``renamed`` tells. They stay so, also when the other one goes away.

    Args:
        servers: The servers, each with a name of its own.

    Raises:
        UsageError: Two servers have one name.

    Example:
        >>> both = McpServers(
        ...     McpServer.stdio("python", ["files.py"], name="files"),
        ...     McpServer.http("http://localhost:8000/mcp", name="orders"),
        ... )
        >>> [server.name for server in both.servers]
        ['files', 'orders']
    """

    def __init__(self, *servers: McpServer) -> None:
        names = [server.name for server in servers]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise UsageError(
                f"several MCP servers are called {repeated[0]!r}; give each a name: name='files'"
            )
        self.servers = servers

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that are offered now, server by server."""
        self._settle()
        return tuple(tool for server in self.servers for tool in server.tools)

    @property
    def library(self) -> Library:
        """The same as a library."""
        return Library(self.tools)

    @property
    def held(self) -> Mapping[str, tuple[HeldTool, ...]]:
        """The tools that are not offered, by server."""
        return {server.name: server.held for server in self.servers}

    @property
    def renamed(self) -> tuple[str, ...]:
        """Which tools got their server's name before their own, in sentences."""
        self._settle()
        return tuple(
            f"{tool.definition.name}: {tool.name} of {server.name}, whose name is taken"
            for server in self.servers
            for tool in server.listing.tools
            if tool.definition.name != tool.name
        )

    async def route(self, asked: RouteRequest) -> Route:
        """The library of a run with the newest tools of all servers, as an ``Agent``'s router."""
        self._settle()
        labels: dict[str, str] = {}
        for server in self.servers:
            route = await server.route(asked)
            asked = replace(asked, library=route.library)
            labels |= route.labels
        return Route(library=asked.library, labels=labels)

    def _settle(self) -> None:
        """See to it that no two servers offer one name."""
        while taken := self._taken_twice():
            for server in self.servers:
                server.offered_as(
                    {tool.name for tool in server.listing.tools if tool.definition.name in taken}
                )

    def _taken_twice(self) -> set[str]:
        names = Counter(tool.name for server in self.servers for tool in server.tools)
        return {name for name, count in names.items() if count > 1}

    async def __aenter__(self) -> Self:
        entered = await asyncio.gather(
            *(server.__aenter__() for server in self.servers), return_exceptions=True
        )
        failed = [outcome for outcome in entered if isinstance(outcome, BaseException)]
        if failed:
            await self.__aexit__(None, None, None)
            raise failed[0]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.gather(*(one.__aexit__(kind, error, trace) for one in self.servers))

    def __enter__(self) -> Self:
        try:
            for server in self.servers:
                server.__enter__()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in self.servers:
            server.__exit__(kind, error, trace)
