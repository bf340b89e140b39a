"""One server for all tests of a process, an empty library for each test, and servers of one's own."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from redis import Redis
from support.local_server import ServerError
from support.redis_server import RedisServer, empty_library, redis_server_url, server_program

from agentkit import open_store
from agentkit_redis import RedisStore, parse_address
from agentkit_redis.connection import new_client
from agentkit_redis.reading import Keys

pytest.register_assert_rewrite("agentkit.testing.conformance")


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    """The key of the seals, and marks of what was looked at, lie in a cache of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def server_url():
    """URL of a Redis server; skips where there is none and none can be started."""
    try:
        with redis_server_url() as url:
            yield url
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture
def library_url(server_url):
    """URL of an empty library."""
    with empty_library(server_url) as url:
        yield url


@pytest.fixture
def start_server():
    """Starts a server of this test's own with some settings; skips where none is installed."""
    try:
        server_program()
    except ServerError as error:
        pytest.skip(str(error))
    with ExitStack() as running:

        def start(**settings: str) -> RedisServer:
            lines = {name.replace("_", "-"): value for name, value in settings.items()}
            return running.enter_context(RedisServer(lines))

        yield start


@pytest.fixture
def open_redis():
    """Opens stores, and closes them when the test is over."""
    opened: list[RedisStore] = []

    def open_one(url: str) -> RedisStore:
        store = open_store(url)
        assert isinstance(store, RedisStore)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(library_url, open_redis):
    """An empty store."""
    return open_redis(library_url)


@pytest.fixture
def raw():
    """A client of redis-py for a URL, and the keys of the library there."""
    opened: list[Redis] = []

    def connect(url: str) -> tuple[Redis, Keys]:
        address = parse_address(url)
        opened.append(new_client(address))
        return opened[-1], Keys.under(address.prefix)

    yield connect
    for client in opened:
        client.close()
        client.connection_pool.disconnect()
