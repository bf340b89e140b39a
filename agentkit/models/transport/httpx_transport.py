"""The transport that is always there: httpx."""

from __future__ import annotations

import importlib
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from agentkit._loop_bound import LoopBound
from agentkit._proxies import environment_proxy
from agentkit.errors import ModelError, ModelTimeoutError
from agentkit.models.transport.base import (
    HttpResponse,
    HttpStream,
    hung_up,
    place,
    trusted_certificates,
    unreachable,
)
from agentkit.models.wire.reading import read_body

if TYPE_CHECKING:
    import ssl

    import httpx


class HttpxTransport:
    """Posts through httpx.

    Args:
        url: Where requests will go; decides about certificates and the proxy.
        client: A client of the caller's, with its own headers, authentication and timeouts; it is
            never closed and is bound to the caller's event loop. None opens connections per loop.
    """

    def __init__(self, url: str, client: httpx.AsyncClient | None = None) -> None:
        import httpcore  # noqa: F401 - httpx would import it with the first connection
        import httpx

        # httpcore would load its backend inside the first request. It is a private module, so
        # without it the first request is slower and nothing else.
        with suppress(ImportError):
            importlib.import_module("anyio._backends._asyncio")
        self._request_type = httpx.Request
        self._failure = httpx.HTTPError
        self._client = client
        self._urls: dict[str, httpx.URL] = {}
        certificates = trusted_certificates(url)
        proxy = environment_proxy(url)
        self._own: LoopBound[HttpxConnections] = LoopBound(
            opened=lambda: HttpxConnections(certificates, proxy),
            closed=lambda connections: connections.close(),
            is_closed=lambda connections: connections.is_closed,
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """See ``Transport.post``."""
        async with self._sent(url, headers, body) as response:
            try:
                content = await read_body(response.aiter_bytes())
            except self._failure as error:
                raise _translated(url, error) from error
            return HttpResponse(status=response.status_code, headers=response.headers, body=content)

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[HttpStream]:
        """See ``Transport.stream``."""
        async with self._sent(url, headers, body) as response:
            yield _HttpxStream(url, response, self._failure)

    async def close(self) -> None:
        """See ``Transport.close``."""
        await self._own.close()

    @asynccontextmanager
    async def _sent(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[httpx.Response]:
        """Send a request; leaving the context closes the response."""
        async with AsyncExitStack() as stack:
            try:
                response = await self._send(stack, url, headers, body)
            except self._failure as error:
                raise _translated(url, error) from error
            stack.push_async_callback(response.aclose)
            yield response

    async def _send(
        self, stack: AsyncExitStack, url: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        if self._client is not None:
            request = self._client.build_request("POST", url, headers=headers, content=body)
            return await self._client.send(request, stream=True)
        connections = await self._own.get()
        connection = await stack.enter_async_context(connections.one())
        request = self._request_type("POST", self._url(url), headers=headers, content=body)
        return await connection.handle_async_request(request)

    def _url(self, url: str) -> httpx.URL:
        parsed = self._urls.get(url)
        if parsed is None:  # parsing one is a measurable part of a request
            import httpx

            parsed = self._urls[url] = httpx.URL(url)
        return parsed


class _HttpxStream:
    __slots__ = ("_failure", "_pieces", "_response", "_url")

    def __init__(self, url: str, response: httpx.Response, failure: type[Exception]) -> None:
        self._url = url
        self._response = response
        self._failure = failure
        self._pieces = response.aiter_bytes()

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        try:
            return await anext(self._pieces, b"")
        except self._failure as error:
            raise _translated(self._url, error) from error


def _translated(url: str, error: Exception) -> ModelError:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return ModelTimeoutError(
            f"{place(url)} did not answer within the time that the injected client allows "
            f"({type(error).__name__}); raise its timeout"
        )
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol | httpx.ProxyError):
        return unreachable(url, error)
    return hung_up(url, error)


_KEEP_ALIVE_SECONDS = 15.0


class HttpxConnections:
    """Lends out connections, each an httpx transport of its own, limited to one connection.

    httpcore's own pool walks over all its connections whenever a request starts or ends, which at
    50 requests under way costs four times the request itself (6.2 against 1.4 ms of CPU measured).

    Args:
        certificates: What to check servers against.
        proxy: URL of a proxy, or None.
    """

    def __init__(self, certificates: ssl.SSLContext, proxy: str | None) -> None:
        self._certificates = certificates
        self._proxy = proxy
        self._idle: deque[tuple[float, httpx.AsyncHTTPTransport]] = deque()
        self.is_closed = False

    @asynccontextmanager
    async def one(self) -> AsyncIterator[httpx.AsyncHTTPTransport]:
        """The connection used last, or a new one.

        It is kept for the next request unless this one fails or is cancelled.
        """
        connection = self._idle.pop()[1] if self._idle else self._open()
        try:
            yield connection
        except BaseException:
            await connection.aclose()
            raise
        self._idle.append((time.monotonic(), connection))
        await self._close_expired()

    async def close(self) -> None:
        """Close what is idle."""
        self.is_closed = True
        while self._idle:
            await self._idle.popleft()[1].aclose()

    async def _close_expired(self) -> None:
        """Close one connection that nobody wanted for long, or all after ``close``."""
        if self.is_closed:
            await self.close()
        elif time.monotonic() - self._idle[0][0] > _KEEP_ALIVE_SECONDS:
            await self._idle.popleft()[1].aclose()

    def _open(self) -> httpx.AsyncHTTPTransport:
        import httpx

        return httpx.AsyncHTTPTransport(
            verify=self._certificates,
            proxy=self._proxy,
            limits=httpx.Limits(
                max_connections=1,
                max_keepalive_connections=1,
                keepalive_expiry=_KEEP_ALIVE_SECONDS,
            ),
        )
