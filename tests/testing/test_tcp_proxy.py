"""``TcpProxy`` is a network that is cut, mended and broken while programs talk through it."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest
from support.tcp_proxy import TcpProxy


class Echo(socketserver.StreamRequestHandler):
    """Sends each line back."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line)


class Server(socketserver.ThreadingTCPServer):
    """Has a thread for each connection, and waits for all of them at its end."""

    allow_reuse_address = True


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that sends each line back."""
    with Server(("127.0.0.1", 0), Echo) as made:
        serving = threading.Thread(target=made.serve_forever, args=(0.01,))
        serving.start()
        yield made.server_address[1]
        made.shutdown()
        serving.join()


@pytest.fixture
def proxy(server) -> Iterator[TcpProxy]:
    """A network in front of it."""
    with TcpProxy(port=server) as proxy:
        yield proxy


@pytest.fixture
def connect(proxy):
    """Opens connections through the network."""
    opened = []

    def connect() -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", proxy.port), timeout=10))
        return opened[-1]

    yield connect
    for link in opened:
        link.close()


def say(link: socket.socket, text: bytes) -> bytes:
    """Send a line and read one."""
    link.sendall(text + b"\n")
    return heard(link)


def heard(link: socket.socket) -> bytes:
    """The next line, without its end."""
    line = b""
    while not line.endswith(b"\n"):
        got = link.recv(1 << 16)
        if not got:
            return b"(broken)"
        line += got
    return line[:-1]


def is_silent(link: socket.socket) -> bool:
    """Whether nothing comes for a moment."""
    link.settimeout(0.2)
    try:
        return not link.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        link.settimeout(10)


def test_bytes_pass(connect):
    """Several connections at once, short lines and long ones, all come back as they were sent."""
    one, two = connect(), connect()
    assert (say(one, b"a"), say(two, b"b")) == (b"a", b"b")
    long = b"x" * 3_000_000
    sending = threading.Thread(target=two.sendall, args=(long + b"\n",))
    sending.start()
    assert heard(two) == long
    sending.join()
    assert say(one, b"c") == b"c"


def test_a_cut_is_silent_and_what_waited_goes_on(proxy, connect):
    """Between a cut and its mending nothing passes and nobody is told; then nothing is missing."""
    link = connect()
    assert say(link, b"before") == b"before"
    proxy.cut()
    link.sendall(b"during\n")
    late = connect()
    late.sendall(b"new\n")
    assert (proxy.is_cut, is_silent(link), is_silent(late)) == (True, True, True)
    proxy.mend()
    assert not proxy.is_cut
    assert (heard(link), heard(late), say(link, b"after")) == (b"during", b"new", b"after")


def test_a_reset_breaks_what_is_open_and_nothing_else(proxy, connect):
    """Open connections end at once; new ones work."""
    link = connect()
    assert say(link, b"a") == b"a"
    proxy.reset()
    assert is_broken(link)
    assert say(connect(), b"b") == b"b"


def test_a_reset_breaks_connections_that_are_cut(proxy, connect):
    """A connection that a cut has silenced is broken by a reset, and stays broken when mended."""
    link = connect()
    assert say(link, b"a") == b"a"
    proxy.cut()
    proxy.reset()
    assert is_broken(link)
    proxy.mend()
    assert say(connect(), b"b") == b"b"


def test_a_server_that_is_not_there_refuses():
    """A connection to a server that does not listen is closed; one to its proxy's end is refused."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with (
        TcpProxy(port=port) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as link,
    ):
        assert is_broken(link)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def test_closing_leaves_nothing(server):
    """A closed proxy has no thread and no connection left, cut or not; a second close is nothing."""
    before = set(threading.enumerate())
    proxy = TcpProxy(port=server)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as link:
        assert say(link, b"a") == b"a"
        proxy.cut()
        link.sendall(b"b\n")
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as late:
            proxy.close()
            proxy.close()
            assert is_broken(link)
            assert is_broken(late)
    ours = {
        thread
        for thread in set(threading.enumerate()) - before
        if "process_request" not in thread.name
    }
    assert ours == set()


def is_broken(link: socket.socket) -> bool:
    """Whether the other side ended a connection."""
    try:
        return heard(link) == b"(broken)"
    except ConnectionError:
        return True
