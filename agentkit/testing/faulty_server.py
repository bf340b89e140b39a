"""``FaultyServer``: a chat-completions server on loopback that fails the way real ones do.

Standard library only. It runs in a thread of its own, so that it serves synchronous and
asynchronous code alike, and answers each request with the next step of its script.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, assert_never

from agentkit.errors import UsageError
from agentkit.messages import JsonObject, ToolCall

_USAGE: Mapping[str, int] = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A good answer; streamed when the request asks for it.

    Attributes:
        text: The answer's text.
        tool_calls: Calls to answer with; a ``malformed`` one is sent as its text.
        finish_reason: Why the model stopped; None says ``tool_calls`` or ``stop``.
        usage: Token counts; None leaves them out.
        seconds: Wait before answering.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None
    usage: JsonObject | None = field(default_factory=lambda: dict(_USAGE))
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RawReply:
    """Any status, headers and body: invalid JSON, a wrong shape, an error page.

    Attributes:
        body: Text as it is, or data to send as JSON.
        status: The status code.
        headers: Further headers, such as ``{"Retry-After": "2"}``.
        content_type: The type the server claims.
    """

    body: str | JsonObject | Sequence[Any] = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorStatus:
    """An error in OpenAI's form.

    Attributes:
        status: The status code.
        message: The provider's words.
        retry_after: Value of the Retry-After header: seconds, or an HTTP date.
    """

    status: int
    message: str = "scripted failure"
    retry_after: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reset:
    """The connection is reset.

    Attributes:
        after_bytes: How much of a good answer is sent before.
    """

    after_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stall:
    """The server sends a part of a good answer and then nothing, until the client goes.

    Attributes:
        after_bytes: How much of the answer is sent.
    """

    after_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class HalfStream:
    """A stream that ends in good order before the answer does.

    Attributes:
        text: The text of the whole answer.
        events: How many of its events are sent.
    """

    text: str = "This answer never ends."
    events: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class RawStream:
    """A stream of exactly these pieces of bytes, each sent on its own.

    Attributes:
        pieces: The bytes, cut where you like.
    """

    pieces: Sequence[bytes]


Step: TypeAlias = Reply | RawReply | ErrorStatus | Reset | Stall | HalfStream | RawStream


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedRequest:
    """What a client sent.

    Attributes:
        path: Path and query.
        headers: The headers, names in lower case.
        body: The decoded JSON body.
    """

    path: str
    headers: Mapping[str, str]
    body: JsonObject


class FaultyServer:
    """Answers each request with the next step of a script.

    A context manager: it listens on a free port of the loopback interface inside the context. A
    script that is spent answers 400, which no client retries.

    Args:
        script: The steps, in order; a string stands for ``Reply(text=...)``.

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

    def __init__(self, script: Iterable[Step | str]) -> None:
        self._script = [Reply(text=step) if isinstance(step, str) else step for step in script]
        for step in self._script:
            if not isinstance(step, Step):
                raise UsageError(f"{step!r} is not a step of a FaultyServer; use a string or Reply")
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
        step = self._step()
        streams = bool(request.body.get("stream"))
        match step:
            case Reply():
                await asyncio.sleep(step.seconds)
                writer.write(_good(step, streams=streams))
            case RawReply() | ErrorStatus():
                writer.write(_raw(step))
            case Reset(after_bytes=count):
                await _send(writer, _good(Reply(text="never read"), streams=streams)[:count])
                _reset(writer)
            case Stall(after_bytes=count):
                writer.write(_good(Reply(text="never read"), streams=streams)[:count])
                await reader.read()  # ends when the client hangs up
            case HalfStream():
                events = _events(Reply(text=step.text))[: step.events]
                writer.write(_STREAM_HEAD + b"".join(map(_chunk, events)) + _LAST_CHUNK)
            case RawStream(pieces=pieces):
                writer.write(_STREAM_HEAD)
                for piece in pieces:
                    await _send(writer, _chunk(piece))
                writer.write(_LAST_CHUNK)
            case _:
                assert_never(step)
        await writer.drain()

    def _step(self) -> Step:
        if self._next >= len(self._script):
            return ErrorStatus(
                status=400, message=f"the script of {len(self._script)} steps is spent"
            )
        step = self._script[self._next]
        self._next += 1
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


def _good(reply: Reply, *, streams: bool) -> bytes:
    if streams:
        return _STREAM_HEAD + b"".join(map(_chunk, _events(reply))) + _LAST_CHUNK
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    completion: dict[str, Any] = {"id": "c", "model": "faulty", "choices": [choice]}
    if reply.usage is not None:
        completion["usage"] = reply.usage
    return _http(200, json.dumps(completion).encode(), "application/json", {})


def _events(reply: Reply) -> list[bytes]:
    """The events of a streamed answer: words one by one, arguments in halves."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in reply.text.split(" ")[:-1]]
    deltas += [{"content": word} for word in reply.text.split(" ")[-1:] if word]
    for index, call in enumerate(_calls(reply)):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        first = {**call, "function": {**call["function"], "arguments": arguments[:half]}}
        rest = {"index": index, "function": {"arguments": arguments[half:]}}
        deltas += [{"tool_calls": [{"index": index, **first}]}, {"tool_calls": [rest]}]
    events = [_event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(_event([{"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}]))
    if reply.usage is not None:
        events.append(_event([], usage=reply.usage))
    return [*events, b"data: [DONE]\n\n"]


def _event(choices: Sequence[JsonObject], **further: Any) -> bytes:
    chunk = {"id": "c", "model": "faulty", "choices": choices, **further}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(dict(call.arguments))
                if call.malformed is None
                else call.malformed,
            },
        }
        for call in reply.tool_calls
    ]


def _finish_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _raw(step: RawReply | ErrorStatus) -> bytes:
    if isinstance(step, ErrorStatus):
        body = json.dumps({"error": {"message": step.message, "type": "scripted"}})
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
    """Close so that the client sees a reset and not an orderly end."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
