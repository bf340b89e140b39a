"""Where a server is, and how the official client gets there."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.lowlevel

from agentkit.interop.mcp.listing import OVERSIZED, McpLimits, json_length
from agentkit.interop.mcp.screening import AnswerMender, error_message

if TYPE_CHECKING:
    import httpx2
    from anyio.abc import Process

_logger = logging.getLogger(__name__)
_LINES = 20
_HTTP_SECONDS = 30.0
_STREAM_SECONDS = 300.0
_STOP_SECONDS = 2.0
_MOST_STRAYS = 1_000
"""Lines in a row that are no messages; a server of them all is stopped."""
_MOST_SKIPPED = 10
"""How many times the limit of a line is read on, to look for its end."""
_MOST_VALUES = 300_000
"""In one message. Three bytes of JSON can become a hundred in memory, and take a microsecond."""

_FREE_PIECES = 4_000
_BYTES_A_PIECE = 64
"""A message may come in so many pieces, and in one more for so many bytes."""
_HELD_BACK = 4_096
"""Pieces are handed on together from so many bytes on, or at the end of a line."""
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,20}|"[^"\\]{1,200}")')

_MOST_WAITING = 100
"""Requests of a server whose answers it has not read yet."""
_LONGEST_ID = 1_000
_UNASKED = 10_000
"""Messages that answer nothing and are taken at once; ``_UNASKED_A_SECOND`` more each second."""
_UNASKED_A_SECOND = 1_000
_HEARD = frozenset(
    f"notifications/{name}"
    for name in ("tools/list_changed", "subscriptions/acknowledged", "cancelled")
)
"""What a server may tell us; each counts as ten messages, for the work it makes."""
_CHARS_A_MESSAGE = 10_000
"""So many characters of a message count as one more."""

Ended = Callable[[str], None]
"""Is told that the connection is over, and why when it was us who hung up."""


class Place(Protocol):
    """Where a server is."""

    def target(self, ended: Ended, limits: McpLimits) -> Any:
        """What the official ``Client`` takes: a transport, or a server in this process."""
        ...

    @property
    def where(self) -> str:
        """The place in words, without secrets; empty when there is none to name."""
        ...

    def last_words(self) -> str:
        """What the server wrote to stderr last, as far as that is known."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StdioPlace:
    """A program that is started for us.

    Attributes:
        command: The program.
        args: Its arguments.
        env: Further environment variables; the process gets no others but a few harmless ones.
        cwd: Its working directory.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    _words: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES), repr=False)

    def target(self, ended: Ended, limits: McpLimits) -> Any:
        """The official transport, watched for its end."""
        return _watched(self._transport(limits), ended, limits)

    @property
    def where(self) -> str:
        """The program; its arguments may hold secrets."""
        return self.command

    def last_words(self) -> str:
        """The end of its stderr."""
        return "\n".join(self._words)

    @asynccontextmanager
    async def _transport(self, limits: McpLimits) -> AsyncIterator[Any]:
        from mcp.client.stdio import get_default_environment

        self._words.clear()
        with _read_lines(self._heard) as stderr:
            process = await anyio.open_process(
                [self.command, *self.args],
                env=get_default_environment() | dict(self.env),
                stderr=stderr,
                cwd=self.cwd,
                start_new_session=True,
            )
            stderr.close()  # the process has its own copy
            async with _process_streams(process, limits) as streams:
                yield streams

    def _heard(self, line: str) -> None:
        self._words.append(line[:500])
        _logger.info("%s: %s", self.command, line)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpPlace:
    """An address that speaks streamable HTTP.

    Attributes:
        url: Where it is.
        headers: Sent with each request, such as ``Authorization``.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def target(self, ended: Ended, limits: McpLimits) -> Any:
        """The official transport, watched for its end."""
        return _watched(self._transport(limits), ended, limits)

    @property
    def where(self) -> str:
        """The address without credentials and query."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))

    def last_words(self) -> str:
        """Nothing; it is another machine's business."""
        return ""

    @asynccontextmanager
    async def _transport(self, limits: McpLimits) -> AsyncIterator[Any]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def bound(response: httpx2.Response) -> None:
            response.stream = _bounded_body(response, limits.max_message_bytes)
            response.encoding = "utf-8"  # as JSON and events are; some codecs take quadratic time

        client = httpx2.AsyncClient(
            headers={**self.headers, "Accept-Encoding": "identity"},
            # The times that the official client takes by itself; answers may stream for long.
            timeout=httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS),
            event_hooks={"response": [bound]},
        )
        async with (
            client,
            streamable_http_client(
                self.url, http_client=client, max_sse_event_size=None
            ) as streams,
        ):
            yield streams


