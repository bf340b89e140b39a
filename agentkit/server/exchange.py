"""``Exchange``: one request and its answer, over ASGI."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentkit.server.problem import Problem
from agentkit.server.runs import Receive

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
