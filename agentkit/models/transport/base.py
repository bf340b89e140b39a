"""The seam to HTTP libraries: ``Transport``, one request in full or as a stream.

A transport moves bytes and says when it can not. Deadlines, retries, status codes and the protocol
are the adapter's business.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit, urlunsplit

from agentkit.errors import ModelConnectionError

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """A whole answer.

    Attributes:
        status: The status code.
        headers: The headers; names in any case.
        body: The decoded body (content encodings undone).
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpStream(Protocol):
    """An answer whose body is still arriving."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names in any case."""
        ...

    async def read(self) -> bytes:
        """The next piece of the body; empty at its end.

        Raises:
            ModelConnectionError: The connection was cut before the end.
        """
        ...


class Transport(Protocol):
    """Sends POST requests; keeps connections open between them."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send one request and wait for the whole answer.

        Raises:
            ModelConnectionError: The server can not be reached or hung up.
            ModelTimeoutError: An injected client gave up waiting.
        """
        ...

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[HttpStream]:
        """Send one request; the answer's body arrives inside the context.

        Leaving the context early closes the connection. Errors are those of ``post``.
        """
        ...

    async def close(self) -> None:
        """Close the connections that this transport opened; a later request opens new ones."""
        ...


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
    """What servers are checked against: the machine's certificates and those of certifi.

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
