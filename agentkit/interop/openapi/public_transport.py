"""``PublicTransport``: an httpx transport that connects to public addresses only."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

import httpcore
import httpx

from agentkit._proxies import environment_proxy
from agentkit.interop.openapi.public_addresses import public_addresses, refuse_inner_name

_Options = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


class PublicTransport(httpx.AsyncBaseTransport):
    """Sends requests to servers with public addresses, directly or through the environment's proxy.

    A name is looked up for each connection, and the connection goes to an address that was checked.
    A proxy looks names up itself: there, names and addresses of the own network are refused as far
    as this machine knows them.

    Args:
        exempt: Hosts (``host`` or ``host:port``) that may be private.
        backend: Opens connections; None for httpcore's own.
    """

    def __init__(
        self, exempt: Collection[str] = (), *, backend: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._exempt = frozenset(urlsplit(f"//{host}").hostname for host in exempt)
        self._direct = _DirectTransport(
            _CheckedBackend(backend or httpcore.AnyIOBackend(), self._exempt)
        )
        self._proxied: dict[str, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises:
            NotPublicError: The server, or the address that its name leads to, is not public.
        """
        proxy = environment_proxy(str(request.url))
        if proxy is None:
            return await self._direct.handle_async_request(request)
        host = request.url.host
        if host not in self._exempt:
            refuse_inner_name(host)
            # Behind a proxy, this machine may be unable to look up any name.
            with contextlib.suppress(OSError, UnicodeError):
                await public_addresses(host, request.url.port or 0)
        transport = self._proxied.get(proxy)
        if transport is None:
            transport = self._proxied[proxy] = httpx.AsyncHTTPTransport(proxy=proxy)
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()


class _DirectTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport, except for how its connections are opened."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        super().__init__()
        # httpx offers no argument for it; the pool has no connection yet that needed closing.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(), network_backend=backend
        )


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to addresses that were checked."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend, exempt: Collection[str | None]) -> None:
        self._inner = inner
        self._exempt = exempt

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: _Options | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of a name that answers."""
        try:
            addresses = [host] if host in self._exempt else await public_addresses(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait between attempts."""
        await self._inner.sleep(seconds)
