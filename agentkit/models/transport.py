"""The seam to HTTP libraries: ``Transport``, one POST request.

A transport moves bytes and says when it cannot. Timeouts, retries, status codes and the protocol
are the model's business. httpx is always there; aiohttp, of the ``fast`` extra, costs a third.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

from agentkit._loop_bound import LoopBound
from agentkit._pacing import pace, pace_aiohttp
from agentkit._proxies import environment_proxy
from agentkit.errors import (
    MissingExtraError,
    ModelConnectionError,
    ModelTimeoutError,
    UsageError,
)

if TYPE_CHECKING:
    import ssl

    import aiohttp
    import httpx

TransportName = Literal["auto", "httpx", "aiohttp"]

_KEEP_ALIVE_SECONDS = 15.0
_MOST_CONNECTIONS = 1000
_TIMEOUTS = frozenset({"TimeoutException", "ServerTimeoutError"})
_UNREACHED = frozenset(
    {"ConnectError", "UnsupportedProtocol", "ProxyError", "ClientConnectorError", "InvalidURL"}
)
_HTTP_LIBRARIES = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "aiohttp"})


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpStream:
    """An answer whose body is still arriving.

    Attributes:
        status: The status code.
        headers: The headers; names in any case.
        pieces: Yields the body piece by piece; raises ``ModelConnectionError`` when the connection
            is cut before its end.
    """

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


class Transport(Protocol):
    """Sends POST requests; keeps connections open between them."""

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[HttpStream]:
        """Send one request; the answer's body arrives inside the context.

        Leaving the context early closes the connection.

        Raises:
            ModelConnectionError: The server cannot be reached or hung up.
            ModelTimeoutError: An injected client gave up waiting.
        """
        ...

    async def close(self) -> None:
        """Close the connections that this transport opened; a later request opens new ones."""
        ...


def open_transport(
    transport: TransportName, client: httpx.AsyncClient | None, *, url: str
) -> Transport:
    """The transport for a model; its library is imported here and not in the first request.

    Args:
        transport: ``auto`` takes aiohttp when it is installed and httpx otherwise, and httpx for a
            client.
        client: A client to send through, or None.
        url: Where requests will go.

    Raises:
        MissingExtraError: aiohttp was asked for and is not installed.
        UsageError: ``transport`` is unknown, or contradicts ``client``.
    """
    if transport not in {"auto", "httpx", "aiohttp"}:
        raise UsageError(f"unknown transport {transport!r}; use 'auto', 'httpx' or 'aiohttp'")
    if client is not None and (transport == "aiohttp" or not hasattr(client, "build_request")):
        raise UsageError(
            f"client={client!r} does not fit transport={transport!r}; give an httpx.AsyncClient, "
            "and leave transport at 'auto'"
        )
    if transport == "auto" and client is None and find_spec("aiohttp"):
        transport = "aiohttp"
    return AiohttpTransport(url) if transport == "aiohttp" else HttpxTransport(url, client)


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
        self._client = client
        self._urls: dict[str, httpx.URL] = {}  # parsing one is a measurable part of a request
        certificates, proxy = trusted_certificates(url), environment_proxy(url)
        self._own: LoopBound[_HttpxPool] = LoopBound(
            opened=lambda: _HttpxPool(certificates, proxy),
            closed=lambda pool: pool.close(),
            is_closed=lambda pool: pool.is_closed,
        )

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[HttpStream]:
        """See ``Transport.stream``."""
        response = await self._send(url, headers, body)
        try:
            yield HttpStream(
                status=response.status_code,
                headers=response.headers,
                pieces=_translated(url, response.aiter_bytes()),
            )
        finally:
            await response.aclose()

    async def close(self) -> None:
        """See ``Transport.close``."""
        await self._own.close()

    async def _send(self, url: str, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        with translating(url):
            if self._client is not None:
                request = self._client.build_request("POST", url, headers=headers, content=body)
                return await self._client.send(request, stream=True)
            parsed = self._urls.get(url)
            if parsed is None:
                import httpx

                parsed = self._urls[url] = httpx.URL(url)
            request = self._request_type("POST", parsed, headers=headers, content=body)
            pool = await self._own.get()
            return await pool.transport.handle_async_request(request)


class _HttpxPool:
    """httpx's connection pool without its client, whose work per request none of ours needs."""

    def __init__(self, certificates: ssl.SSLContext, proxy: str | None) -> None:
        import httpx

        self.is_closed = False
        self.transport = httpx.AsyncHTTPTransport(
            verify=certificates,
            proxy=proxy,
            limits=httpx.Limits(
                max_connections=_MOST_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_SECONDS
            ),
        )
        pace(self.transport)

    async def close(self) -> None:
        self.is_closed = True
        await self.transport.aclose()


