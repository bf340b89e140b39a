"""``McpServer`` and ``McpServers``: servers whose tools agents can call."""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args
from weakref import WeakKeyDictionary

from agentkit.agent.session import Route, RouteRequest
from agentkit.errors import McpError, ToolFailed, ToolNotFoundError, UsageError
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.validation.report import shown
from agentkit.interop.mcp.connection import Connection, outcome_of
from agentkit.interop.mcp.elicitation import ElicitationHandler, Elicitor
from agentkit.interop.mcp.listing import (
    HeldTool,
    ListedTool,
    Listing,
    McpLimits,
    RawListing,
    call_tool,
    checked_server_name,
    look_of,
    prefixed,
    reference_fingerprint,
    require_sdk,
)
from agentkit.interop.mcp.screening import ImportPolicy, Memory, NewTools, import_listing
from agentkit.interop.mcp.transports import HttpPlace, InProcessPlace, Place, StdioPlace
from agentkit.library.library import Library, nearest_names
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import MCP_PREFIX
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

_logger = logging.getLogger(__name__)

Approval = Literal["destructive", "always", "never"]


class OfferedTools:
    """The tools of a server that are offered now, alone and beside those of an agent.

    Args:
        name: What we call the server.
    """

    def __init__(self, name: str) -> None:
        self.library = Library()
        self._name = name
        self._mixed: WeakKeyDictionary[Library, Library] = WeakKeyDictionary()

    def take(self, tools: Iterable[Tool]) -> None:
        """Offer these tools, if they differ from those that are offered."""
        given = tuple(tools)
        if _facts(given) != _facts(self.library):
            self.library, self._mixed = Library(given), WeakKeyDictionary()

    def beside(self, base: Library) -> Library:
        """A library with these tools in the place of the server's in it; the same one each time."""
        if base not in self._mixed:
            now = {tool.name for tool in self.library}
            gone = [tool.name for tool in base if self._is_ours(tool) and tool.name not in now]
            kept = base.without(gone)
            taken = {look_of(tool.name) for tool in kept if not self._is_ours(tool)}
            self._mixed[base] = kept.with_tools([self._named(tool, taken) for tool in self.library])
        return self._mixed[base]

    def _named(self, tool: Tool, taken: set[str]) -> Tool:
        """The tool under a name that looks like none that is taken, and takes it."""
        name, number = tool.name, 1
        while look_of(name) in taken:
            own = prefixed(self._name, tool.name)
            name, number = (own if number == 1 else f"{own}__{number}"), number + 1
        taken.add(look_of(name))
        if name == tool.name:
            return tool
        return tool.with_definition(replace(tool.definition, name=name))

    def _is_ours(self, tool: Tool) -> bool:
        return _server_of(tool.definition) == f"{MCP_PREFIX}{self._name}"


def _facts(tools: Iterable[Tool]) -> list[tuple[str, str, bool]]:
    return [(tool.name, tool.definition.digest, tool.needs_approval) for tool in tools]


