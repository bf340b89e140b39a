"""Server locations, and the official client's transports to them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.lowlevel

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit._pacing import pace
from agentkit.interop.mcp.listing import OVERSIZED, McpLimits, json_length

if TYPE_CHECKING:
    from asyncio import StreamReader
    from http.cookiejar import Cookie, CookieJar

    import httpx2

_logger = logging.getLogger(__name__)
_LINES = 20
_HTTP_SECONDS = 30.0
_STREAM_SECONDS = 300.0
_STREAM_PAUSE = 1.0
_STOP_SECONDS = 2.0
_MOST_STRAYS = 1_000
"""Lines in a row that are not messages; a server of them all is stopped."""
_MOST_SKIPPED = 10
"""How many line limits to skip while looking for the end of a long line."""
_MOST_VALUES = 300_000
"""Bound for one message. Three bytes of JSON can become a hundred in memory and take 1 µs."""

_FREE_PIECES = 4_000
_BYTES_A_PIECE = 64
"""A message may come in so many pieces, and in one more for so many bytes."""
_HELD_BACK = 4_096
"""Pieces are handed on together from so many bytes on, or at the end of a line."""
_MOST_COOKIES, _LONGEST_COOKIE = 20, 4_096
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,20}|"[^"\\]{1,200}")')

_LONGEST_ID = 1_000
_UNASKED = 10_000
"""Messages that answer nothing and are taken at once; ``_UNASKED_A_SECOND`` more each second."""
_UNASKED_A_SECOND = 1_000
_WEIGHT_OF_A_REQUEST = 100
_HEARD = frozenset(
    f"notifications/{name}"
    for name in ("tools/list_changed", "subscriptions/acknowledged", "cancelled")
)
"""Notifications a server may send; each counts as ten messages, for the work it causes."""
_CHARS_A_MESSAGE = 10_000
"""So many characters of a message count as one more."""

Unanswered: TypeAlias = dict[str, Any]
"""Ids of the requests that wait for an answer, as texts, and as they were sent."""

Ended = Callable[[str], None]
"""Called when the connection ends, with the reason when we hung up."""


class Place(Protocol):
    """The location of a server."""

    def target(self, ended: Ended, limits: McpLimits) -> Any:
        """The argument for the official ``Client``: a transport, or a server in this process."""
        ...

    @property
    def where(self) -> str:
        """The place in words, without secrets; empty when there is none to name."""
        ...

    def last_words(self) -> str:
        """The server's last output on stderr, if known."""
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
        """A transport like the official one, watched for its end."""
        unanswered: Unanswered = {}
        return _watched(self._transport(limits, unanswered), ended, limits, unanswered)

    @property
    def where(self) -> str:
        """The program; its arguments may hold secrets."""
        return self.command

    def last_words(self) -> str:
        """The end of its stderr."""
        return "\n".join(self._words)

    @asynccontextmanager
    async def _transport(self, limits: McpLimits, unanswered: Unanswered) -> AsyncIterator[Any]:
        from mcp.client.stdio import get_default_environment

        self._words.clear()
        with _read_lines(self._heard) as stderr:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.args,
                stdin=PIPE,
                stdout=PIPE,
                stderr=stderr,
                env=get_default_environment() | dict(self.env),
                cwd=self.cwd,
                start_new_session=True,
                limit=limits.max_message_bytes,
            )
            stderr.close()  # the process has its own copy
            async with _process_streams(process, limits, unanswered) as streams:
                yield streams

    def _heard(self, line: str) -> None:
        self._words.append(line[:500])
        _logger.info("%s: %s", self.command, episodes.log_text(line))


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpPlace:
    """An address that speaks streamable HTTP.

    Attributes:
        url: Where it is.
        headers: Sent with each request, such as ``Authorization``.
        auth: Signs requests, such as ``mcp.client.auth.OAuthClientProvider``.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: httpx2.Auth | None = field(default=None, repr=False)

    def target(self, ended: Ended, limits: McpLimits) -> Any:
        """The official transport, watched for its end."""
        return _watched(self._transport(limits), ended, limits, {})

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

        latest = -_STREAM_PAUSE

        async def paced(request: httpx2.Request) -> None:
            """A stream is asked for once a second, also where a server says ``retry: 0``."""
            nonlocal latest
            if request.method == "GET" and "event-stream" in request.headers.get("accept", ""):
                await anyio.sleep(max(0.0, latest + _STREAM_PAUSE - anyio.current_time()))
                latest = anyio.current_time()

        client = httpx2.AsyncClient(
            headers={**self.headers, "Accept-Encoding": "identity"},
            auth=self.auth,
            cookies=_cookies(),
            # The official client's own timeouts; answers may stream for long.
            timeout=httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS),
            event_hooks={"request": [paced], "response": [bound]},
        )
        pace(client._transport, *client._mounts.values())  # noqa: SLF001 - of its proxies
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
        """The server itself; it cannot hang up."""
        del ended, limits
        return self.server

    @property
    def where(self) -> str:
        """Nowhere else."""
        return ""

    def last_words(self) -> str:
        """Nothing; it writes to our own stderr."""
        return ""


@asynccontextmanager
async def _process_streams(
    process: Process, limits: McpLimits, unanswered: Unanswered
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of messages of a process, which is stopped in the end.

    The official package has the same, but for limits: it keeps a line however long it is, and
    logs each line that is none of a message with the exception.
    """
    from mcp.shared.message import SessionMessage

    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    received, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, to_send = anyio.create_memory_object_stream[Any](0)
    gone = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

    async def read() -> None:
        async with received:
            with contextlib.suppress(*gone):
                async for message in _messages(stdout, limits.max_message_bytes, unanswered):
                    await received.send(SessionMessage(message))
        while await stdout.read(_HELD_BACK):  # so that it can write to its end, and stop
            pass

    async def write() -> None:
        with contextlib.suppress(*gone):
            async with to_send:
                async for item in to_send:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    stdin.write(text.encode() + b"\n")
                    await stdin.drain()
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