class AiohttpTransport:
    """Posts through aiohttp.

    Args:
        url: Where requests will go; decides about certificates and the proxy.

    Raises:
        MissingExtraError: aiohttp is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            import aiohttp
        except ImportError as error:
            raise MissingExtraError(
                "transport='aiohttp'",
                package="aiohttp",
                install='pip install "agentkit-evolve[fast]"',
            ) from error
        del aiohttp  # imported here and not in the first request
        # Looked up once: aiohttp would look through the environment for each request.
        self._proxy = environment_proxy(url)
        certificates = trusted_certificates(url)
        self._own: LoopBound[aiohttp.ClientSession] = LoopBound(
            opened=lambda: _open_session(certificates),  # without self: a cycle delays the close
            closed=lambda session: session.close(),
            is_closed=lambda session: session.closed,
        )

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[HttpStream]:
        """See ``Transport.stream``."""
        async with await self._send(url, headers, body) as response:
            yield HttpStream(
                status=response.status,
                headers=response.headers,
                pieces=_translated(url, response.content.iter_any()),
            )

    async def close(self) -> None:
        """See ``Transport.close``."""
        await self._own.close()

    async def _send(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> aiohttp.ClientResponse:
        session = await self._own.get()
        with translating(url):
            return await session.post(
                url, data=body, headers=headers, allow_redirects=False, proxy=self._proxy
            )


def _open_session(certificates: ssl.SSLContext) -> aiohttp.ClientSession:
    import aiohttp

    connector = aiohttp.TCPConnector(
        ssl=certificates, limit=_MOST_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS
    )
    pace_aiohttp(connector)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # timeouts are ours
    )


async def _translated(url: str, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with translating(url):
        async for piece in pieces:
            yield piece


@contextmanager
def translating(url: str) -> Iterator[None]:
    """Raise the errors of HTTP libraries as ours; any other as it is."""
    try:
        yield
    except Exception as error:
        if not is_transport_error(error):
            raise
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if kinds & _TIMEOUTS:
            raise ModelTimeoutError(
                f"{place(url)} did not answer within the time that the injected client allows "
                f"({_what(error)}); raise its timeout"
            ) from error
        raise (unreachable if kinds & _UNREACHED else hung_up)(url, error) from error


def is_transport_error(error: BaseException) -> bool:
    """Whether it comes from an HTTP library."""
    return any(kind.__module__.partition(".")[0] in _HTTP_LIBRARIES for kind in type(error).__mro__)


def unreachable(url: str, error: BaseException) -> ModelConnectionError:
    """No connection could be made."""
    return ModelConnectionError(
        f"could not connect to {place(url)} ({_what(error)}). "
        "Is the server running, and are the base URL and the proxy settings right?"
    )


def hung_up(url: str, error: BaseException) -> ModelConnectionError:
    """A connection was made and then lost."""
    return ModelConnectionError(
        f"{place(url)} closed the connection before the answer was complete ({_what(error)}). "
        "Try again; if it persists, look into the server's log or a proxy between"
    )


def cut_short(where: str) -> ModelConnectionError:
    """A stream ended in good order, but before its answer did."""
    return ModelConnectionError(
        f"the stream of {where} ended before the answer was complete: no finish reason arrived. "
        "Try again; if it persists, check that the base URL is that of the API (a page of HTML "
        "ends so, too), and look into the server's log or a proxy between"
    )


def place(url: str) -> str:
    """The URL for a message: without credentials and query, which may be secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def trusted_certificates(url: str) -> ssl.SSLContext:
    """The trusted certificates: the machine's and those of certifi.

    Both, because a bare machine has none of its own and a company's are not in certifi;
    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` replace them. A plain HTTP URL needs none, and reading
    them takes tens of milliseconds.
    """
    import ssl

    if url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context()
    if not os.environ.keys() & {"SSL_CERT_FILE", "SSL_CERT_DIR"}:
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def _what(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
