"""A replica of a remote library: fresh by hints, honest about how old it is, started without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.tcp_proxy import TcpProxy

from agentkit.errors import StoreUnavailableError
from agentkit.library import Store
from agentkit.library.replicas import Replica


def test_a_replica_hears_of_commits(
    store: Store, serve: Callable, open_remote: Callable, put: Callable, tool: Callable
) -> None:
    """The watch of the remote library ends the replica's pause long before its next look."""
    put(store, tool("a"))
    with_replica = Replica(open_remote(f"{serve(store)}?cache=none"), refresh_seconds=3_600)
    taken = threading.Event()
    with_replica.follow(lambda library: taken.set() if "b" in library else None)
    put(store, tool("b"))
    assert taken.wait(60)
    with_replica.close()


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
