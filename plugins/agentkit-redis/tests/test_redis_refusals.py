"""A server that refuses a write has changed nothing, and the error says what to do next."""

from __future__ import annotations

from contextlib import closing

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.store import Retention
from agentkit.tools.definition import Description


def _change(number, *, size=0, last=None):
    """A change with a definition of some size, and an event."""
    draft = EventDraft(kind="written", author=Author(kind="program", name="test"))
    tool = ToolDefinition(name=f"t{number}", description=Description(summary="x" * size))
    events = chained(last, [draft], at="2026-11-21T10:00:00+00:00")
    return LibraryChange(proposal_id=f"p{number}", upserts=(tool,), events=events)


def _episode(number, *, size=0):
    return Episode(episode_id=f"e{number}", request="x" * size, session_id="s")


def _commit_for_ever(store):
    version, last = 0, None
    while True:
        change = _change(version, size=200_000, last=last)
        version, last = store.commit(change, expected_version=version), change.events[0]


def _contents(client, keys):
    return [client.dump(key) for key in keys.all]


def test_a_full_memory_takes_nothing_and_loses_nothing(start_server, open_redis, raw):
    """Without memory a commit is refused before its first write, and a known one is still known."""
    server = start_server(maxmemory_policy="noeviction")
    store = open_redis(server.url)
    client, keys = raw(server.url)
    first = _change(0)
    assert store.commit(first, expected_version=0) == 1
    store.append_many([_episode(0, size=50_000), _episode(1, size=50_000)])
    client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
    before = _contents(client, keys)
    for work in (
        lambda: store.commit(_change(1, size=10**6, last=first.events[0]), expected_version=1),
        lambda: store.commit(
            LibraryChange(proposal_id="gone", removals=("t0",)), expected_version=1
        ),
        lambda: store.append(_episode(2)),
    ):
        with pytest.raises(StoreError, match=r"no memory left.*Nothing was changed.*maxmemory"):
            work()
        assert _contents(client, keys) == before
    assert store.commit(first, expected_version=7) == 1
    assert store.load().version == 1
    assert list(store.check()) == []
    assert store.prune(Retention(max_count=0)).count == 2  # the way out works
    client.config_set("maxmemory", 0)
    assert store.commit(_change(1, last=first.events[0]), expected_version=1) == 2


def test_memory_that_runs_out_in_the_middle_tears_nothing(start_server, open_redis, raw):
    """Each commit near the bound is there as a whole or not at all."""
    server = start_server(maxmemory_policy="noeviction")
    store = open_redis(server.url)
    client, _ = raw(server.url)
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 3_000_000)
    with pytest.raises(StoreError, match="no memory left"):
        _commit_for_ever(store)
    version = store.load().version
    assert version > 3
    assert (store.load().version, len(store.events())) == (version, version)
    assert list(store.check()) == []


def test_a_replica_is_read_and_not_written(start_server, open_redis, raw):
    """A store on a read-only replica loads; a commit names the primary as the way."""
    primary = start_server(repl_diskless_sync_delay="0")
    store = open_redis(primary.url)
    store.commit(_change(0), expected_version=0)
    store.append(_episode(0))
    replica = start_server(replicaof=f"127.0.0.1 {primary.port}", appendonly="no")
    client, keys = raw(replica.url)
    while client.hget(keys.head, "version") != b"1" or not client.exists(keys.episodes):
        """The first copy is on its way."""
    reader = open_redis(replica.url)
    assert reader.load().definitions == store.load().definitions
    assert [one.episode_id for one in reader.select()] == ["e0"]
    assert reader.events() == store.events()
    for work in (
        lambda: reader.commit(_change(1, last=store.events()[0]), expected_version=1),
        lambda: reader.append(_episode(1)),
        lambda: reader.prune(Retention(max_count=0)),
    ):
        with pytest.raises(StoreError, match=r"replica.*Nothing was changed.*primary"):
            work()


def test_an_empty_replica_begins_no_library(start_server):
    """Where there is nothing to read, a replica can not be opened, and says so."""
    primary = start_server(repl_diskless_sync_delay="0")
    replica = start_server(replicaof=f"127.0.0.1 {primary.port}", appendonly="no")
    with pytest.raises(StoreError, match="replica"):
        open_store(replica.url)


def _reload(url, raw):
    client, _ = raw(f"{url}?timeout=60")
    client.execute_command("DEBUG", "RELOAD")


def test_a_user_with_few_rights_is_refused_before_the_first_write(start_server, raw):
    """Whichever command of a script is forbidden, a commit leaves nothing half done."""
    server = start_server()
    client, keys = raw(server.url)
    with closing(open_store(server.url)) as store:
        store.commit(_change(0), expected_version=0)
        last = store.events()[0]
    for command in ("hset", "hsetnx", "zadd", "xadd", "hdel", "hincrby", "xdel", "zrem"):
        rule = f"ACL SETUSER app reset on >word ~* &* +@all -{command}"
        client.execute_command(rule)
        before = _contents(client, keys)
        with closing(open_store(server.url.replace("://", "://app:word@"))) as store:
            with pytest.raises(StoreError, match="does not let this user"):
                store.commit(_change(1, last=last), expected_version=1)
            assert store.load().version == 1
        assert _contents(client, keys) == before


HEAD_AND_NOT = "resetkeys %R~* ~{{agentkit}}:head* {}".format

LOST_RIGHTS = {
    "-hset": ("commit", "append", "prune"),
    "-hsetnx": ("commit",),
    "-zadd": ("commit", "append"),
    "-xadd": ("commit", "append"),
    "-hdel": ("commit", "prune"),
    "-xdel": ("prune",),
    "-zrem": ("prune",),
    HEAD_AND_NOT("~{agentkit}:versions"): ("commit", "append", "prune"),
    HEAD_AND_NOT("~{agentkit}:episodes"): ("commit", "append", "prune"),
}
"""What an administrator may take away, and the works that need it."""


def test_a_right_that_is_taken_away_tears_nothing(start_server, raw):
    """A user who loses a right while a store is open is refused before the first write."""
    server = start_server()
    client, keys = raw(server.url)
    if int(client.info("server")["redis_version"].partition(".")[0]) < 7:
        pytest.skip("before Redis 7 a script can not ask for rights")
    client.execute_command("ACL SETUSER app on >word ~* &* +@all")
    with closing(open_store(server.url.replace("://", "://app:word@"))) as store:
        first = _change(0)
        store.commit(first, expected_version=0)
        store.append(_episode(0))
        works = {
            "commit": lambda: store.commit(_change(1, last=first.events[0]), expected_version=1),
            "append": lambda: store.append(_episode(1)),
            "prune": lambda: store.prune(Retention(max_count=0)),
        }
        before = _contents(client, keys)
        for rights, needing in LOST_RIGHTS.items():
            client.execute_command(f"ACL SETUSER app {rights}")
            for work in needing:
                with pytest.raises(StoreError, match=r"does not let.*Nothing was changed"):
                    works[work]()
                assert _contents(client, keys) == before
            client.execute_command("ACL SETUSER app ~* &* +@all")


def test_a_server_that_misses_its_replicas_says_to_wait(start_server, open_redis, raw):
    """With too few replicas (min-replicas-to-write) a commit is refused and may be sent again."""
    server = start_server()
    store = open_redis(server.url)
    client, _ = raw(server.url)
    client.execute_command("CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(StoreUnavailableError, match="misses the replicas"):
        store.commit(_change(0), expected_version=0)
    client.execute_command("CONFIG", "SET", "min-replicas-to-write", "0")
    assert store.commit(_change(0), expected_version=0) == 1
