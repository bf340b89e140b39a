"""Restrict foreign descriptions to public addresses.

The author of a description chooses its servers. One that was fetched from the network could name
``localhost``, a machine of the private network or the metadata service of a cloud, and have an
agent read there for it (server-side request forgery). ``public_transport`` looks a name up, checks
every address it has, and connects to one of those that it checked, so that a name whose answer
changes in between leads nowhere else. Certificates and ``Host`` remain those of the name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from agentkit.errors import UsageError

if TYPE_CHECKING:
    import httpcore

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_LONGEST_URL = 2_000


def chosen_server(servers: object, chosen: str | None, *, reference: str) -> str:
    """The base URL of a document or an operation.

    Args:
        servers: The list as written; absent or empty, it is the host that the document came from.
        chosen: A URL of the caller's own; None takes the first of the list, its variables filled
            with their defaults.
        reference: URL that the document came from, which relative URLs start from.

    Returns:
        The URL without a slash at its end; empty when the document names no absolute one.

    Raises:
        UsageError: It is no URL of a server.
    """
    if chosen is not None:
        return _checked(chosen)
    entry = servers[0] if isinstance(servers, list) and servers else {"url": "/"}
    given = entry if isinstance(entry, Mapping) else {}
    variables = given.get("variables")

    def value(match: re.Match[str]) -> str:
        declared = variables.get(match[1]) if isinstance(variables, Mapping) else None
        default = declared.get("default") if isinstance(declared, Mapping) else None
        return match[0] if default is None else str(default)[:_LONGEST_URL]

    url = _VARIABLE.sub(value, str(given.get("url", ""))[:_LONGEST_URL])
    try:
        if reference.lower().startswith(("http://", "https://")):
            url = urljoin(reference, url)
        return _checked(url) if urlsplit(url).scheme else ""
    except ValueError as error:
        raise _no_url(url, error) from error


def same_origin(left: str, right: str) -> bool:
    """Whether credentials may travel on: scheme, host and port are equal, or only became secure.

    Raises:
        ValueError: One of them is no URL.

    Example:
        >>> same_origin("http://a.example/x", "https://a.example/y")
        True
        >>> same_origin("https://a.example", "http://a.example")
        False
    """
    one, other = urlsplit(left), urlsplit(right)
    if one.hostname != other.hostname:
        return False
    if (one.scheme, one.port) == ("http", None) and (other.scheme, other.port) == ("https", None):
        return True
    ports: Mapping[str, int] = {"http": 80, "https": 443}
    return one.scheme == other.scheme and (one.port or ports.get(one.scheme)) == (
        other.port or ports.get(other.scheme)
    )


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise _no_url(url, error) from error
    # Parsers of URLs differ in what they make of these: the one that sends must see what we saw.
    is_plain = url.isprintable() and not any(mark in url for mark in " \\{}")
    if parts.scheme.lower() not in {"http", "https"} or not parts.hostname or not is_plain:
        raise _no_url(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            f"the server {parts.hostname} is given with a user, password, query or fragment; give "
            "its base URL, and keys as credentials, so that they are not kept"
        )
    return url.rstrip("/")


def _no_url(url: str, error: ValueError | None = None) -> UsageError:
    reason = "" if error is None else f" ({error})"
    return UsageError(
        f"the server {url!r:.200} is not an http or https URL{reason}; give one such as https://api.example.com"
    )


_UNICAST = ipaddress.ip_network("2000::/3")  # the only part of IPv6 from which addresses are given
_TUNNELS = tuple(map(ipaddress.ip_network, ("2001::/23", "2002::/16", "3fff::/20")))
"""Its exceptions: Teredo, 6to4 and other special purposes, which may embed any IPv4 address."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_INNER = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")))
"""IPv4 that registries of some Python versions call global: protocol assignments (among them
Oracle's metadata service), relays of 6to4, and Azure's services for its machines."""


class NotPublicError(Exception):
    """A server that only this network may reach."""


def is_remote(reference: str) -> bool:
    """Whether a document came from a public place, as far as its URL tells.

    Example:
        >>> is_remote("https://example.com/openapi.json"), is_remote("pets.yaml")
        (True, False)
        >>> is_remote("http://localhost:8000/openapi.json"), is_remote("http://10.0.0.2/api.json")
        (False, False)
        >>> is_remote("s3://bucket/api.json"), is_remote("file:///home/ada/api.json")
        (True, False)
    """
    try:
        parts = urlsplit(reference)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return True  # a URL that nobody can read is not known to be near
    scheme = parts.scheme.lower()
    is_file = scheme == "file" or len(scheme) == 1  # such as a drive of Windows
    if is_file or not (scheme or parts.netloc):
        return False
    if "\\" in reference:  # after which readers see different hosts
        return True
    try:
        return is_public(host)
    except ValueError:  # a name
        return host != "localhost" and not host.endswith(".localhost")


def is_public(address: str) -> bool:
    """Whether an IP address can be reached from everywhere, and not only from this network.

    Raises:
        ValueError: It is not an address.

    Example:
        >>> [is_public(one) for one in ("8.8.8.8", "169.254.169.254", "::ffff:127.0.0.1")]
        [True, False, False]
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is None:
            is_given = found in _UNICAST and not any(found in tunnel for tunnel in _TUNNELS)
            return is_given and found.is_global
        found = inner
    is_inner = any(found in network for network in _INNER)
    return found.is_global and not found.is_multicast and not is_inner


async def public_addresses(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, all of which are public.

    Raises:
        NotPublicError: One of them is not.
        OSError: The name is unknown.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if not is_public(address):
            raise NotPublicError(f"{host} is {address}, which is not a public address")
    return addresses


def public_transport(*, backend: httpcore.AsyncNetworkBackend | None = None) -> Any:
    """A transport of httpx that connects to public addresses, past any proxy.

    A name is looked up for each connection, and the connection goes to an address that was checked.
    A proxy would look names up itself.

    Args:
        backend: Opens connections; None for httpcore's own.
    """
    import httpcore
    import httpx

    transport = httpx.AsyncHTTPTransport()
    # httpx offers no argument for it; the pool has no connection yet that needed closing.
    transport._pool = httpcore.AsyncConnectionPool(  # noqa: SLF001
        ssl_context=httpx.create_ssl_context(),
        network_backend=_CheckedBackend(backend or httpcore.AnyIOBackend()),  # type: ignore[arg-type] # it is asked for no more than these two
    )
    return transport


class _CheckedBackend:
    """Opens connections to addresses that were checked, for httpcore."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend) -> None:
        self._inner = inner
        self.sleep = inner.sleep

    async def connect_tcp(
        self, host: str, port: int, *args: Any, **options: Any
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of a name that answers."""
        import httpcore

        try:
            addresses = await public_addresses(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, *args, **options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure
