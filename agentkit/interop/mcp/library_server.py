"""``LibraryServer``: a library as an MCP server, on the official server library."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit._version import __version__
from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import Execution
from agentkit.agent.session import LibraryProvider, new_episode_id
from agentkit.agent.types import Approval, Approver, ToolPolicy
from agentkit.episodes.labels import ANONYMOUS
from agentkit.errors import AgentKitError, ReadingLimitError, StoreUnavailableError
from agentkit.interop.mcp.guard import HOLDER, Guard, KeyHolder
from agentkit.interop.mcp.listing import require_sdk
from agentkit.interop.mcp.serving import (
    CallRunner,
    Exposure,
    ask_client,
    call_record,
    can_ask,
    for_client,
    text_record,
)
from agentkit.library.code_binding import CodeBinding
from agentkit.library.library import Library
from agentkit.library.store import SelfRefreshing, Store
from agentkit.messages import check_sent
from agentkit.tools.invocation import DepsFactory, is_tool_error, made_deps
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import CallToolRequestParams, PaginatedRequestParams
    from starlette.applications import Starlette

_logger = logging.getLogger(__name__)
_PAGE = 250  # clients over HTTP take events of a megabyte
_POLL_SECONDS = 1.0
_MOST_SESSIONS = 1_024
_IDLE_SECONDS = 600.0
_MOST_WAITING = 64
"""Calls of one key that wait for a person at the same time."""


class LibraryServer:
    """The active tools of a library, composites included, for any MCP client.

    Args:
        source: A store, whose newest library is served and which keeps an episode of every call;
            or a ``Library``, which then never changes.
        tools: Tools in code, bound to the definitions of the same name, and registered in a store
            that does not know them (``agentkit.library.code_binding``). What has no code here is
            not listed.
        pin: A version of the store's library that is served; None for the newest.
        frozen: Refuse to start where the code and the store's library differ.
        name: What the server calls itself.
        approve: Decides here about tools that need approval. Without it they are listed only to
            clients that can ask their person, who is then asked for each call.
        timeout_seconds: Longest run of a call, unless the tool says otherwise.
        expose_errors: Show clients the text of every exception of a tool, for development;
            otherwise they read its class and an id that is also in the log.
        poll_seconds: How often the store is asked for a newer library.
        deps_factory: Creates ``RunContext.deps`` for tools from the request's context in
            the official library; sync or async.

    Raises:
        MissingExtraError: The package ``mcp`` is absent.

    Example:
        >>> from agentkit import Library, tool
        >>> @tool
        ... def add(a: int, b: int) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> server = LibraryServer(Library([add]))
        >>> list(server.exposure.open), server.exposure.hidden
        (['add'], {})
    """

    def __init__(
        self,
        source: Store | Library,
        *,
        tools: Iterable[Tool] = (),
        pin: int | None = None,
        frozen: bool = False,
        name: str = "agentkit",
        approve: Approver | None = None,
        timeout_seconds: float = 60.0,
        expose_errors: bool = False,
        poll_seconds: float = _POLL_SECONDS,
        deps_factory: DepsFactory | None = None,
    ) -> None:
        require_sdk("serving MCP")
        library = source if isinstance(source, Library) else None
        store = None if isinstance(source, Library) else source
        self._name = name
        self._expose_errors = expose_errors
        self._approve = approve
        self._poll_seconds = poll_seconds
        self._deps_factory = deps_factory
        self._libraries = LibraryProvider(
            store=store, library=library, tools=tuple(tools), pin=pin, frozen=frozen
        )
        queue = EpisodeQueue(store, on_failure="refuse_writes")
        policy = ToolPolicy(timeout_seconds=timeout_seconds, expose_errors=expose_errors)
        execution = Execution(policy=policy, queue=queue)
        self._runner = CallRunner(queue=queue, execution=execution)
        self._exposure = self._exposed(self._libraries.current)
        self._listeners = _Listeners()
        self._waiting: Counter[str] = Counter()
        self._store = store

    @property
    def exposure(self) -> Exposure:
        """The tools that clients see now."""
        return self._exposure

    @property
    def binding(self) -> CodeBinding:
        """The result of binding the code of ``tools`` to the library, with notes for people."""
        return self._libraries.binding

    @property
    def hidden(self) -> Mapping[str, str]:
        """Why a tool cannot run here, in a sentence, by its name."""
        return self._exposure.hidden

    def _exposed(self, library: Library) -> Exposure:
        return Exposure(library=library, asks_host=self._approve is not None)

    async def refresh(self) -> bool:
        """Take up the newest library of the store, and tell clients when there is one.

        Returns:
            Whether the library changed.
        """
        return await self._show(await asyncio.to_thread(self._libraries.refresh))

    async def _show(self, newest: Library) -> bool:
        if newest is self._exposure.library:
            return False
        self._exposure = self._exposed(newest)
        await self._listeners.tools_changed()
        return True

    def sdk_server(self) -> Server[Any]:
        """The server object of the official library; serve it over any of its transports."""
        from mcp.server import Server
        from mcp_types import NotificationParams

        server: Server[Any] = Server(
            self._name,
            version=__version__,
            lifespan=self._lifespan,
            on_list_tools=_guarded(self._list_tools),
            on_call_tool=_guarded(self._call_tool),
            on_subscriptions_listen=self._listeners.listen,
        )
        server.add_notification_handler(
            "notifications/initialized", NotificationParams, self._greeted
        )
        return server

    def http_app(
        self, *, host: str = "127.0.0.1", path: str = "/mcp", holder: KeyHolder | None = None
    ) -> Starlette:
        """An ASGI application that speaks streamable HTTP; ``GET /healthz`` says that it lives.

        Args:
            host: Where it will listen; on loopback, requests for other host names are refused.
            path: The path that clients connect to.
            holder: Returns the name of a bearer key's holder, None for an unknown key, as
                ``agentkit.server.Keys(...).holder`` does. Without it everybody is admitted.
        """
        server = self.sdk_server()
        app = server.streamable_http_app(host=host, streamable_http_path=path)
        manager = server.session_manager
        manager.max_sessions = _MOST_SESSIONS
        manager.session_idle_timeout = _IDLE_SECONDS
        open_sessions = manager._server_instances  # noqa: SLF001 - it counts them for nobody else
        share = _MOST_SESSIONS // 2
        app.add_middleware(Guard, holder=holder, open_sessions=open_sessions, share=share)
        return app

    async def drain(self, seconds: float) -> None:
        """Wait until no call runs, so that a server can stop; calls that take longer go on."""
        await self._runner.idle(seconds)

    async def serve_stdio(self) -> None:
        """Serve one client over this process's standard input and output, until it hangs up."""
        from mcp.server.lowlevel.server import NotificationOptions
        from mcp.server.stdio import stdio_server

        server = self.sdk_server()
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        async with stdio_server() as (read, write):
            await server.run(read, write, options)

    @asynccontextmanager
    async def _lifespan(self, _: Server[Any]) -> AsyncIterator[None]:
        watch = None if self._store is None else asyncio.create_task(self._watch())
        try:
            yield
        finally:
            if watch is not None:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)

    async def _watch(self) -> None:
        source: object = self._store
        looks_itself = isinstance(source, SelfRefreshing)  # as often as configured
        while True:
            await asyncio.sleep(self._poll_seconds)
            try:
                await (self._show(self._libraries.current) if looks_itself else self.refresh())
            except (AgentKitError, OSError) as error:
                _logger.warning(
                    "the store could not be asked for a newer library: %s",
                    episodes.error_line(error),
                )

    async def _greeted(
        self, context: ServerRequestContext[Any, Any], params: object | None
    ) -> None:
        del params
        self._listeners.add(context.session)

    async def _list_tools(
        self, context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> Any:
        exposure = self._exposure
        visible = exposure.runnable if can_ask(context) else exposure.open
        start = _offset(None if params is None else params.cursor, exposure)
        names = list(visible)
        records = [exposure.record(name) for name in names[start : start + _PAGE]]
        following = start + _PAGE
        return _listing(records, _cursor(following, exposure) if following < len(names) else None)

    async def _call_tool(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> Any:
        name, arguments = params.name, params.arguments or {}
        try:
            self._libraries.for_run()
        except StoreUnavailableError as error:
            _logger.warning("a call of %s is refused: %s", name, episodes.error_line(error))
            return text_record("The tools may be out of date, and their store is away; try later.")
        exposure = self._exposure
        tool = exposure.runnable.get(name)
        if tool is None:
            near = ", ".join(self._callable_near(name))
            return text_record(f"There is no tool {name!r}." + f" Similar: {near}." * bool(near))
        try:
            check_sent(arguments)
        except ReadingLimitError as error:
            return text_record(f"The arguments for {name} are not taken: {error}.")
        approve = self._approve
        if tool.needs_approval and approve is None:
            with self._asking(_user(context)) as may_ask:
                if not may_ask:
                    return text_record(
                        "Too many calls wait for a yes; answer them, then try again."
                    )
                decision = await ask_client(context, params, name, arguments)
            if not isinstance(decision, Approval):
                return decision
            approve = partial(_decided, decision)
        result = await self._runner.run(
            tool.name,
            arguments,
            library=exposure.library,
            approve=approve,
            client=_client(context),
            user=_user(context),
            deps=await made_deps(self._deps_factory, context),
        )
        shown = result if self._expose_errors else for_client(result)
        return call_record(shown, tool.definition)

    @contextmanager
    def _asking(self, who: str) -> Iterator[bool]:
        """Whether one more call of a key may wait for a person; it counts as long as it does."""
        may_ask = self._waiting[who] < _MOST_WAITING
        self._waiting[who] += may_ask
        try:
            yield may_ask
        finally:
            self._waiting[who] -= may_ask

    def _callable_near(self, name: str) -> list[str]:
        """Names like this one that a client can call; the library has others, without code."""
        near = self._exposure.library.nearest(name)
        return [one for one in near if one in self._exposure.runnable]


class _Listeners:
    """Knows who wants to hear of changes.

    Clients of 2026-07-28 and later listen to a stream that the official library serves; earlier
    ones get a notification on their connection.
    """

    def __init__(self) -> None:
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self._bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[int, ServerSession] = OrderedDict()
        self.listen: Any = ListenHandler(self._bus)

    def add(self, session: ServerSession) -> None:
        """Remember a client that has shaken hands; of very many the oldest is forgotten."""
        self._sessions[id(session)] = session
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    async def tools_changed(self) -> None:
        """Tell everybody. A client that is gone is forgotten."""
        from mcp.shared.subscriptions import ToolsListChanged

        await self._bus.publish(ToolsListChanged())
        for key, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
            except Exception as error:  # noqa: BLE001 - whatever a closed connection raises
                _logger.info(
                    "a client is gone and hears of no more changes: %s", episodes.error_line(error)
                )
                self._sessions.pop(key, None)


def _guarded(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A handler whose unexpected errors are logged; the official library would send their text."""

    async def answer(context: Any, params: Any) -> Any:
        from mcp import MCPError
        from mcp_types import INTERNAL_ERROR

        try:
            return await handler(context, params)
        except MCPError:
            raise
        except BaseException as error:
            if not is_tool_error(error):
                raise
            incident = new_episode_id()
            episodes.log_failure(_logger, error, "incident %s", incident)
            message = f"something unexpected went wrong; incident {incident} in the server's log"
            raise MCPError(INTERNAL_ERROR, message) from None

    return answer


def _decided(decision: Approval, *_: object) -> Approval:
    return decision


def _client(context: ServerRequestContext[Any, Any]) -> str:
    """The client's own name; shortened, because it may say anything."""
    known = context.session.client_params
    return "unknown" if known is None else known.client_info.name[:80] or "unknown"


def _user(context: ServerRequestContext[Any, Any]) -> str:
    """The holder of the key that came with the request; without one everybody is the same user."""
    scope: Mapping[str, Any] = getattr(context.request, "scope", {})
    return scope.get(HOLDER) or ANONYMOUS


def _listing(records: list[dict[str, Any]], cursor: str | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "tools": records,
        "ttlMs": 0,
        "cacheScope": "private",
        "resultType": "complete",
    }
    return answer if cursor is None else answer | {"nextCursor": cursor}


def _cursor(start: int, exposure: Exposure) -> str:
    return f"{exposure.library.version}:{start}"


def _offset(cursor: str | None, exposure: Exposure) -> int:
    """The start of a page.

    Raises:
        MCPError: The cursor is not ours, or of a library that has changed since.
    """
    from mcp import MCPError
    from mcp_types import INVALID_PARAMS

    if cursor is None:
        return 0
    version, _, start = cursor.partition(":")
    if version != str(exposure.library.version) or not (start.isascii() and start.isdigit()):
        raise MCPError(INVALID_PARAMS, "the cursor is of another list of tools; list them again")
    return int(start)
