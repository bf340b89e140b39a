"""The endpoints of a library server: the head, and pages of what never changes again."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar
from urllib.parse import parse_qs

from agentkit.errors import AgentKitError
from agentkit.library.remote.wire import (
    CHANGES_PATH,
    EVENTS_PATH,
    HEAD_PATH,
    HISTORY_PATH,
    LINES,
    LONGEST_WAIT_SECONDS,
    TOOLS_PATH,
)
from agentkit.server.library.notifier import ChangeNotifier, KnownHead
from agentkit.server.library.pages import Body, Pages
from agentkit.server.limits import RateLimiter, ServerLimits, Slots
from agentkit.server.metrics import LibraryMeasures
from agentkit.server.middleware import (
    SCOPE_KEY,
    Exchange,
    Header,
    Problem,
    Scope,
    Send,
    invalid,
    stopping,
)
from agentkit.server.runs import MinuteLog, Receive, Runs

_LOG = logging.getLogger(__name__)

T = TypeVar("T")
Query: TypeAlias = Mapping[str, list[str]]
Read: TypeAlias = Callable[[], Body]

_MOST_WAITING = 1024
_MOST_DIGITS = 18
_DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_FOREVER = "max-age=31536000, immutable"
CLIENT_LEFT = 499
"""Status in the log for a client that left before it was answered."""


class LibraryEndpoints:
    """Answers from one store. One object for all paths; an ASGI application behind ``Front``.

    Args:
        notifier: Knows what is newest.
        pages: Makes what never changes again.
        threads: Where the store is read.
        runs: What is under way.
        measures: Where things are counted.
        limits: What is taken on.
        is_private: Whether only clients with a key may have it, so that no shared cache keeps it.
    """

    def __init__(
        self,
        *,
        notifier: ChangeNotifier,
        pages: Pages,
        threads: ThreadPoolExecutor,
        runs: Runs,
        measures: LibraryMeasures,
        limits: ServerLimits,
        is_private: bool,
    ) -> None:
        self._notifier = notifier
        self._pages = pages
        self._threads = threads
        self._runs = runs
        self._measures = measures
        self._limits = limits
        self._scope = "private" if is_private else "public"
        self._rates = RateLimiter(limits.requests_per_minute)
        self._log = MinuteLog(_LOG)
        self.reading = Slots(
            most=limits.max_concurrent,
            each=lambda: limits.max_concurrent_per_key or max(1, limits.max_concurrent // 4),
            seconds=limits.request_seconds,
        )
        self.waiting = Slots(
            most=_MOST_WAITING, each=lambda: _MOST_WAITING // 4, seconds=LONGEST_WAIT_SECONDS
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        exchange: Exchange = scope[SCOPE_KEY]
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        problem = stopping() if self._runs.is_draining else self._rates.refusal(exchange.key)
        if problem is None:
            with self._runs.entered():
                problem = await self._answered(exchange, query, exchange.who)
        if problem is not None:
            await exchange.answer_problem(problem)

    async def _answered(self, exchange: Exchange, query: Query, who: str) -> Problem | None:
        try:
            if exchange.path == HEAD_PATH:
                return await self._head(exchange, query, who)
            return await self._page(exchange, query, who)
        except AgentKitError as error:
            self._log.error("the store can not be read", error)
            return Problem(
                status=503,
                message="the store of the library is not available",
                code="store_unavailable",
                retry_after=5,
            )

    async def _head(self, exchange: Exchange, query: Query, who: str) -> Problem | None:
        wait = _seconds(query)
        if isinstance(wait, Problem):
            return wait
        known = _etags(exchange)
        told: KnownHead | Problem | None
        if wait and known:
            told = await self._waited(exchange, known, wait, who)
        else:
            told = await self._notifier.newest()
        if not isinstance(told, KnownHead):
            return told
        cache = (b"cache-control", f"{self._scope}, no-cache".encode())
        headers = [(b"etag", _quoted(told.etag)), cache]
        if told.etag in known:
            await _answer(exchange, 304, b"", headers)
        else:
            self._measures.bytes.add(exchange.path, by=len(told.body))
            await exchange.answer_json(told.body, headers=headers)
        return None

    async def _waited(
        self, exchange: Exchange, known: frozenset[str], seconds: float, who: str
    ) -> KnownHead | Problem | None:
        """The head once it is another one, or when the time is over."""
        taken = self.waiting.take(who)
        if taken is None:
            message = "as many clients wait for news as may wait; poll without wait instead"
            return Problem(status=429, message=message, code="too_many_waiting", retry_after=5)
        try:
            work = self._notifier.other_than(known.__contains__)
            told = await self._runs.see_through(work, receive=exchange.receive, seconds=seconds)
        finally:
            self.waiting.free(who, taken)
        match told:
            case KnownHead():
                return told
            case "disconnected":
                exchange.status = CLIENT_LEFT
                return None
            case "stopping":
                return stopping()
            case _:
                return await self._notifier.newest()

    async def _page(self, exchange: Exchange, query: Query, who: str) -> Problem | None:
        read = await self._wanted(exchange.path, query)
        if isinstance(read, Problem):
            return read
        taken = self.reading.take(who)
        if taken is None:
            return self.reading.refusal(who)
        packs = "gzip" in exchange.headers.get("accept-encoding", "")
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: _in_form(read(), packs=packs)
        )
        work.add_done_callback(
            lambda done: self._read_ended(done, who, taken)
        )  # no thread can be cut
        try:
            etag, body = await asyncio.wait_for(asyncio.shield(work), self._limits.request_seconds)
        except TimeoutError:
            message = f"reading the library took more than {self._limits.request_seconds:g} s"
            return Problem(status=504, message=message, code="timeout", retry_after=5)
        headers = [
            (b"etag", _quoted(etag)),
            (b"cache-control", f"{self._scope}, {_FOREVER}".encode()),
            (b"vary", b"accept-encoding"),
        ]
        if etag in _etags(exchange):
            await _answer(exchange, 304, b"", headers)
            return None
        if packs:
            headers.append((b"content-encoding", b"gzip"))
        self._measures.bytes.add(exchange.path, by=len(body))
        await exchange.answer(200, body, LINES.encode(), headers)
        return None

    def _read_ended(self, done: asyncio.Future[tuple[str, bytes]], who: str, taken: float) -> None:
        self.reading.free(who, taken)
        if not done.cancelled() and (error := done.exception()) is not None:
            _LOG.info("a reading failed: %s", error)  # perhaps nobody waits for it any more

    async def _wanted(self, path: str, query: Query) -> Read | Problem:
        """What a request is for. Nothing is asked for that is still to come: it could change."""
        after, upto = _number(query, "after", default=0), _number(query, "upto")
        if path == TOOLS_PATH:
            upto = _number(query, "version")
        if isinstance(after, Problem):
            return after
        if isinstance(upto, Problem):
            return upto
        told = self._notifier.known
        if told is None or not _has(told, path, upto):
            told = await self._notifier.newest()
        if not _has(told, path, upto):
            what = f"event {upto}" if path == EVENTS_PATH else f"library version {upto}"
            return Problem(status=404, message=f"there is no {what}", code="not_found")
        if path == HISTORY_PATH and "tool" not in query:
            return invalid("name a tool: ?tool=NAME", param="tool")
        return self._read(path, query, after, upto)

    def _read(self, path: str, query: Query, after: int, upto: int) -> Read:
        pages = self._pages
        match path:
            case _ if path == TOOLS_PATH:
                return lambda: pages.tools(upto, after)
            case _ if path == CHANGES_PATH:
                return lambda: pages.changes(after, upto)
            case _ if path == EVENTS_PATH:
                return lambda: pages.events(after, upto)
            case _:
                return lambda: pages.history(query["tool"][0], after, upto)


def _in_form(body: Body, *, packs: bool) -> tuple[str, bytes]:
    """The ETag and the bytes; each form has an ETag of its own, as a strong one must."""
    return (f"{body.etag}-gzip", body.packed) if packs else (body.etag, body.plain)


async def _answer(exchange: Exchange, status: int, body: bytes, headers: list[Header]) -> None:
    await exchange.send({"type": "http.response.start", "status": status, "headers": headers})
    await exchange.send({"type": "http.response.body", "body": body})


def _has(told: KnownHead, path: str, upto: int) -> bool:
    return upto <= told.head.events.sequence if path == EVENTS_PATH else told.head.has(upto)


def _number(query: Query, name: str, *, default: int | None = None) -> int | Problem:
    given = query.get(name, [""])[0]
    if not given and default is not None:
        return default
    if given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS:
        return int(given)
    return invalid(f"?{name}= takes a whole number from 0", param=name)


def _seconds(query: Query) -> float | Problem:
    """How long a client wants to wait at most; never longer than the server likes."""
    given = query.get("wait", ["0"])[0]
    if not _DECIMAL.fullmatch(given):
        return invalid("?wait= takes seconds, such as 25 or 0.5", param="wait")
    return min(float(given), LONGEST_WAIT_SECONDS)


def _etags(exchange: Exchange) -> frozenset[str]:
    """What the client has; a proxy that compressed it may have made the ETags weak."""
    given = exchange.headers.get("if-none-match", "")
    return frozenset(one.strip().removeprefix("W/").strip('"') for one in given.split(",")) - {""}


def _quoted(etag: str) -> bytes:
    return f'"{etag}"'.encode()
