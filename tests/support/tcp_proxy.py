"""``TcpProxy``: a network that a test can cut and mend, between a client and a server."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from support.local_server import free_port

_CHUNK = 1 << 16
_LOOK_SECONDS = 0.05


class TcpProxy:
    """Forwards TCP connections from a port of the loopback address to a server.

    ``cut`` makes the network silent: nothing is forwarded in either direction, and nobody is
    told, as when a cable is pulled. ``mend`` lets the bytes that waited go on. ``reset`` breaks
    the connections that are open; new ones work unless the network is cut.

    Args:
        port: The server's, on the loopback address.

    Example:
        >>> with TcpProxy(port=9) as proxy:
        ...     proxy.cut()
        ...     proxy.is_cut
        True
    """

    def __init__(self, *, port: int) -> None:
        self.port = free_port()
        self._target = port
        self._flows = threading.Event()
        self._flows.set()
        self._closed = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._listener.settimeout(_LOOK_SECONDS)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_cut(self) -> bool:
        """Whether the network is silent now."""
        return not self._flows.is_set()

    def cut(self) -> None:
        """Forward nothing from now on; connections stay open and new ones are never served."""
        self._flows.clear()

    def mend(self) -> None:
        """Forward again, what waited first."""
        self._flows.set()

    def reset(self) -> None:
        """Break all connections that are open, as a router that forgets them does."""
        with self._lock:
            broken, self._open = self._open, set()
        for one in broken:
            _close(one)

    def close(self) -> None:
        """Break everything and listen no longer. A second call does nothing."""
        self._closed.set()
        self._listener.close()
        self.reset()  # before what waits may flow: none of it is to arrive any more
        self._flows.set()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            self._start(self._connect, client)

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _connect(self, client: socket.socket) -> None:
        self._flows.wait()
        if self._closed.is_set():
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        if self._closed.is_set():
            self.reset()
            return
        self._start(self._forward, server, client)
        self._forward(client, server)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # one side broke; so does the other
            source.settimeout(None)
            while chunk := source.recv(_CHUNK):
                self._flows.wait()
                target.sendall(chunk)
        _close(source)
        _close(target)


def _close(one: socket.socket) -> None:
    with suppress(OSError):  # it is broken already
        one.shutdown(socket.SHUT_RDWR)
    one.close()
