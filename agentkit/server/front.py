"""``Front``: what every request passes before it reaches an endpoint."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentkit.server.exchange import SCOPE_KEY, App, Exchange, Header, Scope, Send
from agentkit.server.keys import Keys
from agentkit.server.problem import Problem
from agentkit.server.prometheus import Counter, Histogram
from agentkit.server.runs import Receive

_LOG = logging.getLogger(__name__)
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