@dataclass(frozen=True, kw_only=True, slots=True)
class InProcessPlace:
    """A server object of the official library in this process, or a transport of your own.

    Attributes:
        server: What the official ``Client`` takes.
    """

    server: Any

    def target(self, ended: Ended, limits: McpLimits) -> Any:
        """The server itself; it can not hang up."""
        del ended, limits
        return self.server

    @property
    def where(self) -> str:
        """Nowhere else."""
        return ""

    def last_words(self) -> str:
        """Nothing; it writes to our own stderr."""
        return ""


class _Lines:
    """Parts what a program writes into lines; of a line that is too long nothing is kept.

    Attributes:
        skipped: Bytes of the line that were thrown away.
    """

    def __init__(self, most: int) -> None:
        self.skipped = 0
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The lines that end in the chunk; None as soon as one is too long."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            yield from self._add(part)
            if not self.skipped:
                yield b"".join(self._parts)
            self._parts, self._size, self.skipped = [], 0, 0
        yield from self._add(rest)

    def _add(self, part: bytes) -> Iterator[None]:
        if self.skipped:
            self.skipped += len(part)
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._most:
            self.skipped, self._parts = self._size, []
            yield None


class _ProcessReader:
    """Makes messages of what a server writes to stdout, and bounds it.

    Attributes:
        unanswered: Ids of the requests that wait for an answer.
    """

    def __init__(self, limits: McpLimits) -> None:
        self.unanswered: dict[Any, None] = {}
        self._most = limits.max_message_bytes
        self._lines = _Lines(self._most)
        self._strays = 0

    def messages(self, chunk: bytes) -> Iterator[Any]:
        """The messages that end in the chunk; each unanswered call fails where one is too long.

        Raises:
            EOFError: It makes no sense to read on.
        """
        for line in self._lines.feed(chunk):
            too_much = _too_long(self._most) if line is None else _too_many(_values_in(line))
            if line is None or too_much:
                yield from self._failures(OVERSIZED, too_much)
                continue
            try:
                message = self._message(line)
            except ValueError as error:
                yield from self._unreadable(line, str(error))
                continue
            if message is not None:
                self._strays = 0
                self.unanswered.pop(getattr(message, "id", None), None)
                yield message
            else:
                self._strays += 1
                if self._strays > _MOST_STRAYS:
                    yield from self._give_up(
                        f"it wrote more than {_MOST_STRAYS:,} lines on stdout that are no "
                        f"messages, such as {line[:80]!r}; a server logs on stderr"
                    )
        if self._lines.skipped > _MOST_SKIPPED * self._most:
            yield from self._give_up("it wrote a line without an end")

    def _message(self, line: bytes) -> Any:
        """The message of a line; None for a line that is none, such as one of a log.

        Raises:
            ValueError: It was meant to be one.
        """
        from mcp_types import jsonrpc_message_adapter
        from pydantic import ValidationError

        if not line.lstrip().startswith(b"{"):
            return None
        try:
            return jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            why = str(error)[:300]
            if b'"jsonrpc"' in line:
                raise ValueError(
                    f"the server sent a message that can not be read: {why}"
                ) from error
            if not self._strays:
                _logger.warning("a server wrote a line that is no message: %s", why)
            return None

    def _unreadable(self, line: bytes, why: str) -> Iterator[Any]:
        """The failure of the call that a line wanted to answer, or of all where it does not say."""
        found = _ID.search(line)
        request_id: Any = None
        with contextlib.suppress(ValueError):
            request_id = json.loads(found[1]) if found else None
        if request_id in self.unanswered:
            del self.unanswered[request_id]
            yield error_message(request_id, OVERSIZED, why)
        else:
            yield from self._failures(OVERSIZED, why)

    def _failures(self, code: int, why: str) -> Iterator[Any]:
        failed, self.unanswered = self.unanswered, {}
        yield from (error_message(request_id, code, why) for request_id in failed)

    def _give_up(self, why: str) -> Iterator[Any]:
        from mcp_types import CONNECTION_CLOSED

        yield from self._failures(CONNECTION_CLOSED, why)
        raise EOFError(why)