class McpServer:
    """A server's tools, for agents and libraries.

    Make one with ``stdio``, ``http`` or ``in_process``, and use its tools inside ``async with``,
    or ``with`` where no event loop runs. The connection lives in a thread of its own: tools can be
    called from any event loop, also that of ``run_sync``. A server that dies fails the call under
    way and reconnects.

    Args:
        place: Where it is.
        name: Our name for it; prefixes its tools' names where needed.
        approval: Which tools wait for a person: those that say that they destroy, all, or none.
        trust_annotations: Believe what the server says of effects. Otherwise a tool counts as one
            that writes and reaches into the world, and hints can only make that stricter.
        new_tools: ``hold`` offers no tool that nobody approved; ``screen`` also one that is new
            and whose texts pass the checks, unseen by a person.
        approved: Fingerprints by tool name, as ``fingerprints`` gave them earlier. A tool that has
            changed since is held.
        limits: How much the server may say, and how long we wait.
        protocol: ``auto`` agrees on a version with the server; ``legacy`` shakes hands as before
            2026; or a version.
        elicit: Answers questions that the server asks the user while a tool runs; without it the
            server is told that nobody answers. An async function runs in the event loop that
            entered the server.
        kept: A library that ``keep_tools`` filled. Its tools of this server are approved and
            offered at once, and the first call connects; a tool that changed since then fails.

    Raises:
        MissingExtraError: The package ``mcp`` is absent.
        UsageError: The name cannot prefix those of tools, or an option has no such value.

    Example:
        >>> server = McpServer.stdio("python", ["server.py"], name="files")
        >>> server
        McpServer('files', new, 0 tools)
    """

    def __init__(
        self,
        place: Place,
        *,
        name: str = "mcp",
        approval: Approval = "destructive",
        trust_annotations: bool = False,
        new_tools: NewTools = "hold",
        approved: Mapping[str, str] | None = None,
        limits: McpLimits | None = None,
        protocol: str = "auto",
        elicit: Elicitor | None = None,
        kept: Library | None = None,
    ) -> None:
        require_sdk("an MCP server")
        for option, value, known in (
            ("approval", approval, get_args(Approval)),
            ("new_tools", new_tools, get_args(NewTools)),
        ):
            if value not in known:
                raise UsageError(f"{option} is {value!r}; use one of {list(known)}")
        self.name = checked_server_name(name)
        self._limits = limits or McpLimits()
        self._approval = approval
        self._policy = ImportPolicy(
            server=name,
            trust_annotations=trust_annotations,
            new_tools=new_tools,
            limits=self._limits,
        )
        in_library = {} if kept is None else approved_in(kept, name)
        self._memory = Memory(known={**in_library, **(approved or {})})
        self._sorting = threading.Lock()  # servers announce changes in the connection's thread
        self._raw = RawListing()
        self._offered = OfferedTools(name)
        self._listing = Listing()
        self._place = place
        self._protocol = protocol
        self._elicit = elicit
        self._kept = kept
        self._offer_kept()
        self._connection = self._new_connection()

    def _new_connection(self, loop: asyncio.AbstractEventLoop | None = None) -> Connection:
        elicitation = self._elicit and ElicitationHandler(
            server=self.name, elicit=self._elicit, limits=self._limits, loop=loop
        )
        return Connection(
            waits=self._kept is not None,
            elicitation=elicitation,
            name=self.name,
            place=self._place,
            limits=self._limits,
            listed=self._listed,
            protocol=self._protocol,
        )

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Iterable[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        **options: Any,
    ) -> Self:
        """A server that is a program: it is started, and stopped when we leave.

        Args:
            command: The program.
            args: Its arguments.
            env: Its environment variables beyond ``PATH``, ``HOME`` and the like; ours are not
                handed on.
            cwd: Its working directory.
            options: Those of ``McpServer``.
        """
        place = StdioPlace(command=command, args=tuple(args), env=dict(env or {}), cwd=cwd)
        return cls(place, **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: httpx2.Auth | None = None,
        **options: Any,
    ) -> Self:
        """A server that speaks streamable HTTP.

        Args:
            url: Its address, such as ``http://localhost:8000/mcp``.
            headers: Sent with each request, such as ``Authorization``.
            auth: Signs requests, such as the official package's ``OAuthClientProvider``.
            options: Those of ``McpServer``.
        """
        return cls(HttpPlace(url=url, headers=dict(headers or {}), auth=auth), **options)

    @classmethod
    def in_process(cls, server: Any, **options: Any) -> Self:
        """A server object of the official library, or a transport; for tests and for composing.

        It runs in the connection's thread.

        Args:
            server: What the official ``Client`` takes.
            options: Those of ``McpServer``.
        """
        return cls(InProcessPlace(server=server), **options)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that are offered now."""
        return tuple(self._offered.library)

    @property
    def library(self) -> Library:
        """The same as a library; another object after each change, and only then."""
        return self._offered.library

    @property
    def listing(self) -> Listing:
        """The result of the server's newest listing: offered, held, and notes."""
        return self._listing

    @property
    def held(self) -> tuple[HeldTool, ...]:
        """The tools that are not offered, each with reasons."""
        return self._listing.held

    @property
    def fingerprints(self) -> dict[str, str]:
        """What has been accepted, by tool name; keep it and pass it as ``approved``."""
        return dict(self._memory.known)

    @property
    def state(self) -> str:
        """``new``, ``connected``, ``lost`` (until a call reconnects) or ``closed``."""
        return self._connection.state

    @property
    def connects(self) -> int:
        """The number of connections since it was entered."""
        return self._connection.connects

    def approve(self, *names: str) -> None:
        """Offer held tools as they are now; runs that start afterwards have them.

        Args:
            names: What the server calls them; without any, all that are held for nothing but that
                nobody has approved them (``unapproved``).

        Raises:
            ToolNotFoundError: No tool of that name is held.
            McpError: It cannot be used as it is, or is another by now.
        """
        for name in names or [one.name for one in self.held if one.code == "unapproved"]:
            held = self._listing.holding(name)
            if held is None:
                near = nearest_names(name, [one.name for one in self.held])
                raise ToolNotFoundError(name, nearest=near, version=0)
            if held.tool is None or not held.is_approvable:
                raise McpError(f"{held} It cannot be approved.", server=self.name)
            self._memory.known[name] = held.tool.fingerprint
        self._sort()

    async def refresh(self) -> Listing:
        """List the tools again. Servers that announce changes make this unnecessary.

        Raises:
            McpConnectionError: The server cannot be reached.
        """
        await outcome_of(self._connection.relist())
        return self._listing

    async def route(self, asked: RouteRequest) -> Route:
        """The library of a run with this server's newest tools, as the router of an ``Agent``."""
        return Route(library=self.beside(asked.library))

    def beside(self, library: Library) -> Library:
        """A library with this server's newest tools, under names that look like no other."""
        return self._offered.beside(library)

    def prefix_all(self) -> None:
        """Offer every tool as ``name__tool`` from now on."""
        self._policy = replace(self._policy, prefix=True)
        if self.connects:
            self._sort()
        else:
            self._offer_kept()

    def _offer_kept(self) -> None:
        """Offer what is kept, before anybody connects."""
        own = [
            one.definition
            for one in self._kept or ()
            if _server_of(one.definition) == f"{MCP_PREFIX}{self.name}"
        ]
        names = [_original_name(one) for one in own]
        self._offered.take(
            self._tool(name, replace(one, name=self._policy.offered_name(name)))
            for name, one in zip(names, own, strict=True)
        )

    async def __aenter__(self) -> Self:
        self._renew(asyncio.get_running_loop())
        try:
            await outcome_of(self._connection.start())
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._connection.stop()
        await asyncio.to_thread(self._connection.join)

    def __enter__(self) -> Self:
        self._renew()
        try:
            self._connection.start().result()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.stop()
        self._connection.join()

    def _renew(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        if self._connection.state == "closed" or loop is not None:
            self._connection = self._new_connection(loop)

    def _listed(self, raw: RawListing) -> None:
        self._raw = raw
        before = {held.name for held in self.held}
        self._sort()
        waiting = [held.name for held in self.held if held.is_approvable]
        if not before.issuperset(waiting):
            _logger.warning(
                "%d tools of the MCP server %r wait for approval and are not offered: %s. Look at "
                "server.held, then server.approve(...); or keep approvals with 'agentkit tools "
                "approve'",
                len(waiting),
                self.name,
                ", ".join(map(shown, waiting[:10])),
            )

    def _sort(self) -> None:
        with self._sorting:
            listing = import_listing(self._raw, self._policy, self._memory)
            self._memory.known.update(listing.fingerprints)
            self._listing = listing
            self._offered.take(self._tool(one.name, one.definition, one) for one in listing.tools)

    def _tool(
        self, name: str, definition: ToolDefinition, listed: ListedTool | None = None
    ) -> Tool:
        """A tool that calls the server; one that is kept calls what is listed at that time."""

        async def call(**arguments: Any) -> Any:
            async def work(client: Client) -> Any:
                tool = listed or self._listed_as_kept(name)
                return await call_tool(
                    client, tool, arguments, server=self.name, limits=self._limits
                )

            seconds = self._limits.call_seconds
            try:  # the connection's thread may be busy, or unable to write
                async with asyncio.timeout(seconds):
                    return await outcome_of(self._connection.submit(work))
            except TimeoutError as error:
                message = f"{self.name!r} did not answer within {seconds:g} seconds"
                raise TimeoutError(message) from error

        needs = {"always": True, "never": False, "destructive": None}[self._approval]
        return Tool(
            definition=definition,
            function=call,
            is_async=True,
            timeout_seconds=self._limits.call_seconds,
            requires_approval=needs,
        )

    def _listed_as_kept(self, name: str) -> ListedTool:
        """The tool as the server lists it now, which is what was approved.

        Raises:
            ToolFailed: It is not.
        """
        found = next((tool for tool in self._listing.tools if tool.name == name), None)
        if found is None:
            held = self._listing.holding(name)
            why = "; ".join(held.reasons) if held else "the server no longer lists it"
            raise ToolFailed(f"{name!r} of the MCP server {self.name!r} is not offered: {why}")
        return found

    def __repr__(self) -> str:
        return f"McpServer({self.name!r}, {self.state}, {len(self.tools)} tools)"


class McpServers:
    """Several servers, all of whose tools are offered as ``server__tool``.

    So no tool takes the place of another, and none changes its name when a server goes away.

    Args:
        servers: The servers, each with a name of its own.

    Raises:
        UsageError: Two servers have one name, or names that differ in case only.

    Example:
        >>> both = McpServers(
        ...     McpServer.stdio("python", ["files.py"], name="files"),
        ...     McpServer.http("http://localhost:8000/mcp", name="orders"),
        ... )
        >>> [server.name for server in both.servers]
        ['files', 'orders']
    """

    def __init__(self, *servers: McpServer) -> None:
        for name in _repeated(look_of(server.name) for server in servers):
            raise UsageError(
                f"several MCP servers are called {name!r}; give each a name: name='files'"
            )
        self.servers = servers
        for server in servers:
            server.prefix_all()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that are offered now, server by server."""
        return tuple(self.library)

    @property
    def library(self) -> Library:
        """The same as a library."""
        return self._beside(Library())

    @property
    def held(self) -> Mapping[str, tuple[HeldTool, ...]]:
        """The tools that are not offered, by server."""
        return {server.name: server.held for server in self.servers}

    async def route(self, asked: RouteRequest) -> Route:
        """The library of a run with the newest tools of all servers, as an ``Agent``'s router."""
        return Route(library=self._beside(asked.library))

    def _beside(self, library: Library) -> Library:
        for server in self.servers:
            library = server.beside(library)
        return library

    async def __aenter__(self) -> Self:
        entered = await asyncio.gather(
            *(server.__aenter__() for server in self.servers), return_exceptions=True
        )
        failed = [outcome for outcome in entered if isinstance(outcome, BaseException)]
        if failed:
            await self.__aexit__()
            raise failed[0]
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(server.__aexit__() for server in self.servers))

    def __enter__(self) -> Self:
        try:
            for server in self.servers:
                server.__enter__()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.__exit__()


