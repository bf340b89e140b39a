"""Hearing commits when connections break."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from support.postgres_server import PostgresServer, with_schema
from support.tcp_proxy import TcpProxy

from agentkit import open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.testing.conformance.writer import batch
from agentkit_postgres import PostgresStore
from agentkit_postgres.address import Address


def test_a_watch_survives_its_connection(own_server: PostgresServer, own_store_url: str) -> None:
    """A lost connection is told of; the next wait listens again and looks at once."""
    with TcpProxy(port=own_server.port) as proxy:
        schema = Address.parse(own_store_url).schema
        far = PostgresStore(with_schema(own_server.url_of(port=proxy.port), schema))
        with (
            closing(far),
            closing(open_store(own_store_url)) as near,
            closing(far.watch()) as watch,
        ):
            proxy.reset()
            near.commit(batch("p", 0), expected_version=0)
            with pytest.raises(StoreUnavailableError):
                watch.wait(20)
            assert watch.wait(20)
            near.commit(batch("p", 1), expected_version=1)
            assert watch.wait(20)
            assert far.load().version == 2


def test_a_watch_waits_for_a_server_that_is_away(
    own_server: PostgresServer, own_store_url: str
) -> None:
    """While the server is away each wait says so; when it is back the watch hears again."""
    store = PostgresStore(own_store_url)
    with closing(store), closing(store.watch()) as watch:
        own_server.stop()
        try:
            for _ in range(3):
                with pytest.raises(StoreUnavailableError):
                    watch.wait(20)
        finally:
            own_server.start()
        assert watch.wait(20)
        store.commit(batch("p", 0), expected_version=0)
        assert watch.wait(20)


def test_episodes_end_no_wait(store_url: str) -> None:
    """Only news of the library are told, not every episode."""
    from agentkit import Episode

    store = PostgresStore(store_url)
    with closing(store), closing(store.watch()) as watch:
        store.append(Episode(episode_id="e", request="?"))
        assert not watch.wait(0.2)


def test_many_commits_are_one_reason_to_look(store_url: str) -> None:
    """What was committed between two waits ends one of them, and the one after waits again."""
    store = PostgresStore(store_url)
    with closing(store), closing(store.watch()) as watch:
        for number in range(5):
            store.commit(batch("p", number), expected_version=number)
        assert watch.wait(20)
        ended = [watch.wait(0.5) for _ in range(5)]  # some may still be on their way
        assert not all(ended)


def test_closing_ends_a_wait(store_url: str) -> None:
    """A watch that another thread closes, or whose store is closed, does not wait on."""
    for closed in ("watch", "store"):
        store = PostgresStore(store_url)
        watch = store.watch()
        timer = threading.Timer(0.2, watch.close if closed == "watch" else store.close)
        timer.start()
        began = time.monotonic()
        with pytest.raises(StoreError, match="closed"):
            watch.wait(60)
        assert time.monotonic() - began < 60
        timer.join()
        watch.close()
        store.close()
