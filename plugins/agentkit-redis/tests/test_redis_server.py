"""The server of tests: it starts again with its data, and leaves nothing behind."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.local_server import ServerError
from support.redis_server import RedisServer, empty_library, redis_server_url, server_program

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreUnavailableError
from agentkit.library import LibraryChange

PING = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))


@pytest.fixture(autouse=True)
def _program():
    """Skips where no server is installed."""
    try:
        server_program()
    except ServerError as error:
        pytest.skip(str(error))


def test_it_starts_again_with_its_data_and_leaves_nothing():
    """A restart keeps the port and what was committed; at the end process and folder are gone."""
    with RedisServer() as server:
        with closing(open_store(server.url)) as store:
            store.commit(PING, expected_version=0)
            server.restart()
            assert store.load().version == 1
        assert server.is_running
        assert server.folder.exists()
    assert not server.is_running
    assert not server.folder.exists()
    with pytest.raises(StoreUnavailableError):
        open_store(server.url)


def test_one_that_does_not_start_leaves_nothing():
    """A setting that nobody knows ends in an error with the server's own words."""
    server = RedisServer({"no-such-setting": "1"})
    with pytest.raises(ServerError, match="no-such-setting"), server:
        pass
    assert not server.folder.exists()


def test_libraries_of_tests_are_empty_apart_and_deleted():
    """Two libraries of one server do not see each other, and their keys go with them."""
    with RedisServer() as server:
        with empty_library(server.url) as one, empty_library(server.url) as two:
            with closing(open_store(one)) as store:
                store.commit(PING, expected_version=0)
            with closing(open_store(two)) as store:
                assert store.load().version == 0
        with closing(open_store(server.url)) as store:
            assert store._connection.ask("DBSIZE") == 2  # the head and the volume of this one


def test_a_server_that_is_there_is_used(monkeypatch):
    """With a URL in the environment none is started."""
    monkeypatch.setenv("AGENTKIT_TEST_REDIS_URL", "redis://127.0.0.1:1/0")
    with redis_server_url() as url:
        assert url == "redis://127.0.0.1:1/0"
