"""``AppStage``: one real server for the tests of a module; it shows one application at a time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")

_STOP_SECONDS = 20


class AppStage:
    """Serves one application at a time at a port of the loopback address, with uvicorn.

    Starting and stopping a server takes 0.2 s, most of it uvicorn's own waiting, so that a module
    of tests has one. The lifespan of an application is the time for which it is shown.
    """

    def __init__(self) -> None:
        import uvicorn

        self._loop = asyncio.new_event_loop()
        self._app: Starlette | None = None
        config = uvicorn.Config(
            self._answer, interface="asgi3", lifespan="off", log_config=None, access_log=False
        )
        self._server = uvicorn.Server(config)
        # With its protocol named, asyncio sends small pieces at once.
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listener.bind(("127.0.0.1", 0))
        serve = self._server.serve(sockets=[self._listener])
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(serve,))

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()
        self._loop.close()

    @contextmanager
    def showing(self, app: Starlette) -> Iterator[str]:
        """``app`` is served inside; gives its URL."""
        self._app, lifespan = app, app.router.lifespan_context(app)
        self.wait_for(lifespan.__aenter__())
        try:
            yield f"http://127.0.0.1:{self.port}"
        finally:
            self.wait_for(lifespan.__aexit__(None, None, None))

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine gives, run in the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_STOP_SECONDS)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._app is not None
        await self._app(scope, receive, send)


async def begun(app: Any) -> None:
    """Wait until an application has a run."""
    while not len(app.state.runs):
        await asyncio.sleep(0.01)


async def ended(app: Any) -> None:
    """Wait until no run of an application is left."""
    while len(app.state.runs):
        await asyncio.sleep(0.01)


def raw_answer(url: str, path: str, sent: str, *headers: str) -> bytes:
    """What a server answers to bytes that need be no HTTP, behind which nothing more is sent."""
    host, answer = url.removeprefix("http://"), b""
    name, _, port = host.partition(":")
    head = [f"POST {path} HTTP/1.1", f"Host: {host}", *headers]
    with socket.create_connection((name, int(port)), timeout=10) as connection:
        connection.sendall("\r\n".join([*head, "", sent]).encode())
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65536):
            answer += piece
    return answer


NO_BODIES = [
    # a header, what stands for the body, how the answer begins
    ("Transfer-Encoding: chunked", "zz\r\n", b"HTTP/1.1 400 "),
    ("Transfer-Encoding: chunked", "1\r\n{\r\nzz\r\n", b"HTTP/1.1 400 "),
    ("Content-Length: 50", "{", b""),
]
"""Bodies that are none, or are cut off."""