def _repeated(names: Iterable[str]) -> dict[str, int]:
    return {name: count for name, count in Counter(names).items() if count > 1}


# --- the tools of servers in a store, where their words can evolve --------------------------------


def keep_tools(manager: ToolManager, tools: Iterable[Tool]) -> int:
    """Write the definitions of a server's tools into a store, as the Tool Manager's import.

    A tool whose server says what it said before keeps the words that it evolved to. One whose new
    text was approved gets that.

    Args:
        manager: Writes.
        tools: The offered tools of servers.

    Returns:
        The library version afterwards.

    Raises:
        UsageError: The library has another tool of that name, which is not of that server.
        StoreError: The store failed, or other writers were faster every time.
    """
    definitions = [tool.definition for tool in tools]

    def build(library: Library) -> LibraryChange | None:
        new = tuple(one for one in definitions if not _is_kept(one, library))
        if not new:
            return None
        identity = f"mcp-{uuid.uuid4().hex}"
        return LibraryChange(proposal_id=identity, upserts=new, reason="listed by an MCP server")

    return manager.edit(build, operation="import")


def approved_in(library: Library, server: str) -> dict[str, str]:
    """What a library knows of a server's tools, to be passed to ``McpServer`` as ``approved``.

    Args:
        library: A library that ``keep_tools`` filled.
        server: The server's name.
    """
    known: dict[str, str] = {}
    for tool in library:
        found = reference_fingerprint(tool.definition)
        if found is not None and _server_of(tool.definition) == f"{MCP_PREFIX}{server}":
            known[_original_name(tool.definition)] = found
    return known


def _is_kept(definition: ToolDefinition, library: Library) -> bool:
    known = library.get(definition.name)
    if known is None:
        return False
    if _server_of(known.definition) != _server_of(definition):
        raise UsageError(
            f"the library has a tool {definition.name!r} that is not of this MCP server; offer the "
            "server's tools under its own name, as McpServers(server) does"
        )
    return reference_fingerprint(known.definition) == reference_fingerprint(definition)


def _original_name(definition: ToolDefinition) -> str:
    """What the server calls a tool."""
    return definition.origin.original_name or definition.name


def _server_of(definition: ToolDefinition) -> str:
    """A definition's reference, without the fingerprint."""
    return definition.origin.reference.partition("#")[0] if definition.origin.kind == "mcp" else ""