async def _messages(stdout: StreamReader, most: int, unanswered: Unanswered) -> AsyncIterator[Any]:
    """Parse a server's output into messages; an oversized one makes its call fail."""
    strays = 0
    why = (
        f"it wrote more than {_MOST_STRAYS:,} lines on stdout that are not messages; a server logs "
        "on stderr"
    )
    while strays <= _MOST_STRAYS:
        try:
            line = await _next_line(stdout, most)
        except EOFError as error:
            why = str(error)
            break
        too_much = _too_long(most) if line is None else _too_many(_values_in(line))
        if line == b"":
            return
        if line is None or too_much:
            messages = _failures(unanswered, OVERSIZED, too_much)
        elif line.lstrip().startswith(b"{"):
            strays, messages = 0, [*_decoded(line, unanswered)]
        else:
            strays, messages = strays + 1, []
        for message in messages:
            yield message
    for failure in _failures(unanswered, _connection_closed(), why):
        yield failure


async def _next_line(stdout: StreamReader, most: int) -> bytes | None:
    """The next line, empty at the end; None for one that is too long and was thrown away.

    Raises:
        EOFError: It makes no sense to read on.
    """
    skipped = 0
    while skipped <= _MOST_SKIPPED * most:
        try:
            line = await stdout.readuntil()
        except asyncio.IncompleteReadError as error:
            line = error.partial
        except asyncio.LimitOverrunError as error:
            skipped += len(await stdout.readexactly(error.consumed))
            continue
        return None if skipped else line
    raise EOFError("it wrote a line without an end")


def _decoded(line: bytes, unanswered: Unanswered) -> Iterator[Any]:
    """The message of a line; of one that nobody can read, the failure of the call it is for."""
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    try:
        yield jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        why = f"the server sent a message that cannot be read: {str(error)[:300]}"
        found = _ID.search(line)
        key = found[1].decode(errors="replace").strip('"') if found else ""
        if key in unanswered:
            yield error_message(unanswered[key], OVERSIZED, why)
        elif b'"jsonrpc"' in line:
            yield from _failures(unanswered, OVERSIZED, why)


def _failures(unanswered: Unanswered, code: int, why: str) -> list[Any]:
    """An error for each request that waits."""
    return [error_message(request_id, code, why) for request_id in unanswered.values()]


def _connection_closed() -> int:
    from mcp_types import CONNECTION_CLOSED

    return int(CONNECTION_CLOSED)


def error_message(request_id: Any, code: int, why: str) -> Any:
    """A message of the protocol in the place of an answer."""
    from mcp_types import ErrorData, JSONRPCError

    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=why))


async def _stop(process: Process) -> None:
    """Close a server's stdin, wait for its end, and then end it and its children, as MCP says."""
    assert process.stdin is not None
    process.stdin.close()
    for sign in (None, "SIGTERM", "SIGKILL"):
        if sign and sys.platform == "win32":
            process.kill()
        elif sign:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, getattr(signal, sign))
        with anyio.move_on_after(_STOP_SECONDS):
            while process.returncode is None:  # noqa: ASYNC110 - wait() also waits for its children's pipes
                await asyncio.sleep(0.01)
            return


