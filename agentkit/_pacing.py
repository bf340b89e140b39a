"""``pace``: connections that leave the event loop to others, whatever a server sends.

httpcore takes what came in one piece of 64 kB, and reads on without a pause as long as that holds
answers to come (``HTTP/1.1 100``), thousands of them. aiohttp takes 256 kB a connection and turn.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp

_PIECE = 4_096


def pace(*transports: Any) -> None:
    """Let transports of httpx or httpx2 read in small pieces, with turns for others in between.

    Args:
        transports: Those of a client; what is no pool of connections is left as it is.
    """
    for transport in transports:
        pool = getattr(transport, "_pool", None)  # httpx has no argument for it
        if pool is not None:
            pool._network_backend = _PacedBackend(pool._network_backend)  # noqa: SLF001


def pace_aiohttp(connector: aiohttp.TCPConnector) -> None:
    """Let the connections of aiohttp read in small pieces; a turn of the loop reads one of each."""
    from aiohttp.client_proto import ResponseHandler

    class Paced(ResponseHandler):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            # asyncio has no argument for it, and the transports of other loops not even a field
            with suppress(AttributeError):
                tls: Any = getattr(transport, "_ssl_protocol", None)
                if tls is None:
                    transport.max_size = _PIECE  # type: ignore[attr-defined]
                else:
                    tls._ssl_buffer_view = tls._ssl_buffer_view[:_PIECE]  # noqa: SLF001

    made: Any = partial(Paced, loop=connector._loop)  # noqa: SLF001
    connector._factory = made  # noqa: SLF001 - nor has aiohttp one


class _PacedBackend:
    """Opens connections, for httpcore."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.sleep = inner.sleep

    async def connect_tcp(self, *args: Any, **options: Any) -> _PacedStream:
        return _PacedStream(await self._inner.connect_tcp(*args, **options))

    async def connect_unix_socket(self, *args: Any, **options: Any) -> _PacedStream:
        return _PacedStream(await self._inner.connect_unix_socket(*args, **options))


class _PacedStream:
    """A connection."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.write, self.aclose = inner.write, inner.aclose
        self.get_extra_info = inner.get_extra_info

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's
        piece: bytes = await self._inner.read(min(max_bytes, _PIECE), timeout)
        if len(piece) == _PIECE:  # more may be there already, and would be read without a pause
            await asyncio.sleep(0)
        return piece

    async def start_tls(self, *args: Any, **options: Any) -> _PacedStream:
        return _PacedStream(await self._inner.start_tls(*args, **options))
