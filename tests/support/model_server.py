"""Model servers on loopback that fail the way real ones do.

Standard library only. A server runs in a thread of its own, so that it serves synchronous and
asynchronous code alike, and answers each request with the next step of its script, in the protocol
of the path that was asked: chat completions, OpenAI's responses or Anthropic's messages.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Self, assert_never
from urllib.parse import urlsplit

from agentkit.errors import UsageError
from support.provider_protocols import CHAT, MESSAGES, RESPONSES, Dialect
from support.server_steps import (
    ErrorStatus,
    HalfStream,
    RawReply,
    RawStream,
    ReceivedRequest,
    Reply,
    Reset,
    Stall,
    Step,
)

DIALECTS = (CHAT, MESSAGES, RESPONSES)
"""The protocols that are spoken."""


class FaultyServer:
    """Answers each request with the next step of a script.

    A context manager: it listens on a free port of the loopback interface inside the context. A
    script that is spent answers 400, which no client retries.

    Args:
        script: The steps, in order, or a function from a request to its step, which is called in
            the server's thread; a string stands for ``Reply(text=...)``.

    Attributes:
        requests: What was received so far, in order.
        connections: How many connections were opened so far.

    Raises:
        UsageError: A step is none of the kinds above.

    Example:
        >>> import asyncio
        >>> from agentkit.models.base import ModelRequest
        >>> from agentkit.models.openai_compatible import OpenAICompatibleModel
        >>> from agentkit.messages import UserMessage
        >>> with FaultyServer([ErrorStatus(status=503, retry_after="0"), "hello"]) as server:
        ...     model = OpenAICompatibleModel("m", base_url=server.base_url)
        ...     request = ModelRequest(messages=(UserMessage(text="hi"),))
        ...     asyncio.run(model.complete(request)).message.text
        'hello'
    """

    def __init__(
        self, script: Iterable[Step | str] | Callable[[ReceivedRequest], Step | str]
    ) -> None:
        self._answers = script if callable(script) else None
        self._script = [] if callable(script) else [_checked(step) for step in script]
        self._next = 0
        self._base_url = ""
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="faulty-server", daemon=True)
        self.requests: list[ReceivedRequest] = []
        self.connections = 0

    @property
    def base_url(self) -> str:
        """What to give a model as ``base_url``."""
        return self._base_url

    @property
    def root_url(self) -> str:
        """``base_url`` without the version, as Anthropic's SDK wants it."""
        return self._base_url.removesuffix("/v1")

    @property
    def open_connections(self) -> int:
        """How many connections are open now."""
        return len(self._open)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self._base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        talks = dict(self._open)
        for writer in talks:
            writer.transport.abort()
        await asyncio.gather(*talks.values())  # each notices that its connection is gone

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections += 1
        self._open[writer] = task
        try:
            while (request := await _receive(reader)) is not None:
                self.requests.append(request)
                await self._answer(request, reader, writer)
        except ConnectionError:
            pass  # the client went away, which is its right and often the point of the test
        finally:
            del self._open[writer]
            writer.close()

    async def _answer(
        self, request: ReceivedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        step = self.step_for(request)
        dialect = dialect_of(request.path) or CHAT
        streams = bool(request.body.get("stream"))
        match step:
            case Reply():
                await asyncio.sleep(step.seconds)
                pieces = _good(step, request, dialect)
                for piece in pieces if streams and step.piece_bytes else [b"".join(pieces)]:
                    await _send(writer, piece)
            case RawReply() | ErrorStatus():
                writer.write(_raw(step, dialect))
            case Reset(after_bytes=count):
                good = _good(Reply(text="never read"), request, dialect)
                await _send(writer, b"".join(good)[:count])
                _reset(writer)
            case Stall(after_bytes=count):
                good = _good(Reply(text="never read"), request, dialect)
                writer.write(b"".join(good)[:count])
                await reader.read()  # ends when the client hangs up
            case HalfStream():
                events = dialect.events(Reply(text=step.text), request.body)[: step.events]
                writer.write(_STREAM_HEAD + b"".join(map(_chunk, events)) + _LAST_CHUNK)
            case RawStream(pieces=pieces):
                writer.write(_STREAM_HEAD)
                for piece in pieces:
                    await _send(writer, _chunk(piece))
                writer.write(_LAST_CHUNK)
            case _:
                assert_never(step)
        await writer.drain()

    def step_for(self, request: ReceivedRequest) -> Step:
        """The next step of the script, which this takes."""
        if self._answers is not None:
            return _checked(self._answers(request))
        if self._next >= len(self._script):
            return ErrorStatus(
                status=400, message=f"the script of {len(self._script)} steps is spent"
            )
        step = self._script[self._next]
        self._next += 1
        return step


def dialect_of(path: str) -> Dialect | None:
    """The protocol that is spoken at a path; None for a path that has none."""
    bare = urlsplit(path).path
    return next((one for one in DIALECTS if bare.endswith(one.path)), None)


def _checked(step: Step | str) -> Step:
    if isinstance(step, str):
        return Reply(text=step)
    if not isinstance(step, Step):
        raise UsageError(f"{step!r} is not a step of a FaultyServer; use a string or Reply")
    return step


_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_LAST_CHUNK = b"0\r\n\r\n"
_TLS_HANDSHAKE = b"\x16"


async def _receive(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    """The next request, or None when the client is done."""
    try:
        start = await reader.readexactly(1)
        if start == _TLS_HANDSHAKE:  # an https URL: hang up, as plain servers do
            return None
        head = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        pairs = [line.partition(":") for line in lines]
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except asyncio.IncompleteReadError:
        return None
    return ReceivedRequest(path=first.split(" ")[1], headers=headers, body=json.loads(body or "{}"))


def _good(reply: Reply, request: ReceivedRequest, dialect: Dialect) -> list[bytes]:
    """The answer, in the pieces in which it is to be sent."""
    if not request.body.get("stream"):
        body = json.dumps(dialect.whole(reply, request.body)).encode()
        return [_http(200, body, "application/json", {})]
    events = dialect.events(reply, request.body)
    if reply.piece_bytes:
        data, size = b"".join(events), reply.piece_bytes
        events = [data[begin : begin + size] for begin in range(0, len(data), size)]
    return [_STREAM_HEAD, *map(_chunk, events), _LAST_CHUNK]


def _raw(step: RawReply | ErrorStatus, dialect: Dialect) -> bytes:
    if isinstance(step, ErrorStatus):
        body = json.dumps(dialect.error(step))
        headers = {} if step.retry_after is None else {"Retry-After": step.retry_after}
        return _http(step.status, body.encode(), "application/json", headers)
    text = step.body if isinstance(step.body, str) else json.dumps(step.body)
    return _http(step.status, text.encode(), step.content_type, step.headers)


def _http(status: int, body: bytes, content_type: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Type: {content_type}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write, and let the client read it before anything else is sent."""
    writer.write(data)
    await writer.drain()
    await asyncio.sleep(0.001)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the client sees a reset and not an orderly end, unless it is gone already."""
    if writer.is_closing():
        return
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class ProviderServer(FaultyServer):
    """Speaks chat completions, OpenAI's responses and Anthropic's messages, as providers do.

    A request with a wrong key, for an unknown model, to an unknown path or against the rules of its
    protocol is refused as the provider would, and takes no step of the script.

    Args:
        script: As for ``FaultyServer``.
        models: The models that it has; empty takes any name.
        api_key: The key that it wants, as ``Authorization: Bearer`` or ``x-api-key``; empty takes
            any.

    Example:
        >>> import asyncio
        >>> from agentkit.models.base import ModelRequest
        >>> from agentkit.models.openai_compatible import OpenAICompatibleModel
        >>> from agentkit.messages import UserMessage
        >>> request = ModelRequest(messages=(UserMessage(text="hi"),))
        >>> with ProviderServer(["hello"], models=["qwen3"]) as server:
        ...     model = OpenAICompatibleModel("qwen3", base_url=server.base_url)
        ...     asyncio.run(model.complete(request)).message.text
        'hello'
    """

    def __init__(
        self,
        script: Iterable[Step | str] | Callable[[ReceivedRequest], Step | str],
        *,
        models: Collection[str] = (),
        api_key: str = "",
    ) -> None:
        super().__init__(script)
        self._models = frozenset(models)
        self._api_key = api_key

    def step_for(self, request: ReceivedRequest) -> Step:
        """A refusal, or the next step of the script."""
        return self._refusal(request) or super().step_for(request)

    def _refusal(self, request: ReceivedRequest) -> ErrorStatus | None:
        dialect = dialect_of(request.path)
        if dialect is None:
            known = ", ".join(dialect.path for dialect in DIALECTS)
            return ErrorStatus(status=404, message=f"no path {request.path}; known: {known}")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._api_key and self._api_key not in {given, request.headers.get("x-api-key")}:
            return ErrorStatus(status=401, message="invalid API key")
        model = request.body.get("model")
        if self._models and model not in self._models:
            return ErrorStatus(status=404, message=f"the model {model!r} does not exist")
        problem = dialect.problem(request.body)
        return ErrorStatus(status=400, message=problem) if problem else None
