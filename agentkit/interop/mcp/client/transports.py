"""Where a server is, and how the official client gets there."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO
from urllib.parse import urlsplit, urlunsplit

from agentkit.interop.mcp.client.mending import ListingMender

if TYPE_CHECKING:
    from types import TracebackType

_logger = logging.getLogger(__name__)
_LINES = 20
_HTTP_SECONDS = 30.0
_STREAM_SECONDS = 300.0

Ended = Callable[[], None]
"""Is told that the server hung up."""


class Place(Protocol):
    """Where a server is."""

    def target(self, ended: Ended) -> Any:
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

    def target(self, ended: Ended) -> Any:
        """The official transport, watched for its end."""
        return _watched(self._transport(), ended)

    @property
    def where(self) -> str:
        """The program; its arguments may hold secrets."""
        return self.command

    def last_words(self) -> str:
        """The end of its stderr."""
        return "\n".join(self._words)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        from mcp import StdioServerParameters, stdio_client

        parameters = StdioServerParameters(
            command=self.command, args=list(self.args), env=dict(self.env), cwd=self.cwd
        )
        self._words.clear()
        with _read_lines(self._heard) as stderr:
            async with stdio_client(parameters, errlog=stderr) as streams:
                stderr.close()  # the process has its own copy
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

    def target(self, ended: Ended) -> Any:
        """The official transport, watched for its end."""
        return _watched(self._transport(), ended)

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
    async def _transport(self) -> AsyncIterator[Any]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        # The times that the official client takes by itself; answers may stream for long.
        timeout = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
        async with (
            httpx2.AsyncClient(headers=dict(self.headers), timeout=timeout) as client,
            streamable_http_client(self.url, http_client=client) as streams,
        ):
            yield streams


@dataclass(frozen=True, kw_only=True, slots=True)
class InProcessPlace:
    """A server object of the official library in this process, or a transport of your own.

    Attributes:
        server: What the official ``Client`` takes.
    """

    server: Any

    def target(self, ended: Ended) -> Any:
        """The server itself; it can not hang up."""
        del ended
        return self.server

    @property
    def where(self) -> str:
        """Nowhere else."""
        return ""

    def last_words(self) -> str:
        """Nothing; it writes to our own stderr."""
        return ""


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[Any], ended: Ended
) -> AsyncIterator[tuple[Any, Any]]:
    async with transport as (read, write):
        yield _WatchedStream(read, ended), write


class _WatchedStream:
    """A stream of messages that tells when it is over, and whose listings can be read.

    The official client tells the end only to whoever calls next; a server that died in between is
    to be started again before that.
    """

    def __init__(self, stream: Any, ended: Ended) -> None:
        self._stream = stream
        self._ended = ended
        self._mender = ListingMender()

    @property
    def last_context(self) -> Any:
        """The sender's context, where the stream keeps it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        import anyio

        try:
            message = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
            raise
        self._mender.mend(message)
        return message

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            message = await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise
        self._mender.mend(message)
        return message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


@contextlib.contextmanager
def _read_lines(heard: Callable[[str], None]) -> Any:
    """A file for a process to write to, each line of which is handed on."""
    reading, writing = os.pipe()
    source = os.fdopen(reading, encoding="utf-8", errors="replace")
    sink: TextIO = os.fdopen(writing, "w", encoding="utf-8")

    def work() -> None:
        with source:
            for line in source:
                heard(line.rstrip("\n"))

    thread = threading.Thread(target=work, name="agentkit-mcp-stderr", daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        sink.close()
        thread.join(timeout=1.0)
