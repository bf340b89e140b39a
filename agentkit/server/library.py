"""The library of a store over HTTP, read-only: ``create_library_app`` and its endpoints."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
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
    Head,
    encode,
)
from agentkit.library.store import Store
from agentkit.server.app import assemble
from agentkit.server.keys import Keys
from agentkit.server.library_pages import Body, LibraryReader, Pages
from agentkit.server.limits import RateLimiter, ServerLimits, Slots
from agentkit.server.metrics import Counter, Gauge, Metrics
from agentkit.server.middleware import (
    SCOPE_KEY,
    ClientLeftError,
    Exchange,
    Header,
    Receive,
    RequestError,
    Scope,
    Send,
    stopping,
    store_unavailable,
)
from agentkit.server.runs import MinuteLog, Probe, Runs

if TYPE_CHECKING:
    from starlette.applications import Starlette

_LOG = logging.getLogger(__name__)

Query: TypeAlias = Mapping[str, list[str]]
Read: TypeAlias = Callable[[], Body]

_PATHS = (HEAD_PATH, TOOLS_PATH, CHANGES_PATH, EVENTS_PATH, HISTORY_PATH)
_MOST_WAITING = 1024
_MOST_DIGITS = 18
_DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_JSON = b"application/json"
_FOREVER = "max-age=31536000, immutable"
_POLL_SECONDS = 0.25
"""How often the store is looked at while somebody waits."""


def create_library_app(
    store: Store,
    *,
    keys: Keys | None = None,
    limits: ServerLimits = ServerLimits(),  # noqa: B008 - immutable
    open_metrics: bool = False,
    allowed_hosts: Sequence[str] | None = None,
    close_store: bool = False,
) -> Starlette:
    """The library of a store behind HTTP, read-only, as an ASGI application.

    ========================  ==============================================================
    GET /library/v1/head      what is newest; with ``?wait=25``, as soon as it is something else
    GET /library/v1/tools     the definitions of one version
    GET /library/v1/changes   what made the versions behind one
    GET /library/v1/events    the chain of events
    GET /library/v1/history   the revisions of one tool
    GET /healthz              the process lives
    GET /readyz               the store answers and no stop was asked for
    GET /metrics              numbers in Prometheus' text format
    ========================  ==============================================================

    ``agentkit.library.remote.RemoteStore`` is the client. Episodes are not served.

    Args:
        store: Where definitions and events are kept.
        keys: Who may read; None lets everybody in.
        limits: What is taken on.
        open_metrics: Whether ``/metrics`` needs no key.
        allowed_hosts: Host names that requests may be addressed to, ``*`` for any; None takes
            those of this machine for an application without keys, and any for one with keys.
        close_store: Whether the store is closed at the end.

    Raises:
        MissingExtraError: Starlette is not installed.

    Example:
        >>> from agentkit import open_store
        >>> from agentkit.server import serving
        >>> with serving(create_library_app(open_store("memory:"))) as url:
        ...     remote = open_store(f"{url}?cache=none")
        ...     print(remote.load())
        ...     remote.close()
        Library(0 tools, version=0)
    """
    endpoints = LibraryEndpoints(store, limits, is_private=keys is not None)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await endpoints.close()
            if close_store:
                await asyncio.to_thread(store.close)

    app = assemble(
        dict.fromkeys(_PATHS, ("GET", endpoints)),
        keys=keys,
        limits=limits,
        metrics=endpoints.metrics,
        ready=endpoints.ready,
        open_metrics=open_metrics,
        allowed_hosts=allowed_hosts,
        lifespan=lifespan,
    )
    app.state.runs = endpoints
    return app


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownHead:
    """A head as it is sent.

    Attributes:
        head: What is newest.
        body: The same as JSON.
        etag: Names the content.
    """

    head: Head
    body: bytes
    etag: str


class ChangeNotifier:
    """The newest head of one store, for everybody who asks in one event loop.

    However many ask or wait at a time, the store is looked at once.

    Args:
        reader: Reads the head.
    """

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader
        # Of its own: pages of old versions may hold up all other threads for long.
        self._heads = ThreadPoolExecutor(1, thread_name_prefix="agentkit-library-head")
        self._turn = asyncio.Lock()
        self._asked_at = float("-inf")
        self._told: KnownHead | None = None
        self._stopping = asyncio.Event()

    @property
    def known(self) -> KnownHead | None:
        """The head as it was last read."""
        return self._told

    async def newest(self) -> KnownHead:
        """The head as it is now.

        Raises:
            StoreError: The store can not be read.
        """
        loop = asyncio.get_running_loop()
        came = loop.time()
        async with self._turn:
            if self._told is None or self._asked_at < came:
                began = loop.time()
                head = await loop.run_in_executor(self._heads, self._reader.head)
                self._take(head)
                self._asked_at = began
            assert self._told is not None
            return self._told

    async def other_than(self, is_known: Callable[[str], bool]) -> KnownHead:
        """The head as soon as its ETag is one that the client does not know.

        Never returns before, unless the server stops; whoever calls sets the time.
        """
        told = await self.newest()
        while is_known(told.etag) and not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _POLL_SECONDS)
            told = await self._at_least_as_new(_POLL_SECONDS)
        return told

    async def _at_least_as_new(self, seconds: float) -> KnownHead:
        """The head as it was read within the last seconds, by whoever asked."""
        is_old = asyncio.get_running_loop().time() - self._asked_at >= seconds
        return await self.newest() if is_old or self._told is None else self._told

    def stop(self) -> None:
        """Let everybody go who waits."""
        self._stopping.set()

    async def close(self) -> None:
        """Stop, and end what reads. A second call does nothing."""
        self.stop()
        await asyncio.to_thread(self._heads.shutdown, cancel_futures=True)

    def _take(self, head: Head) -> None:
        if self._told is None or self._told.head != head:
            body = encode(head.to_json())
            etag = hashlib.sha256(body).hexdigest()[:32]
            self._told = KnownHead(head=head, body=body, etag=etag)


class LibraryEndpoints:
    """Answers from one store. One object for all paths; an ASGI application behind ``Front``.

    Args:
        store: Where definitions and events are kept.
        limits: What is taken on.
        is_private: Whether only clients with a key may have it, so that no shared cache keeps it.
    """

    def __init__(self, store: Store, limits: ServerLimits, *, is_private: bool) -> None:
        reader = LibraryReader(store)
        self._limits = limits
        self._notifier = ChangeNotifier(reader)
        self._pages = Pages(reader)
        # As many as there are places: a client that fills its own leaves threads for the others.
        self._threads = ThreadPoolExecutor(
            limits.max_concurrent, thread_name_prefix="agentkit-library"
        )
        self._runs = Runs()
        self._probe = Probe(self._notifier.newest)
        self._scope = "private" if is_private else "public"
        self._rates = RateLimiter(limits.requests_per_minute)
        self._log = MinuteLog(_LOG)
        self.reading = Slots(
            most=limits.max_concurrent,
            each=lambda: limits.max_concurrent_per_key or max(1, limits.max_concurrent // 4),
        )
        self.waiting = Slots(most=_MOST_WAITING, each=lambda: _MOST_WAITING // 4)
        self._bytes = Counter("agentkit_library_bytes_total", "Bytes of bodies sent.", "route")
        self.metrics = Metrics(
            self._bytes,
            Gauge("agentkit_library_version", "Newest version that was read.", self._version),
            Gauge("agentkit_library_waiting", "Clients that wait for news.", self.waiting.__len__),
            Gauge("agentkit_library_reading", "Requests that are read for.", self.reading.__len__),
        )

    async def ready(self) -> Mapping[str, str]:
        """Whether the store answers, and no stop was asked for."""
        if self._runs.is_draining:
            return {"status": "unavailable", "reason": "stopping"}
        error = await self._probe.error()
        if error is not None:
            self._log.error("not ready, the store does not answer", error)
            return {"status": "unavailable", "reason": "store"}
        return {"status": "ok"}

    async def drain(self, seconds: float) -> None:
        """Let those go who wait for news, and let those end who are being answered."""
        self._notifier.stop()
        await self._runs.drain(seconds)

    async def close(self) -> None:
        """Drain, and end what reads."""
        await self.drain(self._limits.drain_seconds)
        await self._notifier.close()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _version(self) -> int:
        known = self._notifier.known
        return 0 if known is None else known.head.version

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        exchange: Exchange = scope[SCOPE_KEY]
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if self._runs.is_draining:
            raise stopping()
        self._rates.check(exchange.key)
        with self._runs.entered():
            try:
                answer = self._head if exchange.path == HEAD_PATH else self._page
                await answer(exchange, query)
            except AgentKitError as error:
                self._log.error("the store can not be read", error)
                message = "the store of the library is not available"
                raise store_unavailable(message) from error

    async def _head(self, exchange: Exchange, query: Query) -> None:
        wait, known = _seconds(query), _etags(exchange)
        if wait and known:
            told = await self._waited(exchange, known, wait)
        else:
            told = await self._notifier.newest()
        await self._answer(exchange, told.etag, told.body, "no-cache", content_type=_JSON)

    async def _waited(self, exchange: Exchange, known: frozenset[str], seconds: float) -> KnownHead:
        """The head once it is another one, or when the time is over."""
        if not self.waiting.take(exchange.who):
            message = "as many clients wait for news as may wait; poll without wait instead"
            raise RequestError(status=429, message=message, code="too_many_waiting", retry_after=5)
        try:
            work = self._notifier.other_than(known.__contains__)
            told = await self._runs.see_through(work, receive=exchange.receive, seconds=seconds)
        finally:
            self.waiting.free(exchange.who)
        match told:
            case KnownHead():
                return told
            case "disconnected":
                raise ClientLeftError
            case "stopping":
                raise stopping()
            case _:
                return await self._notifier.newest()

    async def _page(self, exchange: Exchange, query: Query) -> None:
        read = await self._wanted(exchange.path, query)
        who = exchange.who
        if not self.reading.take(who):
            raise self.reading.refusal(who)
        packs = "gzip" in exchange.headers.get("accept-encoding", "")
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: _in_form(read(), packs=packs)
        )
        work.add_done_callback(lambda done: self._read_ended(done, who))  # no thread can be cut
        try:
            etag, body = await asyncio.wait_for(asyncio.shield(work), self._limits.request_seconds)
        except TimeoutError as error:
            message = f"reading the library took more than {self._limits.request_seconds:g} s"
            raise RequestError(
                status=504, message=message, code="timeout", retry_after=5
            ) from error
        encoding = [(b"content-encoding", b"gzip")] if packs else []
        headers = [(b"vary", b"accept-encoding"), *encoding]
        lines = LINES.encode()
        await self._answer(exchange, etag, body, _FOREVER, content_type=lines, further=headers)

    async def _answer(
        self,
        exchange: Exchange,
        etag: str,
        body: bytes,
        cache: str,
        *,
        content_type: bytes,
        further: Sequence[Header] = (),
    ) -> None:
        """Send a body, or that the client has it already."""
        own = [
            (b"etag", f'"{etag}"'.encode()),
            (b"cache-control", f"{self._scope}, {cache}".encode()),
        ]
        if etag in _etags(exchange):
            await exchange.start(304, [*own, *further[:1]])
            await exchange.send_piece(b"", more=False)
            return
        self._bytes.add(exchange.path, by=len(body))
        await exchange.answer(body, content_type=content_type, headers=[*own, *further])

    def _read_ended(self, done: asyncio.Future[tuple[str, bytes]], who: str) -> None:
        self.reading.free(who)
        if not done.cancelled() and (error := done.exception()) is not None:
            _LOG.info("a reading failed: %s", error)  # perhaps nobody waits for it any more

    async def _wanted(self, path: str, query: Query) -> Read:
        """What a request is for. Nothing is asked for that is still to come: it could change."""
        after = _number(query, "after", default=0)
        upto = _number(query, "version" if path == TOOLS_PATH else "upto")
        told = self._notifier.known
        if told is None or not _has(told, path, upto):
            told = await self._notifier.newest()
        if not _has(told, path, upto):
            what = f"event {upto}" if path == EVENTS_PATH else f"library version {upto}"
            raise RequestError(status=404, message=f"there is no {what}", code="not_found")
        if path == HISTORY_PATH and "tool" not in query:
            raise RequestError(message="name a tool: ?tool=NAME", param="tool")
        pages = self._pages
        reads: dict[str, Read] = {
            TOOLS_PATH: lambda: pages.tools(upto, after),
            CHANGES_PATH: lambda: pages.changes(after, upto),
            EVENTS_PATH: lambda: pages.events(after, upto),
            HISTORY_PATH: lambda: pages.history(query["tool"][0], after, upto),
        }
        return reads[path]


def _in_form(body: Body, *, packs: bool) -> tuple[str, bytes]:
    """The ETag and the bytes; each form has an ETag of its own, as a strong one must."""
    return (f"{body.etag}-gzip", body.packed) if packs else (body.etag, body.plain)


def _has(told: KnownHead, path: str, upto: int) -> bool:
    return upto <= told.head.events.sequence if path == EVENTS_PATH else told.head.has(upto)


def _number(query: Query, name: str, *, default: int | None = None) -> int:
    given = query.get(name, [""])[0]
    if not given and default is not None:
        return default
    if given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS:
        return int(given)
    raise RequestError(message=f"?{name}= takes a whole number from 0", param=name)


def _seconds(query: Query) -> float:
    """How long a client wants to wait at most; never longer than the server likes."""
    given = query.get("wait", ["0"])[0]
    if not _DECIMAL.fullmatch(given):
        raise RequestError(message="?wait= takes seconds, such as 25 or 0.5", param="wait")
    return min(float(given), LONGEST_WAIT_SECONDS)


def _etags(exchange: Exchange) -> frozenset[str]:
    """What the client has; a proxy that compressed it may have made the ETags weak."""
    given = exchange.headers.get("if-none-match", "")
    return frozenset(one.strip().removeprefix("W/").strip('"') for one in given.split(",")) - {""}
