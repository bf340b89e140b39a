"""Opening a Redis store: foreign data is left alone, and servers that refuse are told apart."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.local_server import free_port
from support.redis_server import delete_library

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library import LibraryChange

PING = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))


def test_two_prefixes_are_two_libraries(library_url, open_redis):
    """What is committed under one prefix is not seen under another, longer one."""
    one, two = open_redis(library_url), open_redis(f"{library_url}x")
    one.commit(PING, expected_version=0)
    assert (one.load().version, two.load().version) == (1, 0)
    delete_library(f"{library_url}x")
    assert one.load().version == 1


def test_a_final_colon_of_a_prefix_is_the_same_prefix(library_url, open_redis):
    """``prefix=team`` and ``prefix=team:`` are one library."""
    open_redis(library_url).commit(PING, expected_version=0)
    assert open_redis(f"{library_url}:").load().version == 1


@pytest.mark.parametrize("place", range(12))
def test_keys_of_another_program_are_refused_and_left_alone(library_url, raw, place):
    """A key of ours that somebody else made is never written over."""
    client, keys = raw(library_url)
    client.set(keys.all[place], "mine")
    with pytest.raises(StoreFormatError, match="prefix="):
        open_store(library_url)
    assert client.get(keys.all[place]) == b"mine"
    assert client.exists(*keys.all) == 1


def test_a_hash_of_another_program_is_refused(library_url, raw):
    """A head without our mark is somebody else's, as is one with another mark."""
    client, keys = raw(library_url)
    for mark in ({"a": "b"}, {"format": "something 1"}, {"format": "agentkit-redis one"}):
        client.hset(keys.head, mapping=mark)
        with pytest.raises(StoreFormatError, match="did not make"):
            open_store(library_url)
        assert client.hgetall(keys.head) == {k.encode(): v.encode() for k, v in mark.items()}
        client.delete(keys.head)


def test_a_newer_format_is_refused_by_stores_that_are_open(library_url, open_redis, raw):
    """A library that a newer program took over is neither read nor written by an older one."""
    store = open_redis(library_url)
    client, keys = raw(library_url)
    client.hset(keys.head, "format", "agentkit-redis 7")
    for work in (
        store.load,
        store.versions,
        store.events,
        store.select,
        store.volume,
        lambda: store.history("ping"),
        lambda: store.get("e"),
        lambda: store.commit(PING, expected_version=0),
    ):
        with pytest.raises(StoreFormatError, match="format is 7"):
            work()
    assert client.exists(*keys.all) == 2


def test_a_library_that_is_gone_is_not_taken_for_an_empty_one(library_url, open_redis):
    """Once its keys were deleted, a store that is open says so and begins nothing anew."""
    store = open_redis(library_url)
    store.commit(PING, expected_version=0)
    delete_library(library_url)
    for work in (store.load, lambda: store.commit(PING, expected_version=0)):
        with pytest.raises(StoreError, match="no longer holds the library"):
            work()
    assert open_redis(library_url).load().version == 0


def test_a_refused_connection_says_what_to_do():
    """Where nobody listens the address is shown, and that the server is to be started."""
    with pytest.raises(StoreUnavailableError, match=r"redis://127\.0\.0\.1:\d+.*Start the server"):
        open_store(f"redis://127.0.0.1:{free_port()}/0")


def test_an_unknown_host_says_what_to_do():
    """A name that nobody knows is shown."""
    with pytest.raises(StoreUnavailableError, match=r"no-such-host\.invalid"):
        open_store("redis://no-such-host.invalid/0")


@pytest.mark.parametrize("login", ["", ":wrong-word@", "nobody:wrong-word@"])
def test_a_wrong_password_is_told_and_not_shown(start_server, login):
    """A server that wants a password is told apart, and nothing of ours shows the given one."""
    server = start_server(requirepass="right-word")
    url = server.url.replace("://", f"://{login}")
    with pytest.raises(StoreError, match="user or the password") as caught:
        open_store(url)
    assert not isinstance(caught.value, StoreUnavailableError)
    assert "wrong-word" not in str(caught.value)
    with closing(open_store(server.url.replace("://", "://:right-word@"))) as store:
        assert store.load().version == 0
        assert "right-word" not in repr(store) + repr(store.address) + repr(vars(store))


def test_a_server_without_tls_is_told_apart(start_server):
    """``rediss://`` at a server that does not encrypt names the other scheme."""
    server = start_server()
    with pytest.raises(
        StoreUnavailableError, match=r"redis:// for one|redis:// for a server without"
    ):
        open_store(f"rediss://127.0.0.1:{server.port}/0?timeout=0.5")


def test_a_closed_store_refuses_everything(library_url):
    """After ``close`` every method says that the store is closed."""
    store = open_store(library_url)
    store.close()
    for work in (
        store.load,
        store.versions,
        store.events,
        store.select,
        store.volume,
        store.changes,
        lambda: list(store.check()),
        lambda: store.append_many([]),
        lambda: store.commit(PING, expected_version=0),
    ):
        with pytest.raises(StoreError, match="closed"):
            work()
