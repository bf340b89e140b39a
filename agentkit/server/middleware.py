"""Middleware before every endpoint: ids, keys, uniform errors, counting."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

from h11 import LocalProtocolError

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.server.keys import Keys
from agentkit.server.metrics import Metrics
from agentkit.tools.invocation import is_tool_error

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

_LOG = logging.getLogger(__name__)

SCOPE_KEY = "agentkit"
"""Key of the exchange in a request's scope."""

CLIENT_LEFT = 499
"""nginx' status for a client that did not wait for the answer; it stands in logs and metrics."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine."""

CLOSE: Header = (b"connection", b"close")
NO_RETRY: Header = (b"x-should-retry", b"false")

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_PIECE_BYTES = 1 << 16
_LINGER_BYTES = 16_000_000
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_OTHER = "(other)"


@dataclass(kw_only=True, eq=False)
class RequestError(Exception):
    """Why a request is not answered; raised where found, and sent to the client.

    Attributes:
        status: The HTTP status.
        message: What happened and what to do. Clients read it, so it holds nothing of the inside.
        code: A word for programs, such as ``invalid_api_key``.
        param: The field of the request, such as ``messages[2].content``.
        retry_after: Whole seconds after which the same request may succeed.
        episode_id: The episode of the run, if one had started.
        episode_kept: Whether the store has that episode; otherwise it is tried again.
        headers: Further headers of the answer.
    """

    status: int = 400
    message: str
    code: str = "invalid_value"
    param: str | None = None
    retry_after: int | None = None
    episode_id: str | None = None
    episode_kept: bool = True
    headers: tuple[Header, ...] = ()

    def encoded(self) -> bytes:
        """The body of the answer, in OpenAI's form."""
        usual = "server_error" if self.status >= 500 else "invalid_request_error"
        kind = _TYPES.get(self.status, usual)
        error: dict[str, object] = {}
        error |= {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        error |= {} if self.episode_id is None else {"episode_id": self.episode_id}
        error |= {} if self.episode_kept else {"episode_kept": False}
        return json.dumps({"error": error}).encode()


class BrokenAnswerError(Exception):
    """An answer that had begun could not be ended; the log tells why."""


class ClientLeftError(Exception):
    """The client is gone, so nobody reads an answer."""


def stopping(episode_id: str | None = None) -> RequestError:
    """The server takes on nothing new, or has cut this run."""
    return RequestError(
        status=503,
        message="the server is about to stop; another one may take the request",
        code="stopping",
        retry_after=1,
        episode_id=episode_id,
        headers=(CLOSE,),
    )


def store_unavailable(
    what: str = "the store of episodes is not available, so no run began",
    *,
    retry_after: float = 5.0,
    episode_id: str | None = None,
) -> RequestError:
    """Without the store nothing is begun: an answer must have its episode."""
    return RequestError(
        status=503,
        message=what,
        code="store_unavailable",
        retry_after=max(1, math.ceil(retry_after)),
        episode_id=episode_id,
    )


@dataclass(kw_only=True, slots=True)
class Exchange:
    """One request and its answer.

    Attributes:
        method: The request's method.
        path: Its path, below the one that the application is mounted at.
        headers: Its headers, names in lower case; repeated ones are joined by commas (RFC 9110,
            5.3). So two Authorization headers are none: a proxy might have looked at the other.
        receive: Yields the body, and reports when the client disconnects.
        send_raw: Takes the answer.
        request_id: Names the exchange, in the answer and in records.
        send_seconds: How long one message may wait for the client to read.
        client: The client's address, as far as the server below knows it.
        key: Name of the key that was shown; empty when none is asked for.
        status: Status of the answer; 0 before it starts.
        left: Whether the client is known to be gone.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    receive: Receive
    send_raw: Send
    request_id: str
    send_seconds: float
    client: str = ""
    key: str = ""
    status: int = 0
    left: bool = False

    @property
    def who(self) -> str:
        """Whose request it is: a key's, or without keys an address's."""
        return self.key or self.client

    async def send(self, message: Message) -> None:
        """Hand on one ASGI message; the first one gets the id of the request.

        Nothing is sent to a client that left. One that keeps its connection and reads nothing
        from it counts as gone, so that it delays nobody.
        """
        if self.left:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = (b"x-request-id", self.request_id.encode())
            message = {**message, "headers": [*message.get("headers", ()), own]}
        try:
            async with asyncio.timeout(self.send_seconds):
                await self.send_raw(message)
        except TimeoutError:
            _LOG.warning("request %s: the client does not read", self.request_id)
            self.left = True
        except (OSError, LocalProtocolError):  # it left, or sent what is no HTTP and was told so
            self.left = True

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """Begin an answer."""
        await self.send({"type": "http.response.start", "status": status, "headers": [*headers]})

    async def send_piece(self, piece: bytes, *, more: bool = True) -> None:
        """Send a part of an answer that has begun."""
        await self.send({"type": "http.response.body", "body": piece, "more_body": more})

    async def answer(
        self,
        body: bytes,
        *,
        status: int = 200,
        content_type: bytes = b"application/json",
        headers: Iterable[Header] = (),
    ) -> None:
        """Send a whole answer."""
        length = str(len(body)).encode()
        own = [(b"content-type", content_type), (b"content-length", length)]
        await self.start(status, [*own, *headers])
        # In pieces, for the server below holds a copy of what a slow client has not read yet.
        for at in range(0, max(1, len(body)), _PIECE_BYTES):
            end = at + _PIECE_BYTES
            await self.send_piece(body[at:end], more=end < len(body))

    async def answer_error(self, error: RequestError) -> None:
        """Send an error."""
        headers = list(error.headers)
        if error.retry_after is not None:
            headers.append((b"retry-after", str(error.retry_after).encode()))
        if error.episode_id is not None:  # a run had started: what its tools did is done
            headers.append(NO_RETRY)
        await self.answer(error.encoded(), status=error.status, headers=headers)

    async def body(self, *, most: int, seconds: float) -> bytes:
        """The body of the request.

        Args:
            most: How many bytes are taken.
            seconds: How long to wait for them.

        Raises:
            RequestError: The body is too large, or does not come.
            ClientLeftError: The client left before it was complete.
        """
        body, size, more = bytearray(), 0, True
        try:
            async with asyncio.timeout(seconds):
                # A client that is still sending would not read the answer, so some more is read.
                while more and size <= most + _LINGER_BYTES:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeftError
                    piece = message.get("body", b"")
                    size += len(piece)
                    body += piece if size <= most else b""
                    more = message.get("more_body", False)
        except TimeoutError as error:
            raise RequestError(
                status=408,
                message=f"the body did not arrive within {seconds:g} s",
                code="body_timeout",
                headers=(CLOSE,),
            ) from error
        if size > most:
            raise RequestError(
                status=413,
                message=f"the body is larger than {most:,} bytes",
                code="body_too_large",
                headers=(CLOSE,),
            )
        return bytes(body)


@dataclass(eq=False)
class Front:
    """An ASGI application around another one: ids, keys, errors in one form, counting.

    Attributes:
        app: What answers.
        keys: Who is admitted; None lets everybody in.
        open_paths: Paths that need no key.
        hosts: Names that a request may have addressed the server by; empty for any. A server
            without keys would otherwise answer web pages that lead their own name to it.
        metrics: Where requests are counted.
        routes: Paths that are counted under their own name.
        send_seconds: How long a client may read nothing of what is sent to it.
    """

    app: App
    _: KW_ONLY
    keys: Keys | None
    open_paths: frozenset[str]
    hosts: Sequence[str]
    metrics: Metrics
    routes: Collection[str]
    send_seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand on what is none."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _exchange(scope, receive, send, send_seconds=self.send_seconds)
        began = time.perf_counter()
        try:
            self._admit(exchange)
            scope[SCOPE_KEY] = exchange
            await self.app(scope, exchange.receive, exchange.send)
        except ClientLeftError:
            exchange.status = exchange.status or CLIENT_LEFT
        except BaseException as error:
            if not is_tool_error(error):
                raise
            await self._failed(exchange, error)
        finally:
            self._count(exchange, time.perf_counter() - began)

    def _admit(self, exchange: Exchange) -> None:
        """Note the key of a request.

        Raises:
            RequestError: It is not admitted.
        """
        if self.hosts and _host(exchange.headers.get("host", "")) not in self.hosts:
            message = "this server does not answer to that host name"
            raise RequestError(status=421, message=message, code="unknown_host")
        if exchange.path not in self.open_paths and self.keys is not None:
            scheme, _, presented = exchange.headers.get("authorization", "").partition(" ")
            holder = self.keys.holder(presented.strip()) if scheme.lower() == "bearer" else None
            if holder is None:
                raise RequestError(
                    status=401,
                    message="no valid key; send the header Authorization: Bearer KEY",
                    code="invalid_api_key",
                    headers=((b"www-authenticate", b"Bearer"),),
                )
            exchange.key = holder
        # A body must say that it is JSON: web pages can send other ones without asking first.
        kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
        if exchange.method == "POST" and kind != "application/json":
            message = "send the header Content-Type: application/json"
            raise RequestError(status=415, message=message, code="unsupported_media_type")

    async def _failed(self, exchange: Exchange, error: BaseException) -> None:
        reported = error
        if not isinstance(reported, RequestError):
            episodes.log_failure(_LOG, error, "request %s failed", exchange.request_id)
            message = f"something unexpected went wrong ({type(error).__name__})"
            reported = RequestError(  # a run may have begun: what its tools did is done
                status=500, message=message, code="internal_error", headers=(NO_RETRY,)
            )
        if exchange.status:
            # Too late for a status: the server cuts the connection, and logs what is raised here.
            raise BrokenAnswerError from None
        await exchange.answer_error(reported)

    def _count(self, exchange: Exchange, seconds: float) -> None:
        route = exchange.path if exchange.path in self.routes else _OTHER
        self.metrics.count("agentkit_requests_total", route, str(exchange.status), exchange.key)
        self.metrics.time("agentkit_request_seconds", seconds, route)
        _LOG.info(
            "%s %s %d %.1f ms key=%s request=%s",
            exchange.method,
            route,
            exchange.status,
            seconds * 1000,
            exchange.key or "-",
            exchange.request_id,
        )


def _exchange(scope: Scope, receive: Receive, send: Send, *, send_seconds: float) -> Exchange:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    sent_id, path, root = headers.get("x-request-id", ""), scope["path"], scope.get("root_path", "")
    return Exchange(
        method=scope["method"],
        path=path.removeprefix(root) if path.startswith(f"{root}/") else path,
        headers=headers,
        receive=receive,
        send_raw=send,
        request_id=sent_id if _REQUEST_ID.fullmatch(sent_id) else f"req_{os.urandom(12).hex()}",
        send_seconds=send_seconds,
        client=str((scope.get("client") or ("",))[0]),
    )


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    end = "]" if header.startswith("[") else ":"
    name = header.partition(end)[0].lower()
    return f"{name}]" if end == "]" else name
