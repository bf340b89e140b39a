"""The fast transport: aiohttp, of the ``fast`` extra."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agentkit._loop_bound import LoopBound
from agentkit._proxies import environment_proxy
from agentkit.errors import MissingExtraError, ModelError, ModelTimeoutError
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

    import aiohttp

_KEEP_ALIVE_SECONDS = 15.0
_MOST_CONNECTIONS = 1000


class AiohttpTransport:
    """Posts through aiohttp.

    Args:
        url: Where requests will go; decides about certificates and the proxy.
        client: A session of the caller's, used as it is and never closed; it is bound to the
            caller's event loop. None opens one per loop.

    Raises:
        MissingExtraError: aiohttp is not installed.
    """

    def __init__(self, url: str, client: aiohttp.ClientSession | None = None) -> None:
        try:
            import aiohttp
        except ImportError as error:
            raise MissingExtraError(
                "transport='aiohttp'",
                package="aiohttp",
                install='pip install "agentkit-evolve[fast]"',
            ) from error
        self._failure = aiohttp.ClientError
        self._client = client
        # Looked up once: aiohttp would look through the environment for each request.
        self._proxy = environment_proxy(url) if client is None else None
        certificates = trusted_certificates(url)
        self._own: LoopBound[aiohttp.ClientSession] = LoopBound(
            opened=lambda: _open_session(certificates),  # without self: a cycle delays the close
            closed=lambda session: session.close(),
            is_closed=lambda session: session.closed,
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """See ``Transport.post``."""
        session = self._client or await self._own.get()
        try:
            async with session.post(
                url, data=body, headers=headers, allow_redirects=False, proxy=self._proxy
            ) as response:
                content = await read_body(response.content.iter_any())
                return HttpResponse(status=response.status, headers=response.headers, body=content)
        except self._failure as error:
            raise _translated(url, error) from error

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[HttpStream]:
        """See ``Transport.stream``."""
        session = self._client or await self._own.get()
        try:
            response = await session.post(
                url, data=body, headers=headers, allow_redirects=False, proxy=self._proxy
            )
        except self._failure as error:
            raise _translated(url, error) from error
        async with response:
            yield _AiohttpStream(url, response, self._failure)

    async def close(self) -> None:
        """See ``Transport.close``."""
        await self._own.close()


class _AiohttpStream:
    __slots__ = ("_failure", "_response", "_url")

    def __init__(
        self, url: str, response: aiohttp.ClientResponse, failure: type[Exception]
    ) -> None:
        self._url = url
        self._response = response
        self._failure = failure

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except self._failure as error:
            raise _translated(self._url, error) from error


def _open_session(certificates: ssl.SSLContext) -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            ssl=certificates, limit=_MOST_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # deadlines are ours
    )


def _translated(url: str, error: Exception) -> ModelError:
    import aiohttp

    if isinstance(error, aiohttp.ServerTimeoutError):
        return ModelTimeoutError(
            f"{place(url)} did not answer within the time that the injected session allows "
            f"({error}); raise its ClientTimeout"
        )
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return unreachable(url, error)
    return hung_up(url, error)
