"""``serve`` and ``serving``: an application over HTTP, with uvicorn."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit.errors import PortTakenError, UsageError
from agentkit.server.app import missing
from agentkit.server.protocol import http_protocol

if TYPE_CHECKING:
    import socket

    import uvicorn
    from starlette.applications import Starlette

_AFTER_CUT_SECONDS = 15.0
_START_SECONDS = 10.0
_LOOK_EVERY_SECONDS = 0.1
_TURNS_TO_BE_MADE = 4
"""Turns of the loop after which a connection that was taken has its protocol."""

_BACKLOG = 2048
_LONGEST_MS = 2**31 - 1
_LAST_PORT = 65_535

_Handler: TypeAlias = Callable[[int, FrameType | None], None]


def serve(
    app: Starlette,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    insecure: bool = False,
    on_start: Callable[[str], None] | None = None,
    on_stop: Callable[[], None] | None = None,
) -> None:
    """Serve an application of ``create_app`` until SIGTERM or Ctrl-C, shut down in order, return.

    When asked to stop, the server closes its socket, gives runs ``ServerLimits.drain_seconds`` to
    finish, cuts the others, which are kept as cancelled episodes and answered with 503, and closes
    the agent. A second Ctrl-C cuts them at once and loses nothing either.

    Args:
        app: The application.
        host: The address to listen at.
        port: The port; 0 takes a free one.
        insecure: Listen at an address that other machines reach although there are no keys.
        on_start: Called with the URL when the server listens.
        on_stop: Called when the server is asked to stop.

    Raises:
        MissingExtraError: uvicorn is not installed.
        UsageError: Other machines would reach a server without keys, or there is no such port.
        PortTakenError: Another process listens at the port.
        OSError: The address is not this machine's.
    """
    if not insecure and not app.state.has_keys and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines and there are no keys, so anybody there "
            "could use the agent and its tools; give keys, listen at 127.0.0.1, or say insecure"
        )
    with _listening(host, port, send_seconds=app.state.limits.send_seconds) as listener:
        _server(app, listener, on_start=on_start, on_stop=on_stop).run(sockets=[listener])


@contextmanager
def serving(app: Starlette, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """A server in a thread, for tests and notebooks; gives its URL and ends with the context.

    Example:
        >>> from agentkit import Agent
        >>> from agentkit.server import create_app
        >>> from agentkit.testing import ScriptedModel
        >>> with serving(create_app(Agent(ScriptedModel(["Hello."])))) as url:
        ...     url.startswith("http://127.0.0.1:")
        True
    """
    started = threading.Event()
    with _listening(host, port, send_seconds=app.state.limits.send_seconds) as listener:
        server = _server(app, listener, on_start=lambda _: started.set())
        thread = threading.Thread(
            target=lambda: server.run(sockets=[listener]), name="agentkit-server", daemon=True
        )
        thread.start()
        if not started.wait(_START_SECONDS):
            server.should_exit = True
            raise UsageError("the server did not start; the log of uvicorn tells why")
        try:
            yield _url(listener)
        finally:
            server.should_exit = True
            thread.join()


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _listening(host: str, port: int, *, send_seconds: float) -> Iterator[socket.socket]:
    import socket

    if not 0 <= port <= _LAST_PORT:
        raise UsageError(f"there is no port {port}; ports go up to {_LAST_PORT}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sees that it is TCP and sends small pieces at once; without,
    # each answer waits 40 ms for the client's acknowledgement.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux ends connections with no reader
            longest = max(1, round(min(_LONGEST_MS, send_seconds * 1000)))
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, longest)
        listener.setblocking(False)
        try:
            listener.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            message = f"port {port} is taken; choose another with --port"
            raise PortTakenError(message) from error
        listener.listen(_BACKLOG)
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _server(
    app: Starlette,
    listener: socket.socket,
    *,
    on_start: Callable[[str], None] | None = None,
    on_stop: Callable[[], None] | None = None,
) -> uvicorn.Server:
    """The server of uvicorn, made to tell the application early that it is about to stop."""
    try:
        import uvicorn
        from uvicorn.server import HANDLED_SIGNALS
    except ImportError as error:
        raise missing("uvicorn") from error
    url = _url(listener)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if on_start is not None and self.started:
                on_start(url)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if on_stop is not None:
                on_stop()
            await _accepted_none_more(self.servers)
            closing = asyncio.create_task(super().shutdown(sockets=sockets))
            await _rested(closing, app, lambda: self.force_exit)
            if self.force_exit:  # uvicorn leaves it out then, and the agent would stay open
                await self.lifespan.shutdown()

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            with _handled_by(self.handle_exit, HANDLED_SIGNALS):
                yield

    config: dict[str, Any] = {
        "lifespan": "on",
        "log_config": None,  # logging belongs to the program
        "access_log": False,
        "server_header": False,
        "ws": "none",
        "http": http_protocol(),
        "timeout_graceful_shutdown": app.state.limits.drain_seconds + _AFTER_CUT_SECONDS,
    }
    return Server(uvicorn.Config(app, **config))


async def _accepted_none_more(servers: Iterable[asyncio.Server]) -> None:
    """Take no more connections, and let those that were taken be made, before servers are closed.

    A connection that asyncio took in the same turn of its loop is lost otherwise: nobody answers or
    closes it before the process ends (CPython, gh-109564).
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, asyncio.SelectorEventLoop):
        return
    for server in servers:
        for listener in server.sockets:
            loop.remove_reader(listener.fileno())
    for _ in range(_TURNS_TO_BE_MADE):
        await asyncio.sleep(0)


async def _rested(
    closing: asyncio.Task[None], app: Starlette, is_forced: Callable[[], bool]
) -> None:
    """Wait until the server has closed and what was under way has ended; forced, cut it."""
    runs = app.state.runs
    draining = asyncio.create_task(runs.drain(app.state.limits.drain_seconds))
    while not (closing.done() or is_forced()):
        await asyncio.wait({closing}, timeout=_LOOK_EVERY_SECONDS)
    if is_forced():
        await runs.drain(0.0)
    await asyncio.gather(draining, closing)


@contextmanager
def _handled_by(handler: _Handler, signals: Iterable[signal.Signals]) -> Iterator[None]:
    """Signals go to ``handler`` meanwhile.

    Uvicorn raises them again after its end; but the server has ended in good order then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, handler) for one in signals}
    try:
        yield
    finally:
        for one, earlier in before.items():
            signal.signal(one, earlier)
