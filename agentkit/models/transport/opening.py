"""Choosing a transport."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, cast

from agentkit.errors import UsageError
from agentkit.models.transport.aiohttp_transport import AiohttpTransport
from agentkit.models.transport.base import Transport
from agentkit.models.transport.httpx_transport import HttpxTransport

if TYPE_CHECKING:
    import aiohttp
    import httpx

TransportName = Literal["auto", "httpx", "aiohttp"]


def open_transport(
    transport: TransportName | Transport,
    client: httpx.AsyncClient | aiohttp.ClientSession | None,
    *,
    url: str,
) -> Transport:
    """The transport for an adapter; its library is imported here and not in the first request.

    Args:
        transport: ``auto`` takes aiohttp when it is installed and httpx otherwise; a client
            decides for itself; a transport of one's own is used as it is.
        client: A client to send through, or None.
        url: Where requests will go.

    Raises:
        MissingExtraError: aiohttp was asked for and is not installed.
        UsageError: ``transport`` or ``client`` is none of these, or they contradict each other.
    """
    if not isinstance(transport, str):
        return transport
    library = transport
    if library == "auto":
        library = _library_of(client) or ("aiohttp" if find_spec("aiohttp") else "httpx")
    if library not in {"httpx", "aiohttp"}:
        raise UsageError(f"unknown transport {transport!r}; use 'auto', 'httpx' or 'aiohttp'")
    if client is not None and _library_of(client) != library:
        raise UsageError(
            f"client={client!r} does not fit transport={transport!r}; give an httpx.AsyncClient "
            "or an aiohttp.ClientSession, and leave transport at 'auto'"
        )
    if library == "aiohttp":
        return AiohttpTransport(url, cast("aiohttp.ClientSession | None", client))
    return HttpxTransport(url, cast("httpx.AsyncClient | None", client))


def _library_of(client: object) -> Literal["httpx", "aiohttp"] | None:
    """Whose client it is, found out without importing either library."""
    for kind in type(client).__mro__:
        match kind.__module__.partition(".")[0], kind.__name__:
            case "httpx", "AsyncClient":
                return "httpx"
            case "aiohttp", "ClientSession":
                return "aiohttp"
    return None
