"""``create_library_app``: the library of a store, to read over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agentkit.library.remote.wire import (
    CHANGES_PATH,
    EVENTS_PATH,
    HEAD_PATH,
    HISTORY_PATH,
    TOOLS_PATH,
)
from agentkit.library.store import Store
from agentkit.server.app import (
    HEALTH_PATH,
    METRICS_PATH,
    READY_PATH,
    admitting,
    as_problem,
    json_response,
    missing,
)
from agentkit.server.keys import Keys
from agentkit.server.library.endpoints import LibraryEndpoints
from agentkit.server.library.notifier import ChangeNotifier
from agentkit.server.library.pages import LibraryReader, Pages
from agentkit.server.limits import ServerLimits
from agentkit.server.metrics import CONTENT_TYPE, LibraryMeasures
from agentkit.server.middleware import Front
from agentkit.server.runs import MinuteLog, Probe, Runs

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_LOG = logging.getLogger(__name__)

_LIBRARY_PATHS = (HEAD_PATH, TOOLS_PATH, CHANGES_PATH, EVENTS_PATH, HISTORY_PATH)


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
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ImportError as error:
        raise missing("starlette") from error
    service = _Service(store, limits=limits, has_keys=keys is not None, close_store=close_store)
    admission = admitting(keys, allowed_hosts, open_metrics=open_metrics)
    front = Middleware(
        Front,
        admission=admission,
        measures=service.measures,
        routes=(*_LIBRARY_PATHS, HEALTH_PATH, READY_PATH, METRICS_PATH),
        send_seconds=limits.send_seconds,
    )
    app = Starlette(
        routes=[
            *(Route(path, service.endpoints, methods=["GET"]) for path in _LIBRARY_PATHS),
            Route(HEALTH_PATH, service.healthy),
            Route(READY_PATH, service.ready),
            Route(METRICS_PATH, service.metrics),
        ],
        middleware=[front],
        exception_handlers={HTTPException: as_problem},
        lifespan=lambda _: service.lifespan(),
    )
    app.router.redirect_slashes = False  # one path for each thing
    app.state.runs = service
    app.state.limits = limits
    app.state.has_keys = keys is not None
    return app


class _Service:
    """The parts that the endpoints share, and their end."""

    def __init__(
        self, store: Store, *, limits: ServerLimits, has_keys: bool, close_store: bool
    ) -> None:
        self._limits = limits
        self._store = store
        self._closes = close_store
        self._runs = Runs()
        # As many as there are places: a client that fills its own leaves threads for the others.
        self._threads = ThreadPoolExecutor(
            limits.max_concurrent, thread_name_prefix="agentkit-library"
        )
        reader = LibraryReader(store)
        self._notifier = ChangeNotifier(reader)
        self._probe = Probe(self._notifier.newest)
        self._log = MinuteLog(_LOG)
        self.measures = LibraryMeasures(
            waiting=lambda: len(self.endpoints.waiting),
            reading=lambda: len(self.endpoints.reading),
            version=lambda: (
                0 if self._notifier.known is None else self._notifier.known.head.version
            ),
        )
        self.endpoints = LibraryEndpoints(
            notifier=self._notifier,
            pages=Pages(reader),
            threads=self._threads,
            runs=self._runs,
            measures=self.measures,
            limits=limits,
            is_private=has_keys,
        )

    def _version(self) -> int:
        known = self._notifier.known
        return 0 if known is None else known.head.version

    async def drain(self, seconds: float) -> None:
        """Let those go who wait for news, and let those end who are being answered."""
        self._notifier.stop()
        await self._runs.drain(seconds)

    async def healthy(self, request: Request) -> Response:
        """The process runs its event loop."""
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """The store answers, and no stop was asked for."""
        if self._runs.is_draining:
            return json_response({"status": "unavailable", "reason": "stopping"}, status=503)
        error = await self._probe.error()
        if error is not None:
            self._log.error("not ready, the store does not answer", error)
            return json_response({"status": "unavailable", "reason": "store"}, status=503)
        return json_response({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """What was counted."""
        from starlette.responses import Response

        return Response(self.measures.text(), media_type=CONTENT_TYPE)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """From the first request to the last one."""
        try:
            yield
        finally:
            await self.drain(self._limits.drain_seconds)
            await self._notifier.close()
            await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
            if self._closes:
                await asyncio.to_thread(self._store.close)
