"""``serve`` and ``serving``: an application over HTTP, with uvicorn."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentkit.errors import UsageError
from agentkit.server.app import missing

if TYPE_CHECKING:
    import socket

    import uvicorn
    from starlette.applications import Starlette

_LOG = logging.getLogger(__name__)
_AFTER_CUT_SECONDS = 10.0
_START_SECONDS = 10.0
_BACKLOG = 2048


def serve(
    app: Starlette,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    insecure: bool = False,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serve an application of ``create_app`` until SIGTERM or Ctrl-C, and end in good order.

    Told to stop, the server closes its socket, lets runs end for ``ServerLimits.drain_seconds``,
    cuts the others, which are kept as cancelled episodes and answered with 503, and closes the
    agent. A second Ctrl-C cuts at once.

    Args:
        app: The application.
        host: The address to listen at.
        port: The port; 0 takes a free one.
        insecure: Listen at an address that other machines reach although there are no keys.
        on_start: Told the URL when the server listens.

    Raises:
        MissingExtraError: uvicorn is not installed.
        UsageError: Other machines would reach a server without keys.
        OSError: The port is taken, or the address is not this machine's.
    """
    if not insecure and not app.state.has_keys and not is_loopback(host):
        raise UsageError(
            f"{host} can be reached from other machines and there are no keys, so anybody there "
            "could use the agent and its tools; give keys, listen at 127.0.0.1, or say insecure"
        )
    with _listening(host, port) as listener, _sigterm_ends_quietly():
        _server(app, listener, on_start).run(sockets=[listener])


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
    with _listening(host, port) as listener:
        server = _server(app, listener, lambda _: started.set())
        thread = threading.Thread(
            target=lambda: server.run(sockets=[listener]), name="agentkit-server", daemon=True
        )
        thread.start()
        if not started.wait(_START_SECONDS):
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
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sees that it is TCP and sends small pieces at once; without,
    # each answer waits 40 ms for the client's acknowledgement.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _server(
    app: Starlette, listener: socket.socket, on_start: Callable[[str], None] | None
) -> uvicorn.Server:
    """The server of uvicorn, made to tell the application early that it is about to stop."""
    try:
        import uvicorn
    except ImportError as error:
        raise missing("uvicorn") from error
    drain_seconds = app.state.limits.drain_seconds
    url = _url(listener)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if on_start is not None and self.started:
                on_start(url)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            draining = asyncio.create_task(app.state.runs.drain(drain_seconds))
            await super().shutdown(sockets=sockets)
            await draining

    config: dict[str, Any] = {
        "lifespan": "on",
        "log_config": None,  # logging belongs to the program
        "access_log": False,
        "server_header": False,
        "ws": "none",
        "timeout_graceful_shutdown": drain_seconds + _AFTER_CUT_SECONDS,
    }
    return Server(uvicorn.Config(app, **config))


@contextmanager
def _sigterm_ends_quietly() -> Iterator[None]:
    """After its end uvicorn raises the signal again; the store is closed then, and all is well."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
