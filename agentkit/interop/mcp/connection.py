"""One server's connection: an event loop in a thread of its own, and one task that owns it.

The official client is made of task groups, which must be entered and left by the same task. Agents
run in any task of any event loop (``run_sync`` makes a new one each time). So the client lives in
its own thread, where one task connects, waits until the connection is lost, leaves it and
reconnects; calls come from any task and their answers go back to where they came from.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.errors import McpConnectionError
from agentkit.interop.mcp.elicitation import ElicitationHandler
from agentkit.interop.mcp.listing import McpLimits, RawListing, read_listing
from agentkit.interop.mcp.transports import Place

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

_logger = logging.getLogger(__name__)
_RELIST_SECONDS = 0.2
"""Seconds between two listings at the request of a server, at least; nine times as long as the
checks of one take, so that one that floods is not followed, and leaves the processor to others."""

_MOST_LISTENS, _LISTEN_SECONDS = 5, 1.0
"""How often, and after how many seconds, to listen again to a server that broke off."""

T = TypeVar("T")


@dataclass(kw_only=True)
class Connection:
    """Keeps a server connected.

    Attributes:
        name: What we call the server.
        place: Where it is.
        limits: How long and how often to try.
        listed: Takes a new listing; called in the connection's thread.
        protocol: What the official client calls its mode: ``auto``, ``legacy``, or a version.
        waits: Whether to connect only when something is asked for.
        elicitation: Answers the server's questions to the user; None tells it that nobody does.
        state: ``new``, ``connected``, ``lost`` (until a call reconnects) or ``closed``.
        connects: How often it was connected.
        problem: What went wrong last; empty for nothing.
    """

    name: str
    place: Place
    limits: McpLimits
    listed: Callable[[RawListing], None]
    protocol: str = "auto"
    waits: bool = False
    elicitation: ElicitationHandler | None = None
    state: str = field(init=False, default="new")
    connects: int = field(init=False, default=0)
    problem: str = field(init=False, default="")
    _thread: threading.Thread | None = field(init=False, default=None)
    _loop: asyncio.AbstractEventLoop | None = field(init=False, default=None)
    _client: Client | None = field(init=False, default=None)
    _waiting: list[asyncio.Future[Client]] = field(init=False, default_factory=list)
    """Calls that wait for a connection."""
    _first: concurrent.futures.Future[None] = field(
        init=False, default_factory=concurrent.futures.Future
    )

    def start(self) -> concurrent.futures.Future[None]:
        """Begin to connect; the future is done when that worked, or failed."""
        self._thread = threading.Thread(
            target=self._run, name=f"agentkit-mcp-{self.name}", daemon=True
        )
        self._thread.start()
        return self._first

    def stop(self) -> None:
        """Begin to hang up."""
        loop, self.state = self._loop, "closed"
        if loop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # closed between the check and the call
                loop.call_soon_threadsafe(self._stopping.set)

    def join(self) -> None:
        """Wait until the connection is closed, and the process behind it is gone."""
        if self._thread is not None:
            self._thread.join()

    def submit(self, work: Callable[[Client], Awaitable[T]]) -> concurrent.futures.Future[T]:
        """Do something with the client, in the connection's thread and the caller's context.

        Raises:
            McpConnectionError: The connection was closed, or never opened.
        """
        loop = self._loop
        if loop is None or loop.is_closed() or self.state in {"new", "closed"}:
            raise McpConnectionError(
                f"the MCP server {self.name!r} is not connected; call its tools inside "
                "'async with server:'",
                server=self.name,
            )
        context = contextvars.copy_context()
        return context.run(asyncio.run_coroutine_threadsafe, self._with_client(work), loop)

    def relist(self) -> concurrent.futures.Future[None]:
        """List the tools now."""

        async def work(client: Client) -> None:
            self.listed(await read_listing(client, self.limits))

        return self.submit(work)

    async def _with_client(self, work: Callable[[Client], Awaitable[T]]) -> T:
        client = self._client
        if client is None or self._lost.is_set():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            self._wanted.set()
            client = await waiter
        lost = self._lost
        try:
            return await work(client)
        except McpConnectionError as error:
            lost.set()  # the official client knows it before we do
            if self.problem and self.problem not in str(error):
                raise self._unreachable() from error  # it was us who hung up
            raise

    def _unreachable(self) -> McpConnectionError:
        words = self.place.last_words()
        output = f" It wrote: {words[-500:]}" if words else ""
        why = (self.problem or "it did not answer in time").rstrip(".")
        where = f" ({self.place.where})" if self.place.where else ""
        message = f"the MCP server {self.name!r}{where} cannot be reached: {why}.{output}"
        return McpConnectionError(message, server=self.name)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised where the connection is awaited
            if not self._first.done():
                self._first.set_exception(error)
            else:
                message = "the connection to the MCP server %r ended"
                episodes.log_failure(_logger, error, message, self.name)
        finally:
            self.state = "closed"

    async def _serve(self) -> None:
        """The task that owns the client, from the first connection to the last."""
        self._loop = asyncio.get_running_loop()
        self._stopping, self._wanted = asyncio.Event(), asyncio.Event()
        self._relist, self._lost = asyncio.Event(), asyncio.Event()
        if self.waits:
            self.state = "lost"
            self._first.set_result(None)
            await self._either(self._wanted)
        while not self._stopping.is_set():
            self._wanted.clear()
            await self._once()
            if not self._first.done():  # the first attempt failed, and is the only one
                self._first.set_exception(self._unreachable())
                return
            if self.state != "closed":
                self.state = "lost"
            await self._either(self._wanted)  # a call reconnects
        self._resolve_waiting(None)

    def _resolve_waiting(self, client: Client | None) -> None:
        """Let calls go on, or fail."""
        waiting, self._waiting = self._waiting, []
        for waiter in (one for one in waiting if not one.done()):
            if client is None:
                waiter.set_exception(self._unreachable())
            else:
                waiter.set_result(client)

    async def _either(self, *events: asyncio.Event, seconds: float | None = None) -> None:
        """Wait for one of the events, for the end of the connection, or for some time."""
        tasks = {asyncio.create_task(event.wait()) for event in (*events, self._stopping)}
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    async def _once(self) -> None:
        """Connect, stay connected as long as that lasts, and leave."""
        self.problem, before = "", self.connects
        try:
            async with self._open() as client:
                self._client = client
                self.connects += 1
                if self.state != "closed":
                    self.state = "connected"
                if not self._first.done():
                    self._first.set_result(None)
                self._resolve_waiting(client)
                await self._stay(client)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - becomes the callers' error
            self.problem = self.problem or describe(error)
            _logger.info("MCP server %r: %s", self.name, episodes.log_text(self.problem))
        finally:
            self._client = None
        if self.connects == before:
            self._resolve_waiting(None)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[Client]:
        from mcp import Client

        self._lost = lost = asyncio.Event()

        def ended(why: str) -> None:
            self.problem = self.problem or why
            lost.set()

        client = Client(
            self.place.target(ended, self.limits),
            message_handler=self._heard,
            cache=None,
            mode=self.protocol,
            elicitation_callback=self.elicitation,
        )
        try:
            async with asyncio.timeout(self.limits.connect_seconds):
                await client.__aenter__()
        except TimeoutError as error:
            message = f"it did not answer within {self.limits.connect_seconds:g} seconds"
            raise TimeoutError(message) from error
        # Answers are held against their schemas in `reading`, within a bound of steps.
        client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
        try:
            self.listed(await read_listing(client, self.limits))
            yield client
        finally:
            await client.__aexit__(None, None, None)

    async def _stay(self, client: Client) -> None:
        """Until the connection is lost or closed, list again whenever the server says so."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while not (self._lost.is_set() or self._stopping.is_set()):
                await self._either(self._lost, self._relist)
                if self._relist.is_set() and not self._lost.is_set():
                    self._relist.clear()
                    began = time.thread_time()
                    await self._list_again(client)
                    spent = time.thread_time() - began  # on its checks
                    await self._either(self._lost, seconds=max(_RELIST_SECONDS, 9 * spent))
            if self._lost.is_set():
                self.problem = self.problem or "it hung up"
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _list_again(self, client: Client) -> None:
        """List at the server's word; what it lists wrongly leaves the tools as they were."""
        from mcp import MCPError
        from pydantic import ValidationError

        try:
            self.listed(await read_listing(client, self.limits))
        except (ValidationError, MCPError, TimeoutError) as error:
            line = episodes.error_line(error)
            _logger.warning("MCP server %r: its new listing is not valid: %s", self.name, line)

    async def _heard(self, message: Any) -> None:
        """A notification of a server of the time before ``subscriptions/listen``."""
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._relist.set()

    async def _listen(self, client: Client) -> None:
        """Hear of changes from servers of 2026-07-28 and later, if they tell."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        for _ in range(_MOST_LISTENS):
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._relist.set()
            except SubscriptionLost as error:
                _logger.debug("MCP server %r: %s", self.name, episodes.error_line(error))
            except (ListenNotSupportedError, MCPError, TimeoutError) as error:
                line = episodes.error_line(error)
                _logger.debug("MCP server %r announces no changes: %s", self.name, line)
                return
            await asyncio.sleep(_LISTEN_SECONDS)
            self._relist.set()  # for what was said while nobody listened


async def _unchecked(name: str, result: CallToolResult) -> None:
    """The official client is unbounded here: a server could stop the whole process."""


def describe(error: BaseException) -> str:
    """The cause of an error, without the groups that task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error).strip()
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


async def outcome_of(future: concurrent.futures.Future[T]) -> T:
    """Await what happens in the connection's thread; cancelling the wait cancels the work."""
    return await asyncio.wrap_future(future)
