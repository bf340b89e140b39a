"""A server that is away: the last snapshot stays, says so, and is caught up afterwards."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.app_stage import AppStage
from support.local_server import free_port
from support.tcp_proxy import TcpProxy

from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import Store
from agentkit.library.replicas import Replica


@pytest.fixture
def network(stage: AppStage) -> Iterator[TcpProxy]:
    """What lies between the clients and the server."""
    with TcpProxy(port=stage.port) as proxy:
        yield proxy


def _until(is_so: Callable[[], bool]) -> None:
    """Try again until it is so; the test's own time limit ends it."""
    while not is_so():
        time.sleep(0.05)


def test_a_server_that_was_never_there(open_remote: Callable) -> None:
    """Without anything known there is nothing to give: the error says that it may work later."""
    client = open_remote(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailableError, match="can not be reached"):
        client.load()
    with pytest.raises(StoreUnavailableError):
        client.events()
    assert (client.is_away, client.staleness) == (True, None)


def test_the_last_snapshot_stays_and_the_log_says_so(
    store: Store,
    serve: Callable,
    network: TcpProxy,
    open_remote: Callable,
    put: Callable,
    tool: Callable,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Cut off, a client goes on with what it has; back again, it takes up what it missed."""
    caplog.set_level(logging.WARNING, logger="agentkit")
    serve(store)
    put(store, tool("a"))
    client = open_remote(f"http://127.0.0.1:{network.port}?timeout=0.3")
    known = client.load()
    assert client.events() == store.events()
    network.cut()
    put(store, tool("b"))
    assert client.load() is known
    assert client.is_away
    assert client.load() is known  # asked again at once, it does not wait again
    assert len(client.events()) == 1
    assert "the library stays at version 1" in caplog.text
    assert len(caplog.records) == 1
    with pytest.raises(StoreUnavailableError):
        client.refresh()
    with pytest.raises(StoreUnavailableError):
        client.history("a")
    network.reset()
    network.mend()
    _until(lambda: client.load().version == 2)
    assert not client.is_away
    assert client.fault is None
    assert "is back, at library version 2" in caplog.text


def test_a_connection_that_breaks_is_made_anew(
    store: Store,
    serve: Callable,
    network: TcpProxy,
    open_remote: Callable,
    put: Callable,
    tool: Callable,
) -> None:
    """A reset between two requests is no more than a pause."""
    serve(store)
    client = open_remote(f"http://127.0.0.1:{network.port}?timeout=2")
    client.load()
    for number in range(3):
        put(store, tool(f"t{number}"))
        network.reset()
        _until(lambda number=number: client.load().version == number + 1)


def test_a_program_starts_without_the_server(
    store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable, stage
) -> None:
    """What was known last is on the disk: library, versions and events, not the histories."""
    put(store, tool("a", "a text"), tool("天気"))
    put(store, tool("b"), remove=("a",))
    port = free_port()
    with TcpProxy(port=stage.port) as proxy:
        serve(store)
        port = proxy.port
        before = open_remote(f"http://127.0.0.1:{port}")
        before.load()
        assert before.events() == store.events()
        before.close()
    client = open_remote(f"http://127.0.0.1:{port}")
    assert client.load().definitions == store.load().definitions
    assert client.load().version == 2
    assert list(client.versions()) == [1, 2]
    assert client.events() == store.events()
    assert (client.is_away, client.staleness) == (True, None)
    with pytest.raises(StoreUnavailableError):
        client.load(1)


def test_a_closed_store_says_so(store: Store, serve: Callable, open_remote: Callable) -> None:
    """After close nothing is asked any more, whatever is known."""
    client = open_remote(serve(store))
    client.load()
    client.close()
    client.close()
    for use in (client.load, client.versions, client.events, client.refresh):
        with pytest.raises(StoreError, match="closed"):
            use()
    with pytest.raises(StoreError, match="closed"):
        client.get("e1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_makes_a_connection_of_its_own(
    store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
    """Both take up what is new; neither reads an answer that was meant for the other."""
    client = open_remote(serve(store))
    client.load()
    put(store, tool("a"))
    child = os.fork()
    if not child:
        os._exit(7 if "a" in client.load() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    for name in "bcd":
        put(store, tool(name))
        assert name in client.load()


ENOUGH = 60


def test_a_replica_knows_that_the_server_is_away(
    stage: Any, store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
    """That the remote store goes on to load its last snapshot does not make that a fresh one."""
    put(store, tool("a"))
    serve(store)
    with TcpProxy(port=stage.port) as network:
        url = f"http://127.0.0.1:{network.port}"
        replica = Replica(open_remote(url), refresh_seconds=3_600)
        assert replica.status.state == "current"
    with pytest.raises(StoreUnavailableError):
        replica.refresh()
    assert replica.status.state != "current"
    assert list(replica.load().tools) == ["a"]
    replica.close()
    again = Replica(open_remote(url), refresh_seconds=3_600)  # from what the store kept on disk
    assert list(again.load().tools) == ["a"]
    assert again.status.state != "current"
    again.close()
