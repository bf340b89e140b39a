"""What every request passes before an endpoint: ids, keys, errors in one form, counting."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from agentkit.server.keys import Keys
from agentkit.server.metrics import Counter, Histogram
from agentkit.server.runs import Receive

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_SERVER_ERROR = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why a request was not answered. A value: whoever finds it hands it on to be sent.

    Attributes:
        status: The HTTP status.
        message: What happened and what to do. Clients read it, so it holds nothing of the inside.
        code: A word for programs, such as ``invalid_api_key``.
        param: The field of the request, such as ``messages[2].content``.
        retry_after: Whole seconds after which the same request may succeed.
        episode_id: The episode of the run, if one had begun.
        episode_kept: Whether the store has that episode; otherwise it is tried again.
        headers: Further headers of the answer.
    """

    status: int
    message: str
    code: str
    param: str | None = None
    retry_after: int | None = None
    episode_id: str | None = None
    episode_kept: bool = True
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def type(self) -> str:
        """The family of the error, in OpenAI's words."""
        if self.status >= _SERVER_ERROR:
            return "server_error"
        return _TYPES.get(self.status, "invalid_request_error")

    def to_json(self) -> dict[str, Any]:
        """The body of the answer."""
        error: dict[str, Any] = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        if self.episode_id is not None:
            error["episode_id"] = self.episode_id
        if not self.episode_kept:
            error["episode_kept"] = False
        return {"error": error}

    def encoded(self) -> bytes:
        """The body as bytes."""
        return json.dumps(self.to_json()).encode()


def invalid(message: str, *, param: str | None = None, code: str = "invalid_value") -> Problem:
    """A request that can not be answered as it is."""
    return Problem(status=400, message=message, code=code, param=param)


def stopping(episode_id: str | None = None) -> Problem:
    """The server takes on nothing new, or has cut this run."""
    return Problem(
        status=503,
        message="the server is about to stop; another one may take the request",
        code="stopping",
        retry_after=1,
        episode_id=episode_id,
        headers=((b"connection", b"close"),),
    )


def store_unavailable(*, retry_after: float = 5.0, episode_id: str | None = None) -> Problem:
    """Without the store nothing is begun: an answer must have its episode."""
    return Problem(
        status=503,
        message="the store of episodes is not available, so no run began",
        code="store_unavailable",
        retry_after=max(1, math.ceil(retry_after)),
        episode_id=episode_id,
    )


def not_kept(episode_id: str) -> Problem:
    """The run has ended, and its answer is withheld because its episode is not kept yet."""
    return Problem(
        status=503,
        message="the run ended, but its episode could not be kept yet, so its answer is withheld; "
        "its tools may have acted, so do not send the request again",
        code="store_unavailable",
        episode_id=episode_id,
        episode_kept=False,
    )


Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

_LOG = logging.getLogger(__name__)

SCOPE_KEY = "agentkit"
"""Where the exchange is found in the scope of a request."""

_PIECE_BYTES = 1 << 16
_LINGER_BYTES = 16_000_000
_LINGER_SECONDS = 1.0


