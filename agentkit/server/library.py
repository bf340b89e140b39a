"""The library of a store over HTTP, read-only: ``create_library_app`` and its endpoints.

Answers are whole bodies, made in a thread: encoding megabytes would hold up the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qs

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.errors import AgentKitError, StoreError, StoreLookupError
from agentkit.library.changes import change_to_json
from agentkit.library.events import ChainHead, LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.client import LINES, PATH, Head, encode
from agentkit.library.store import Store
from agentkit.server.app import assemble
from agentkit.server.keys import Keys
from agentkit.server.limits import ServerLimits, Slots
from agentkit.server.metrics import Counter, Metrics
from agentkit.server.middleware import (
    Exchange,
    RequestError,
    Scope,
    store_unavailable,
)
from agentkit.server.runs import MinuteLog, Probe, Runs

if TYPE_CHECKING:
    from starlette.applications import Starlette

_LOG = logging.getLogger(__name__)

Query: TypeAlias = Mapping[str, list[str]]

_MOST_DIGITS = 18
_TRIES = 10
_KEPT_BODIES = 4
_NO_TOOLS = Library().digest


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

    ===============  ===========================================================================
    GET /library/v3  what is newest, and the changes and events behind those that are known
    GET /healthz     the process lives
    GET /readyz      the store answers and no stop was asked for
    GET /metrics     numbers in Prometheus' text format
    ===============  ===========================================================================

    ``agentkit.library.remote.RemoteStore`` is the client. Episodes are not served.

    Args:
        store: Where definitions and events are kept.
        keys: Who may read; None allows everybody.
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
        ...     remote = open_store(url)
        ...     print(remote.load())
        ...     remote.close()
        Library(0 tools, version=0)
    """
    endpoints = LibraryEndpoints(store, limits)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await endpoints.close()
            if close_store:
                await asyncio.to_thread(store.close)

    app = assemble(
        {PATH: ("GET", endpoints.answer)},
        keys=keys,
        limits=limits,
        runs=endpoints.runs,
        metrics=endpoints.metrics,
        ready=endpoints.ready,
        open_metrics=open_metrics,
        allowed_hosts=allowed_hosts,
        lifespan=lifespan,
    )
    app.state.runs = endpoints
    return app


