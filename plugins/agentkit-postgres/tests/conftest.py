"""Fixtures of the plugin: one server for all tests of a process, and a schema for each test."""

from __future__ import annotations

import os
from collections.abc import Callable

import psycopg
import pytest
from support.local_server import ServerError
from support.postgres_server import URL_VARIABLE, PostgresServer, empty_store_url

from agentkit_postgres.address import Address

pytest.register_assert_rewrite("agentkit.testing.conformance")

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    """The key of the seals, and marks of what was looked at, lie in a cache of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def own_server():
    """A PostgreSQL that is started here, for tests that end it or look at its users."""
    try:
        server = PostgresServer()
    except ServerError as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture(scope="session")
def server_url(request):
    """A PostgreSQL: that of AGENTKIT_TEST_POSTGRES_URL, or one that is started here."""
    existing = os.environ.get(URL_VARIABLE)
    if existing:
        return existing
    server: PostgresServer = request.getfixturevalue("own_server")
    return server.url


@pytest.fixture
def store_url(server_url):
    """URL of an empty store."""
    with empty_store_url(server_url) as url:
        yield url


@pytest.fixture
def own_store_url(own_server):
    """URL of an empty store on the server that is started here."""
    with empty_store_url(own_server.url) as url:
        yield url


@pytest.fixture
def raw():
    """Opens connections to the schema of a store, beside the store."""
    opened: list[psycopg.Connection[tuple[object, ...]]] = []

    def connect(url: str) -> psycopg.Connection[tuple[object, ...]]:
        address = Address.parse(url)
        opened.append(psycopg.connect(address.conninfo, autocommit=True))
        opened[-1].execute(
            "SELECT set_config('search_path', quote_ident(%s), false)", [address.schema]
        )
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