def _cookies() -> CookieJar:
    """A jar of few cookies, such as those by which a load balancer knows its server.

    ``Set-Cookie2`` is not read: nobody sends it, and it can take long to read.
    """
    from http.cookiejar import CookieJar

    class Jar(CookieJar):
        def make_cookies(self, response: Any, request: Any) -> list[Cookie]:
            headers = response.info()
            new = headers.get_all("Set-Cookie", ())
            is_long = any(len(cookie) > _LONGEST_COOKIE for cookie in new)
            if is_long or len(self) + len(new) > _MOST_COOKIES or headers.get_all("Set-Cookie2"):
                return []
            return list(super().make_cookies(response, request))

    return Jar()


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
    """An upper bound of the number of JSON values: signs in texts count, too."""
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
    """Allows a burst of items, and a number more each second."""

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
    transport: AbstractAsyncContextManager[Any],
    ended: Ended,
    limits: McpLimits,
    unanswered: Unanswered,
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a transport, on which a server is bounded."""
    async with transport as (read, write):
        yield _WatchedStream(read, ended, limits, unanswered), _SentMessages(write, unanswered)


class _SentMessages:
    """A stream of messages to a server, which keeps the ids of what was asked."""

    def __init__(self, stream: Any, unanswered: Unanswered) -> None:
        self._stream, self._unanswered = stream, unanswered
        self.close, self.aclose = stream.close, stream.aclose

    async def send(self, item: Any) -> None:
        """Send a message."""
        from mcp_types import JSONRPCRequest

        if isinstance(item.message, JSONRPCRequest):
            self._unanswered[str(item.message.id)] = item.message.id
        await self._stream.send(item)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _WatchedStream:
    """A stream of messages that tells when it is over, and on which a server is bounded.

    The official client reports the end only to the next caller. It also starts a task for each
    request of a server, however many there are. A server that asks or tells without end is hung up
    on, and calls under way fail with the reason.
    """

    def __init__(
        self, stream: Any, ended: Ended, limits: McpLimits, unanswered: Unanswered
    ) -> None:
        self._stream, self._ended, self._limits = stream, ended, limits
        self._unanswered = unanswered
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
                item = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._ended("")
                raise StopAsyncIteration from None
            if self._is_wanted(item):
                return _bounded(item, self._limits)
        if self._failures:
            return self._failures.popleft()
        raise StopAsyncIteration

    def _is_wanted(self, item: Any) -> bool:
        """Whether the official client gets to see a message; what nobody asked for is counted."""
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

        message: Any = getattr(item, "message", None)
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        is_wanted = is_answer and str(message.id) in self._unanswered
        questions = _questions(message) if is_wanted else 0
        size = json_length(getattr(message, "params", None), _UNASKED * _CHARS_A_MESSAGE)
        is_heard = message is None or getattr(message, "method", "") in _HEARD
        is_request = isinstance(message, JSONRPCRequest)
        weight = _WEIGHT_OF_A_REQUEST * (questions or is_request) or (10 if is_heard else 1)
        if (is_wanted and not questions) or self._unasked.take(weight + size // _CHARS_A_MESSAGE):
            if is_wanted:
                del self._unanswered[str(message.id)]
                return True
            return is_heard or (is_request and len(str(message.id)) <= _LONGEST_ID)
        why = "the server sent questions, or messages that nobody asked for, without end"
        failures = _failures(self._unanswered, _connection_closed(), why)
        self._failures = deque(map(SessionMessage, failures))
        self._ended(why)
        return False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _questions(message: Any) -> int:
    """How many questions to the user an answer holds; each counts as a request."""
    asked = getattr(message, "result", None)
    asked = asked.get("inputRequests") if isinstance(asked, dict) else None
    return len(asked) if isinstance(asked, dict | list) else 0


def _bounded(item: Any, limits: McpLimits) -> Any:
    """A message without what has too many parts to be validated by the official client."""
    result = getattr(getattr(item, "message", None), "result", None)
    if isinstance(result, dict):
        parts, most = result.get("content"), limits.max_result_parts
        if isinstance(parts, list) and len(parts) > most:
            why = (
                f"the answer has {len(parts):,} parts, {most:,} are allowed; ask for less, or "
                f"raise McpLimits(max_result_parts={len(parts)})"
            )
            item.message = error_message(item.message.id, OVERSIZED, why)
        if isinstance(entries := result.get("tools"), list):
            del entries[limits.max_tools + 1 :]  # one more tells that there are too many
    return item


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
