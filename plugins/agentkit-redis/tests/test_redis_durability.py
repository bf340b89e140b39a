"""What a commit is worth is read from the server's settings, said, and may be insisted on."""

import logging
import threading

import pytest
from support.tcp_proxy import TcpProxy

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import LibraryChange

PING = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))

SETTINGS = {
    "always": {"appendonly": "yes", "appendfsync": "always"},
    "everysec": {"appendonly": "yes", "appendfsync": "everysec"},
    "os": {"appendonly": "yes", "appendfsync": "no"},
    "snapshots": {"appendonly": "no", "save": "3600 1"},
    "none": {"appendonly": "no", "save": ""},
}


@pytest.mark.parametrize("level", SETTINGS)
def test_the_level_is_read_and_said(start_server, open_redis, caplog, level):
    """Each way to keep data is known; where a commit may be lost there is a warning that says how."""
    server = start_server(**SETTINGS[level])
    with caplog.at_level(logging.INFO, "agentkit_redis"):
        store = open_redis(server.url)
    assert store.durability.level == level
    (record,) = caplog.records
    assert store.durability.meaning in record.message
    is_safe = level in {"always", "everysec"}
    assert record.levelno == (logging.INFO if is_safe else logging.WARNING)
    assert ("CONFIG SET appendonly yes" in record.message) == (not is_safe)


@pytest.mark.parametrize(
    ("level", "required", "is_enough"),
    [
        ("always", "always", True),
        ("everysec", "always", False),
        ("everysec", "everysec", True),
        ("always", "everysec", True),
        ("os", "everysec", False),
        ("snapshots", "everysec", False),
        ("none", "everysec", False),
        ("none", "none", True),
    ],
)
def test_an_operator_can_insist(start_server, open_redis, level, required, is_enough):
    """A server that does less than ``require`` says is refused before anything is written."""
    server = start_server(**SETTINGS[level])
    url = f"{server.url}?require={required}"
    if is_enough:
        assert open_redis(url).load().version == 0
        return
    with pytest.raises(StoreError, match=f"{level!r}.*require={required}"):
        open_store(url)


def test_a_server_that_does_not_tell_is_unknown(start_server, open_redis, raw, caplog):
    """Where CONFIG is forbidden, as on managed services, nothing is promised."""
    server = start_server()
    client, _ = raw(server.url)
    client.execute_command("ACL SETUSER app on >word ~* &* +@all -config")
    url = server.url.replace("://", "://app:word@")
    store = open_redis(url)
    assert store.durability.level == "unknown"
    assert "CONFIG is forbidden" in caplog.text
    assert store.commit(PING, expected_version=0) == 1
    with pytest.raises(StoreError, match="unknown"):
        open_store(f"{url}?require=everysec")
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.config_set("maxmemory", "100mb")
    with pytest.raises(StoreError, match="allkeys-lru"):  # INFO tells that much
        open_store(url)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_server_that_drops_keys_is_refused(start_server, policy):
    """With a bound on memory, a policy that may drop a library is refused with the line to set."""
    server = start_server(maxmemory="100mb", maxmemory_policy=policy)
    with pytest.raises(StoreError, match=f"{policy}.*CONFIG SET maxmemory-policy noeviction"):
        open_store(server.url)


def test_replicas_can_be_waited_for(start_server, open_redis, raw):
    """With ``replicas=1`` a commit is answered once a replica has it, and not before."""
    primary = start_server(repl_diskless_sync_delay="0")
    store = open_redis(f"{primary.url}?replicas=1&timeout=0.5")
    with pytest.raises(StoreError, match="0 of 1 replicas"):
        store.commit(PING, expected_version=0)
    replica = start_server(replicaof=f"127.0.0.1 {primary.port}", appendonly="no")
    client, keys = raw(replica.url)
    patient = open_redis(f"{primary.url}?replicas=1&timeout=20")
    assert patient.commit(PING, expected_version=0) == 1
    assert client.hget(keys.head, "version") == b"1"


def test_a_primary_that_lacks_the_commit_does_not_wait_for_it(start_server, open_redis, raw):
    """When another primary takes over in the middle of waiting, the commit is sent to it, too."""
    server = start_server(appendonly="no", save="3600 1000000", repl_diskless_sync_delay="0")
    client, keys = raw(server.url)
    open_redis(server.url)
    client.save()
    with TcpProxy(port=server.port) as proxy:
        store = open_redis(f"redis://127.0.0.1:{proxy.port}/0?replicas=1&timeout=20")
        made = []
        work = threading.Thread(target=lambda: made.append(store.commit(PING, expected_version=0)))
        work.start()
        while not client.info("clients")["blocked_clients"]:
            """It commits, and then waits for a replica."""
        assert client.hget(keys.head, "version") == b"1"
        proxy.cut()
        server.kill()
        server.start()
        assert client.hget(keys.head, "version") == b"0"
        start_server(replicaof=f"127.0.0.1 {server.port}", appendonly="no")
        proxy.mend()
        work.join()
    assert made == [1]
    assert client.hget(keys.head, "version") == b"1"


def test_a_user_who_may_not_wait_is_told_that_the_change_is_there(start_server, open_redis, raw):
    """Without the right to WAIT nobody knows what replicas have; the commit itself was taken."""
    server = start_server()
    client, keys = raw(server.url)
    client.execute_command("ACL SETUSER app on >word ~* &* +@all -wait")
    store = open_redis(server.url.replace("://", "://app:word@") + "?replicas=1")
    with pytest.raises(StoreUnavailableError, match=r"has the change, but nobody knows.*'wait'"):
        store.commit(PING, expected_version=0)
    assert client.hget(keys.head, "version") == b"1"