@asynccontextmanager
async def _process_streams(process: Process, limits: McpLimits) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of messages of a process, which is stopped in the end.

    The official package has the same, but for limits: it keeps a line however long it is, and
    logs each line that is none of a message with the exception.
    """
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCRequest

    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    received, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, to_send = anyio.create_memory_object_stream[Any](0)
    reader = _ProcessReader(limits)
    gone = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

    async def read() -> None:
        async with received:
            with contextlib.suppress(*gone, EOFError):
                while True:
                    for message in reader.messages(await stdout.receive()):
                        await received.send(SessionMessage(message))
        with contextlib.suppress(*gone):
            while True:  # so that it can write to its end, and stop
                await stdout.receive()

    async def write() -> None:
        with contextlib.suppress(*gone):
            async with to_send:
                async for session_message in to_send:
                    message = session_message.message
                    if isinstance(message, JSONRPCRequest):
                        reader.unanswered[message.id] = None
                    text = message.model_dump_json(by_alias=True, exclude_unset=True)
                    await stdin.send(text.encode() + b"\n")
                return
        await received.aclose()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await _stop(process)
            tasks.cancel_scope.cancel()


async def _stop(process: Process) -> None:
    """Close a server's stdin, wait for its end, and then end it, as MCP says."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stdin.aclose()
    with anyio.move_on_after(_STOP_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 - wait() also waits for its children's pipes
            await anyio.sleep(0.01)
    if sys.platform == "win32":
        process.kill()
    elif process.returncode is None:
        from mcp.os.posix.utilities import terminate_posix_process_tree

        await terminate_posix_process_tree(process, _STOP_SECONDS)
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stdout.aclose()


def _bounded_body(response: httpx2.Response, most: int) -> Any:
    """The body of a response, which fails where one of its messages is too long, or in crumbs."""
    import httpx2

    inner: Any = response.stream
    is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    failure: type[Exception] = httpx2.SSEError if is_events else httpx2.StreamError
    encoding = response.headers.get("content-encoding", "identity")

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            if encoding.lower() != "identity":
                raise failure(
                    f"the answer is compressed ({encoding[:20]}), and was not asked to be"
                )
            counter, waiting = _Counter(most, is_events=is_events), bytearray()
            async for chunk in inner:
                if why := counter.too_much(chunk):
                    raise failure(why)
                if counter.pieces % 100 == 0:
                    await (
                        anyio.lowlevel.checkpoint()
                    )  # pieces that came together come without a pause
                waiting += chunk  # many small pieces would take the reader's time each
                if len(waiting) >= _HELD_BACK or (is_events and b"\n" in chunk):
                    yield bytes(waiting)
                    waiting.clear()
            if waiting:
                yield bytes(waiting)

        async def aclose(self) -> None:
            await inner.aclose()

    return Bounded()


class _Counter:
    """Counts what a message has come to; of a stream an event, which ends with an empty line."""

    def __init__(self, most: int, *, is_events: bool) -> None:
        self.pieces = 0
        self._most, self._is_events = most, is_events
        self._events = _Allowance()
        self._size = self._values = 0
        self._last = b""

    def too_much(self, chunk: bytes) -> str:
        """Why the message is too much with the chunk; empty when it is not."""
        end, counted = -1, chunk
        if self._is_events:
            text = (self._last + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if not self._events.take(text.count(b"\n\n")):
                return "the server sent events without end; ask for less"
            end = text.rfind(b"\n\n")
            counted = text[end + 2 :] if end >= 0 else chunk
            self._last = chunk[-3:]
        if end >= 0:
            self._size = self._values = self.pieces = 0
        self._size += len(counted)
        self._values += _values_in(counted)
        self.pieces += 1
        if self._size > self._most:
            return _too_long(self._most)
        if self.pieces > _FREE_PIECES + self._size // _BYTES_A_PIECE:
            return f"the server sent a message in more than {self.pieces - 1:,} pieces"
        return _too_many(self._values)


def _values_in(text: bytes) -> int:
    """How many values JSON holds, or a few more: signs in texts count, too."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _too_many(values: int) -> str:
    """Why that many values are too many; empty when they are not."""
    if values <= _MOST_VALUES:
        return ""
    return f"the server sent a message of more than {_MOST_VALUES:,} values; ask for less"


def _too_long(most: int) -> str:
    return (
        f"the server sent a message of more than {most:,} bytes; ask for less, or raise "
        f"McpLimits(max_message_bytes={most})"
    )


class _Allowance:
    """Takes so many things at once, and so many more each second."""

    def __init__(self) -> None:
        self._left, self._then = float(_UNASKED), time.monotonic()

    def take(self, count: int) -> bool:
        """Whether that many more are allowed."""
        now = time.monotonic()
        self._left = min(_UNASKED, self._left + (now - self._then) * _UNASKED_A_SECOND) - count
        self._then = now
        return self._left >= 0


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[Any], ended: Ended, limits: McpLimits
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a transport, on which a server is answered and bounded."""
    async with transport as (read, write), anyio.create_task_group() as tasks:
        replies, to_send = anyio.create_memory_object_stream[Any](_MOST_WAITING)
        sent = _SentMessages(write)
        tasks.start_soon(_reply, to_send, write)
        with replies, to_send:
            yield _WatchedStream(read, ended, limits, sent, replies), sent
            tasks.cancel_scope.cancel()


async def _reply(replies: Any, write: Any) -> None:
    """Send what a server asked for, as fast as it reads."""
    from mcp.shared.message import SessionMessage

    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for reply in replies:
            await write.send(SessionMessage(reply))


class _SentMessages:
    """A stream of messages to a server, which keeps the ids of what was asked.

    Attributes:
        unanswered: Ids of the requests that wait for an answer, as texts, and as they were sent.
    """

    def __init__(self, stream: Any) -> None:
        self.unanswered: dict[str, Any] = {}
        self._stream = stream
        self.close, self.aclose = stream.close, stream.aclose

    async def send(self, item: Any) -> None:
        """Send a message."""
        from mcp_types import JSONRPCRequest

        if isinstance(item.message, JSONRPCRequest):
            self.unanswered[str(item.message.id)] = item.message.id
        await self._stream.send(item)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _WatchedStream:
    """A stream of messages that tells when it is over, and on which a server is bounded.

    The official client tells the end only to whoever calls next; a server that died in between is
    to be started again before that. It also starts a task for each request of a server, however
    many there are; here they are answered (we do nothing that they could ask for) from a queue
    that has an end. A server that asks or tells without end is hung up on, and calls under way
    fail with the reason.
    """

    def __init__(
        self, stream: Any, ended: Ended, limits: McpLimits, sent: _SentMessages, replies: Any
    ) -> None:
        self._stream = stream
        self._ended = ended
        self._mender = AnswerMender(limits)
        self._sent, self._replies = sent, replies
        self._unasked = _Allowance()
        self._failures: deque[Any] | None = None
        self.close, self.aclose = stream.close, stream.aclose

    @property
    def last_context(self) -> Any:
        """The sender's context, where the stream keeps it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while self._failures is None:
            try:
                message = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._ended("")
                raise StopAsyncIteration from None
            if self._is_wanted(message):
                self._mender.mend(message)
                return message
        if self._failures:
            return self._failures.popleft()
        raise StopAsyncIteration

    def _is_wanted(self, item: Any) -> bool:
        """Whether the official client gets to see a message; others are counted, or answered."""
        from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

        message: Any = getattr(item, "message", None)
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        if is_answer and self._sent.unanswered.pop(str(message.id), None) is not None:
            return True
        enough = _UNASKED * _CHARS_A_MESSAGE
        size = json_length(getattr(message, "params", None), enough)
        is_heard = message is None or getattr(message, "method", "") in _HEARD
        if not self._unasked.take((10 if is_heard else 1) + size // _CHARS_A_MESSAGE):
            self._hang_up("the server sent messages that nobody asked for, without end")
        elif isinstance(message, JSONRPCRequest):
            self._answer(message)
        else:
            return is_heard
        return False

    def _answer(self, request: Any) -> None:
        from mcp_types import METHOD_NOT_FOUND, JSONRPCResponse

        if len(str(request.id)) > _LONGEST_ID:
            return
        reply: Any = JSONRPCResponse(jsonrpc="2.0", id=request.id, result={})
        if request.method != "ping":
            reply = error_message(request.id, METHOD_NOT_FOUND, "this client does nothing of that")
        try:
            self._replies.send_nowait(reply)
        except anyio.WouldBlock:
            self._hang_up(
                f"the server sent more than {_MOST_WAITING} requests and read none of the answers"
            )
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            _logger.debug("a request of a server came when it was being left")

    def _hang_up(self, why: str) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import CONNECTION_CLOSED

        self._failures = deque(
            SessionMessage(error_message(request_id, CONNECTION_CLOSED, why))
            for request_id in self._sent.unanswered.values()
        )
        self._ended(why)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_LONGEST_LINE = 10_000
"""Characters of what a server writes on stderr that are taken for one line."""


@contextlib.contextmanager
def _read_lines(heard: Callable[[str], None]) -> Any:
    """A file for a process to write to, each line of which is handed on."""
    reading, writing = os.pipe()
    source = os.fdopen(reading, encoding="utf-8", errors="replace")
    sink: TextIO = os.fdopen(writing, "w", encoding="utf-8")

    def work() -> None:
        with source:
            while line := source.readline(_LONGEST_LINE):  # which need not end
                heard(line.rstrip("\n"))

    thread = threading.Thread(target=work, name="agentkit-mcp-stderr", daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        sink.close()
        thread.join(timeout=1.0)
