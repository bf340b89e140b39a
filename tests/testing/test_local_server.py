"""``LocalServer`` runs a real program and does to it what a test says."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
from support.local_server import LocalServer, ServerError, find_program, free_port

ECHO = """
import signal, socketserver, sys
if "stubborn" in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)
            self.wfile.flush()
print("it begins", flush=True)
server = socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Echo, False)
server.allow_reuse_address = server.daemon_threads = True
server.server_bind()
server.server_activate()
try:
    server.serve_forever()
except KeyboardInterrupt:
    print("it ends", flush=True)
"""


class EchoServer(LocalServer):
    """Sends each line back."""

    def __init__(self, *arguments: str, **settings) -> None:
        super().__init__(**settings)
        self._arguments = arguments

    def command(self):
        return [sys.executable, "-c", ECHO, str(self.port), *self._arguments]

    def answers(self):
        try:
            return ask(self.port) == b"?\n"
        except OSError:
            return False


class BrokenServer(EchoServer):
    """Says why it can not run, and ends."""

    def command(self):
        return [sys.executable, "-c", "import sys; sys.exit('no such disk')"]


class SilentServer(EchoServer):
    """Runs and never answers."""

    def answers(self):
        return False


def ask(port: int, timeout: float = 10.0) -> bytes:
    """Send a line to a server; what comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout) as link:
        link.sendall(b"?\n")
        return link.makefile("rb").readline()


def test_it_answers_inside_the_block_and_leaves_nothing():
    """The program answers when the block begins; afterwards it, its port and its folder are gone."""
    with EchoServer() as server:
        assert server.is_running
        assert ask(server.port) == b"?\n"
        assert "it begins" in server.log_tail
    assert not server.is_running
    assert not server.folder.exists()
    with pytest.raises(OSError, match="refused"):
        ask(server.port)


def test_it_starts_again_on_its_port():
    """Stopped in good order or killed, it is started again where it was, with its log."""
    with EchoServer() as server:
        server.stop()
        assert "it ends" in server.log_tail
        server.stop()  # one that does not run is left alone
        server.start()
        assert ask(server.port) == b"?\n"
        server.kill()
        assert not server.is_running
        server.start()
        assert ask(server.port) == b"?\n"
        assert server.log_tail.count("it begins") == 3


def test_a_pause_keeps_connections_and_answers_later():
    """A paused program takes a request and answers it once it goes on."""
    with EchoServer() as server:
        server.pause()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(ask(server.port)))
        asking.start()
        time.sleep(0.2)
        assert (answers, server.is_running) == ([], True)
        server.resume()
        asking.join()
        assert answers == [b"?\n"]


def test_a_paused_program_is_stopped():
    """The block ends in good order although the program was paused in it."""
    with EchoServer() as server:
        server.pause()
    assert not server.is_running


def test_a_program_that_will_not_end_is_killed():
    """A program that ignores the signal is killed after a while, and that is told."""
    with EchoServer("stubborn") as server:
        with pytest.raises(ServerError, match="did not end"):
            server.stop(seconds=0.2)
        assert not server.is_running


def test_a_program_that_can_not_run_shows_its_log():
    """A program that ends at once is told with what it said, and leaves no folder behind."""
    server = BrokenServer()
    with pytest.raises(ServerError, match="no such disk"), server:
        pytest.fail("it must not begin")
    assert not server.folder.exists()


def test_a_program_that_never_answers_is_ended():
    """A program that does not answer in time is told, and neither it nor its folder stays."""
    server = SilentServer(start_seconds=0.3)
    with pytest.raises(ServerError, match="does not answer"), server:
        pytest.fail("it must not begin")
    assert not server.is_running
    assert not server.folder.exists()


def test_signals_are_chosen():
    """A program may be ended with another signal than Ctrl-C's."""
    with EchoServer() as server:
        server.stop(signal.SIGTERM)
        assert "it ends" not in server.log_tail


def test_a_program_is_found(tmp_path, monkeypatch):
    """On the path first, then in folders with a version in their name, the newest first."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for folder in ("bin", "v9/bin", "v10/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("v9/bin", "v10/bin"):
        _program(tmp_path / folder / "served")
    pattern = f"{tmp_path}/v*/bin"
    assert find_program("served", folders=[pattern]) == str(tmp_path / "v10/bin/served")
    assert find_program("served") is None
    _program(tmp_path / "bin" / "served")
    assert find_program("served", folders=[pattern]) == str(tmp_path / "bin/served")


def test_free_ports_can_be_listened_on():
    """A port that is called free is."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port


def _program(path: Path) -> None:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