class LibraryReader:
    """Makes answers from one store. Its methods may be called from several threads.

    Args:
        store: Where definitions and events are kept.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._last: LibraryEvent | None = None
        # A hundred clients that lack the same cost what one does.
        self.read = lru_cache(maxsize=_KEPT_BODIES)(self._read)

    def head(self) -> Head:
        """The newest definitions and events together.

        Raises:
            StoreError: The store cannot be read, or changed each time that it was looked at.
        """
        with self._lock:
            for _ in range(_TRIES):
                library = self.store.load()
                events = ChainHead.of(self._last_event())
                if self.store.load().version == library.version:  # else the events are newer
                    return Head(version=library.version, digest=library.digest, events=events)
        raise StoreError("the library changed each time that it was read; try again")

    def _read(self, head: Head, version: int, event: int) -> bytes:
        """The head, and what is behind a version and an event."""
        found = self.store.changes(after=version) if version < head.version else ()
        changes = [one for one in found if one.version <= head.version]
        first = changes[0].version if changes else head.version
        if not version and first != 1 and head.digest != _NO_TOOLS:
            raise StoreLookupError(
                f"there is no history to serve: the store begins with library version {first}; "
                "'agentkit import' brings its tools into one that has it"
            )
        end = head.events.sequence
        events = self.store.events(after=event) if event < end else ()
        records = [
            head.to_json(),
            *({"version": one.version, **change_to_json(one.change)} for one in changes),
            *(one.to_json() for one in events if one.sequence <= end),
        ]
        return b"".join(encode(record) + b"\n" for record in records)

    def _last_event(self) -> LibraryEvent | None:
        """The end of the chain; read again when another chain has taken its place."""
        after = 0 if self._last is None else self._last.sequence - 1
        found = self.store.events(after=after)  # the last one again, to see it is the same
        if self._last is not None and (not found or found[0].hash != self._last.hash):
            found = self.store.events()
        self._last = found[-1] if found else None
        return self._last


class LibraryEndpoints:
    """Answers from one store.

    Args:
        store: Where definitions and events are kept.
        limits: What is taken on.
    """

    def __init__(self, store: Store, limits: ServerLimits) -> None:
        self._reader = LibraryReader(store)
        self._limits = limits
        # Of its own: large answers may hold up all other threads for long.
        self._heads = ThreadPoolExecutor(1, thread_name_prefix="agentkit-library-head")
        # As many as there are places: a client that fills its own leaves threads for the others.
        self._threads = ThreadPoolExecutor(
            limits.max_concurrent, thread_name_prefix="agentkit-library"
        )
        self._turn = asyncio.Lock()
        self._asked_at = float("-inf")
        self._known: Head | None = None
        self.runs = Runs()
        self._probe = Probe(self._head)
        self._log = MinuteLog(_LOG)
        self.reading = Slots(
            most=limits.max_concurrent,
            each=lambda: limits.max_concurrent_per_key or max(1, limits.max_concurrent // 4),
        )
        self._bytes = Counter("agentkit_library_bytes_total", "Bytes of bodies sent.", "route")
        self.metrics = Metrics(
            self._bytes,
            gauges={
                "agentkit_library_version": ("Newest version that was read.", self._version),
                "agentkit_library_reading": ("Requests that are read for.", self.reading.__len__),
            },
        )

    async def ready(self) -> Mapping[str, str]:
        """Whether the store answers, and no stop was asked for."""
        if self.runs.is_draining:
            return {"status": "unavailable", "reason": "stopping"}
        error = await self._probe.error()
        if error is not None:
            self._log.error("not ready, the store does not answer", error)
            return {"status": "unavailable", "reason": "store"}
        return {"status": "ok"}

    async def drain(self, seconds: float) -> None:
        """Let those end who are being answered."""
        await self.runs.drain(seconds)

    async def close(self) -> None:
        """Drain, and end what reads."""
        await self.drain(self._limits.drain_seconds)
        for threads in (self._heads, self._threads):
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    def _version(self) -> int:
        return 0 if self._known is None else self._known.version

    async def answer(self, exchange: Exchange, scope: Scope) -> None:
        """Answer one request."""
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        try:
            await self._answer(exchange, query)
        except StoreLookupError as error:
            raise RequestError(status=404, message=str(error), code="not_found") from error
        except AgentKitError as error:
            self._log.error("the store cannot be read", error)
            message = "the store of the library is not available"
            raise store_unavailable(message) from error

    async def _answer(self, exchange: Exchange, query: Query) -> None:
        version, event = (_number(query, name) for name in ("version", "event"))
        head = await self._head()
        body = await self._read(exchange, lambda: self._reader.read(head, version, event))
        self._bytes.add(exchange.path, by=len(body))
        headers = [(b"cache-control", b"no-store")]
        await exchange.answer(body, content_type=LINES.encode(), headers=headers)

    async def _head(self) -> Head:
        """The head as it is now. However many ask at a time, the store is looked at once.

        Raises:
            StoreError: The store cannot be read.
        """
        loop = asyncio.get_running_loop()
        came = loop.time()
        async with self._turn:
            if self._known is None or self._asked_at < came:
                began = loop.time()
                self._known = await loop.run_in_executor(self._heads, self._reader.head)
                self._asked_at = began
            return self._known

    async def _read(self, exchange: Exchange, read: Callable[[], bytes]) -> bytes:
        """Read in a thread, which holds a slot until it ends: no thread can be cancelled."""
        who = exchange.who
        if not self.reading.take(who):
            raise self.reading.refusal(who)
        work = asyncio.get_running_loop().run_in_executor(self._threads, read)
        work.add_done_callback(lambda done: self._read_ended(done, who))
        try:
            return await asyncio.wait_for(asyncio.shield(work), self._limits.request_seconds)
        except TimeoutError as error:
            message = f"reading the library took more than {self._limits.request_seconds:g} s"
            raise RequestError(
                status=504, message=message, code="timeout", retry_after=5
            ) from error

    def _read_ended(self, done: asyncio.Future[bytes], who: str) -> None:
        self.reading.free(who)
        if not done.cancelled() and (error := done.exception()) is not None:
            _LOG.info(
                "a reading failed: %s", episodes.error_line(error)
            )  # perhaps no request waits for it any more


def _number(query: Query, name: str) -> int:
    value = query.get(name, ["0"])[0]
    if value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    raise RequestError(message=f"?{name}= takes a whole number from 0", param=name)
