"""Where a description from elsewhere may send calls: to public addresses only.

Whoever writes a description chooses its servers. One that was fetched from the network could name
``localhost``, a machine of the private network or the metadata service of a cloud, and have an
agent read there for it (server-side request forgery). The name is looked up and all of its
addresses are held to the registries of special-purpose addresses (RFC 6890) before each call. A
name whose addresses change between that and the connection gets through; only a proxy can stop it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

from agentkit.errors import ToolFailed

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_remote(reference: str) -> bool:
    """Whether a document came from a public place, as far as its URL tells.

    Example:
        >>> is_remote("https://example.com/openapi.json"), is_remote("pets.yaml")
        (True, False)
        >>> is_remote("http://localhost:8000/openapi.json"), is_remote("http://10.0.0.2/api.json")
        (False, False)
    """
    try:
        parts = urlsplit(reference)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return True  # a URL that nobody can read is not known to be near
    if parts.scheme.lower() not in {"http", "https"}:
        return False
    try:
        return is_public(host)
    except ValueError:  # a name
        return host != "localhost" and not host.endswith(".localhost")


def is_public(address: str) -> bool:
    """Whether an IP address can be reached from everywhere.

    Raises:
        ValueError: It is no address.

    Example:
        >>> [is_public(one) for one in ("8.8.8.8", "169.254.169.254", "::ffff:127.0.0.1")]
        [True, False, False]
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            found = inner
    return found.is_global and not found.is_multicast


async def refuse_private(server: str) -> None:
    """Look a server's name up, and refuse it when it leads into the own network.

    Raises:
        ToolFailed: One of its addresses is not public.
    """
    host = urlsplit(server).hostname or ""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return  # it can not be reached, which the request itself will tell
    for address in dict.fromkeys(str(entry[4][0]) for entry in found):
        if not is_public(address):
            raise ToolFailed(
                f"{host} is {address}, which is not a public address, and the API's description "
                "comes from elsewhere: such a call could reach what only this network may. The "
                f"person who runs this program can allow it with server={server!r}"
            )
