"""In a cluster a library lies on one node; another node says so."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from redis import Redis
from support.local_server import ServerError, free_port
from support.redis_server import RedisServer

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.library.store import Retention
from agentkit_redis.records import Keys

PING = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))


def _settings():
    """Of a node; the port on which nodes talk is usually the other one and 10,000."""
    return {
        "cluster-enabled": "yes",
        "cluster-require-full-coverage": "no",
        "cluster-port": str(free_port()),
    }


@pytest.fixture(scope="module")
def node():
    """A node of a cluster that serves the first half of the slots."""
    try:
        server = RedisServer(_settings())
    except ServerError as error:
        pytest.skip(str(error))
    with server, closing(Redis(port=server.port)) as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        _wait_until(client, "cluster_state:ok")  # it takes two seconds to believe it
        yield server


def node_ports(server):
    """The port of a node, and that on which nodes talk."""
    return server.port, server.settings["cluster-port"]


def _wait_until(client, told):
    """Wait until a node says so of its cluster."""
    while told not in _text(client.execute_command("CLUSTER", "INFO")):
        time.sleep(0.01)


def _text(answer):
    """What a cluster says, which some versions of redis-py take apart."""
    if isinstance(answer, dict):
        return " ".join(f"{name}:{value}" for name, value in answer.items())
    return answer.decode() if isinstance(answer, bytes) else answer


def _prefix(client, *, is_here):
    """A prefix whose slot is served by this node, or not."""
    names = (f"library-{number}" for number in range(100))
    for name in names:
        slot = client.execute_command("CLUSTER", "KEYSLOT", Keys.under(name).head)
        if (slot <= 8191) == is_here:
            return name
    raise AssertionError("there is no such name")


def test_all_keys_lie_in_one_slot(node, open_redis, raw):
    """Commits, episodes and everything else work on the node that has the slot."""
    client, _ = raw(node.url)
    prefix = _prefix(client, is_here=True)
    store = open_redis(f"{node.url}?prefix={prefix}")
    assert store.commit(PING, expected_version=0) == 1
    store.append(Episode(episode_id="e", request="?"))
    assert store.load().version == 1
    assert [one.episode_id for one in store.select()] == ["e"]
    assert store.prune(Retention(max_count=0)).count == 1
    assert list(store.check()) == []
    slots = {client.execute_command("CLUSTER", "KEYSLOT", key) for key in Keys.under(prefix).all}
    assert len(slots) == 1


def test_a_node_without_the_slot_says_so(node, raw):
    """A library whose slot nobody serves, or another node, is refused with the reason."""
    client, _ = raw(node.url)
    prefix = _prefix(client, is_here=False)
    with pytest.raises(StoreUnavailableError, match="cluster that is down"):
        open_store(f"{node.url}?prefix={prefix}")


def test_the_node_that_has_the_library_is_named(node, start_server, raw):
    """Where another node serves the slot, the answer with its address is shown."""
    other = start_server(**_settings())
    client, _ = raw(node.url)
    second, _ = raw(other.url)
    second.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
    second.execute_command("CLUSTER", "MEET", "127.0.0.1", *node_ports(node))
    _wait_until(client, "cluster_slots_assigned:16384")
    prefix = _prefix(client, is_here=False)
    with pytest.raises(StoreError, match=f"one node of a cluster.*{other.port}"):
        open_store(f"{node.url}?prefix={prefix}")
