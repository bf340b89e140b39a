"""The fast transport: aiohttp, of the ``fast`` extra."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agentkit.errors import MissingExtraError, ModelError, ModelTimeoutError
from agentkit.models.transport.base import (
    HttpResponse,
    HttpStream,
    environment_proxy,
    hung_up,
    place,
    unreachable,
)
from agentkit.models.transport.loop_bound import LoopBound

if TYPE_CHECKING:
    import aiohttp

_KEEP_ALIVE_SECONDS = 15.0
_MOST_CONNECTIONS = 1000


class AiohttpTransport:
    """Posts through aiohttp.

    Args:
        client: A session of the caller's, used as it is and never closed; it is bound to the
            caller's event loop. None opens one per loop.

    Raises:
        MissingExtraError: aiohttp is not installed.
    """

    def __init__(self, client: aiohttp.ClientSession | None = None) -> None:
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
        self._proxies: dict[str, str | None] = {}
        self._own: LoopBound[aiohttp.ClientSession] = LoopBound(
            opened=_open_session,  # not a method: a cycle would delay the close
            closed=lambda session: session.close(),
            is_closed=lambda session: session.closed,
        )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """See ``Transport.post``."""
        session = self._client or await self._own.get()
        try:
            async with session.post(
                url, data=body, headers=headers, allow_redirects=False, proxy=self._proxy(url)
            ) as response:
                return HttpResponse(
                    status=response.status, headers=response.headers, body=await response.read()
                )
        except self._failure as error:
            raise self._translated(url, error) from error

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[HttpStream]:
        """See ``Transport.stream``."""
        session = self._client or await self._own.get()
        try:
            response = await session.post(
                url, data=body, headers=headers, allow_redirects=False, proxy=self._proxy(url)
            )
        except self._failure as error:
            raise self._translated(url, error) from error
        async with response:
            yield _AiohttpStream(self, url, response)

    async def close(self) -> None:
        """See ``Transport.close``."""
        await self._own.close()

    async def _read(self, url: str, response: aiohttp.ClientResponse) -> bytes:
        try:
            return await response.content.readany()
        except self._failure as error:
            raise self._translated(url, error) from error

    def _proxy(self, url: str) -> str | None:
        """The proxy that the environment names, looked up once: aiohttp's own look is slow."""
        if self._client is not None:
            return None
        if url not in self._proxies:
            self._proxies[url] = environment_proxy(url)
        return self._proxies[url]

    def _translated(self, url: str, error: Exception) -> ModelError:
        import aiohttp

        if isinstance(error, aiohttp.ServerTimeoutError):
            return ModelTimeoutError(
                f"{place(url)} did not answer within the time that the injected session allows "
                f"({error}); raise its ClientTimeout"
            )
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
            return unreachable(url, error)
        return hung_up(url, error)


class _AiohttpStream:
    __slots__ = ("_response", "_transport", "_url")

    def __init__(
        self, transport: AiohttpTransport, url: str, response: aiohttp.ClientResponse
    ) -> None:
        self._transport = transport
        self._url = url
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        return await self._transport._read(self._url, self._response)  # noqa: SLF001 - one module


def _open_session() -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=_MOST_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # deadlines are ours
    )