@dataclass(kw_only=True, slots=True)
class Exchange:
    """One request and its answer.

    Attributes:
        method: The request's method.
        path: Its path, below the one that the application is mounted at.
        headers: Its headers, names in lower case; repeated ones are joined by commas.
        receive: Gives the body, and tells when the client left.
        send_raw: Takes the answer.
        request_id: Names the exchange, in the answer and in records.
        send_seconds: How long one message may wait for the client to read.
        client: The client's address, as far as the server below knows it.
        key: Name of the key that was shown; empty when none is asked for.
        status: Status of the answer; 0 as long as it has not begun.
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
    left: bool = field(default=False)

    @property
    def who(self) -> str:
        """Whose request it is: a key's, or without keys an address's."""
        return self.key or self.client

    async def send(self, message: Message) -> None:
        """Hand on one ASGI message; the first one gets the id of the request.

        Nothing is sent to a client that left. One that keeps its connection and reads nothing
        from it counts as gone, so that it holds up nobody.
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
        except OSError:  # the specification's word for a client that left
            self.left = True

    async def answer(
        self, status: int, body: bytes, content_type: bytes, headers: Iterable[Header] = ()
    ) -> None:
        """Send a whole answer."""
        length = str(len(body)).encode()
        own = [(b"content-type", content_type), (b"content-length", length), *headers]
        await self.send({"type": "http.response.start", "status": status, "headers": own})
        # In pieces, for the server below holds a copy of what a slow client has not read yet.
        for at in range(0, len(body) - _PIECE_BYTES, _PIECE_BYTES):
            await self.send_piece(body[at : at + _PIECE_BYTES])
        rest = max(0, len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
        await self.send_piece(body[rest:], more=False)

    async def answer_json(
        self, body: bytes, *, status: int = 200, headers: Iterable[Header] = ()
    ) -> None:
        """Send a whole answer of JSON."""
        await self.answer(status, body, b"application/json", headers)

    async def answer_problem(self, problem: Problem) -> None:
        """Send an error."""
        headers = list(problem.headers)
        if problem.retry_after is not None:
            headers.append((b"retry-after", str(problem.retry_after).encode()))
        if problem.episode_id is not None:  # a run had begun: what its tools did is done
            headers.append((b"x-should-retry", b"false"))
        await self.answer_json(problem.encoded(), status=problem.status, headers=headers)

    async def start_stream(self, further: Iterable[Header] = ()) -> None:
        """Begin an answer of server-sent events."""
        headers = [
            *further,
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),  # nginx would collect the pieces
        ]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send_piece(self, piece: bytes, *, more: bool = True) -> None:
        """Send a part of a stream."""
        await self.send({"type": "http.response.body", "body": piece, "more_body": more})

    async def body(self, *, most: int, seconds: float) -> bytes | Problem | None:
        """The body of the request; None when the client left before it was complete.

        Args:
            most: How many bytes are taken.
            seconds: How long to wait for them.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._body(most)
        except TimeoutError:
            return Problem(
                status=408,
                message=f"the body did not arrive within {seconds:g} s",
                code="body_timeout",
                headers=((b"connection", b"close"),),
            )

    async def _body(self, most: int) -> bytes | Problem | None:
        announced = self.headers.get("content-length", "")
        parts: list[bytes] = []
        size = 0
        while size <= most and not (announced.isdecimal() and int(announced) > most):
            message = await self.receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            parts.append(part)
            if not message.get("more_body"):
                break
        else:
            await self._let_finish()
            return _too_large(most)
        return b"".join(parts) if size <= most else _too_large(most)

    async def _let_finish(self) -> None:
        """Read on a little: a client that is still sending would not read the answer."""
        size = 0
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while size < _LINGER_BYTES:
                    message = await self.receive()
                    size += len(message.get("body", b""))
                    if message["type"] == "http.disconnect" or not message.get("more_body"):
                        return
        except TimeoutError:
            return


def _too_large(most: int) -> Problem:
    return Problem(
        status=413,
        message=f"the body is larger than {most:,} bytes",
        code="body_too_large",
        headers=((b"connection", b"close"),),
    )


_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_OTHER = "(other)"

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""What this machine calls itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """Who gets in.

    Attributes:
        keys: The keys; None lets everybody in.
        open_paths: Paths that need no key.
        hosts: Names that a request may have addressed the server by; empty for any. A server
            without keys would otherwise answer web pages that lead their own name to it.
    """

    keys: Keys | None
    open_paths: frozenset[str]
    hosts: Sequence[str] = ()

    def problem(self, exchange: Exchange) -> Problem | None:
        """Why the request is not let in; otherwise its key is noted."""
        if self.hosts and _host(exchange.headers.get("host", "")) not in self.hosts:
            return Problem(
                status=421,
                message="this server does not answer to that host name",
                code="unknown_host",
            )
        if exchange.path in self.open_paths or self.keys is None:
            return _not_json(exchange)
        scheme, _, presented = exchange.headers.get("authorization", "").partition(" ")
        holder = self.keys.holder(presented.strip()) if scheme.lower() == "bearer" else None
        if holder is None:
            return Problem(
                status=401,
                message="no valid key; send the header Authorization: Bearer KEY",
                code="invalid_api_key",
                headers=((b"www-authenticate", b"Bearer"),),
            )
        exchange.key = holder
        return _not_json(exchange)


class Counting(Protocol):
    """Where requests are counted.

    Attributes:
        requests: By route, status and key.
        seconds: To the end of the answer, by route.
    """

    requests: Counter
    seconds: Histogram


class Front:
    """An ASGI application around another one: ids, keys, errors in one form, counting.

    Args:
        app: What answers.
        admission: Who gets in.
        measures: Where requests are counted.
        routes: Paths that are counted under their own name.
        send_seconds: How long a client may read nothing of what is sent to it.
    """

    def __init__(
        self,
        app: App,
        *,
        admission: Admission,
        measures: Counting,
        routes: Sequence[str],
        send_seconds: float,
    ) -> None:
        self._app = app
        self._admission = admission
        self._measures = measures
        self._routes = frozenset(routes)
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _exchange(scope, receive, send, send_seconds=self._send_seconds)
        began = time.perf_counter()
        try:
            await self._through(scope, exchange)
        finally:
            self._count(exchange, time.perf_counter() - began)

    async def _through(self, scope: Scope, exchange: Exchange) -> None:
        problem = self._admission.problem(exchange)
        if problem is not None:
            await exchange.answer_problem(problem)
            return
        scope[SCOPE_KEY] = exchange
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:
            _LOG.exception("request %s failed", exchange.request_id)
            if exchange.status:
                raise  # too late for a status: the server cuts the connection
            message = f"something unexpected went wrong ({type(error).__name__})"
            failed = Problem(status=500, message=message, code="internal_error")
            await exchange.answer_problem(failed)

    def _count(self, exchange: Exchange, seconds: float) -> None:
        route = exchange.path if exchange.path in self._routes else _OTHER
        self._measures.requests.add(route, str(exchange.status), exchange.key)
        self._measures.seconds.observe(seconds, route)
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
    headers = _joined(scope["headers"])
    wanted = headers.get("x-request-id", "")
    request_id = wanted if _REQUEST_ID.fullmatch(wanted) else f"req_{os.urandom(12).hex()}"
    return Exchange(
        method=scope["method"],
        path=_own_path(scope["path"], scope.get("root_path", "")),
        headers=headers,
        receive=receive,
        send_raw=send,
        request_id=request_id,
        send_seconds=send_seconds,
        client=str((scope.get("client") or ("",))[0]),
    )


def _joined(fields: Iterable[Header]) -> dict[str, str]:
    """Headers by name, repeated ones joined by commas (RFC 9110, 5.3).

    So two Authorization headers are none: a proxy in front might have looked at the other one.
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _own_path(path: str, root: str) -> str:
    """The path below the one that the application is mounted at."""
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0].lower() + "]"
    return header.partition(":")[0].lower()


def _not_json(exchange: Exchange) -> Problem | None:
    """A body must say that it is JSON: web pages can send other ones without asking first."""
    if exchange.method != "POST":
        return None
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    message = "send the header Content-Type: application/json"
    return Problem(status=415, message=message, code="unsupported_media_type")
