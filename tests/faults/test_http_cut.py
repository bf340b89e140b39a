"""A library over HTTP whose server is cut off, paused or killed: the last snapshot, then the newest."""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from support.faults import fault_seconds
from support.local_server import LocalServer
from support.store_race import Racer
from support.tcp_proxy import TcpProxy

from agentkit import open_store
from agentkit.errors import StoreUnavailableError

pytestmark = pytest.mark.faults


class LibraryServer(LocalServer):
    """``agentkit serve --definitions``."""

    def __init__(self, store: str) -> None:
        super().__init__()
        self._store = store

    def command(self):
        program = [sys.executable, "-c", "from agentkit.cli.main import main; main()", "serve"]
        return [*program, "--definitions", "--store", self._store, "--port", str(self.port)]

    def answers(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


@pytest.fixture
def served_url(tmp_path) -> str:
    """The store behind the server, which commits go to."""
    return f"sqlite:///{tmp_path / 'library.db'}"


@pytest.fixture
def server(served_url, tmp_path, monkeypatch) -> Iterator[LocalServer]:
    """The server of a store that is empty."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path / "caches"))
    open_store(served_url).close()
    with LibraryServer(served_url) as server:
        yield server


def until(is_so: Callable[[], bool]) -> None:
    """Try again until it is so; the test's own time limit ends it."""
    while not is_so():
        time.sleep(0.05)


@pytest.mark.parametrize("fault", ["cut", "paused", "killed"])
def test_a_reader_goes_on_with_what_it_has_and_catches_up(served_url, server, fault):
    """While the server is away a reader keeps its last snapshot; then it has what came meanwhile."""
    with (
        TcpProxy(port=server.port) as proxy,
        closing(open_store(served_url)) as writer,
        closing(open_store(f"http://127.0.0.1:{proxy.port}?timeout=1")) as reader,
    ):
        racer = Racer(writer)
        racer.offer(0)
        known = reader.load()
        assert known.version == 1
        begin = {"cut": proxy.cut, "paused": server.pause, "killed": server.kill}
        end = {"cut": proxy.mend, "paused": server.resume, "killed": server.start}
        begin[fault]()
        racer.offer(1)
        until_over = time.monotonic() + fault_seconds(1, 30)
        while time.monotonic() < until_over:
            assert reader.load().version == 1
            time.sleep(0.1)
        with pytest.raises(StoreUnavailableError):
            open_and_load(f"http://127.0.0.1:{proxy.port}?timeout=1&cache=none")
        end[fault]()
        until(lambda: reader.load().version == 2)
        assert reader.load().digest == writer.load().digest
        until(lambda: len(reader.events()) == 2)


def open_and_load(url):
    """What a reader without anything does first."""
    with closing(open_store(url)) as store:
        store.load()
