"""Networks that break, servers that die and servers that refuse: nothing acknowledged is lost."""

import os
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest
from support.cost import fault_runs
from support.store_race import Racer, proposal, race_faults
from support.tcp_proxy import TcpProxy

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.library.chain import verify_chain
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.store import Retention
from agentkit.tools.definition import Description


def _put(number):
    return LibraryChange(proposal_id=f"p{number}", upserts=(ToolDefinition(name=f"t{number}"),))


@pytest.fixture
def proxy(start_server):
    """A network between a store and a server of its own."""
    with TcpProxy(port=start_server().port) as proxy:
        yield proxy


@pytest.fixture
def through(proxy, open_redis):
    """A store behind the network, which waits half a second."""
    return open_redis(f"redis://127.0.0.1:{proxy.port}/0?timeout=0.5")


def test_a_cut_network_is_told_in_time_and_mended(proxy, through):
    """While nothing comes through every call ends in an error; afterwards the same store works."""
    through.commit(_put(0), expected_version=0)
    proxy.cut()
    for work in (
        through.load,
        through.versions,
        lambda: through.commit(_put(1), expected_version=1),
    ):
        with pytest.raises(StoreUnavailableError, match=r"no answer in 0\.5 s"):
            work()
    proxy.mend()
    version = through.load().version
    assert through.commit(_put(1), expected_version=version) == 2
    assert list(through.versions()) == [1, 2]
    assert list(through.check()) == []


def test_broken_connections_are_replaced_unseen(proxy, through):
    """A router that forgets connections costs nothing: what was asked is asked again, once."""
    for number in range(20):
        proxy.reset()
        assert through.commit(_put(number), expected_version=number) == number + 1
        proxy.reset()
        assert through.load().version == number + 1


def test_a_commit_whose_answer_is_lost_is_known_when_it_is_sent_again(start_server, open_redis):
    """The server took it after we gave up; the second time the first version is answered."""
    server = start_server()
    store = open_redis(f"{server.url}?timeout=0.3")
    store.commit(_put(0), expected_version=0)
    server.pause()
    with pytest.raises(StoreUnavailableError, match="nothing is done twice"):
        store.commit(_put(1), expected_version=1)
    server.resume()
    while len(store.versions()) < 2:
        """It does what it was asked before."""
    assert store.commit(_put(1), expected_version=1) == 2
    assert list(store.versions()) == [1, 2]
    assert list(store.check()) == []


def test_an_ended_server_is_unavailable_until_it_is_back(start_server, open_redis):
    """Without a server calls fail at once; the same store works when it was started again."""
    server = start_server()
    store = open_redis(server.url)
    store.commit(_put(0), expected_version=0)
    server.stop()
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        store.load()
    server.start()
    assert store.load().version == 1
    assert store.commit(_put(1), expected_version=1) == 2  # the scripts are new to it


FORK = """
import os, sys
from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange

store = open_store(sys.argv[1])

def put(name):
    version = store.load().version
    change = LibraryChange(proposal_id=name, upserts=(ToolDefinition(name=name),))
    assert store.commit(change, expected_version=version) == version + 1

put("parent")
child = os.fork()
if child == 0:
    try:
        for number in range(20):
            put(f"child-{number}")
        store.close()
        os._exit(0)
    finally:
        os._exit(1)
_, status = os.waitpid(child, 0)
assert status == 0, status
put("parent again")
assert store.load().version == 22
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_fork_goes_on_with_the_store(library_url):
    """Parent and child use the store one after the other, each over connections of its own."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, library_url], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


pytestmark = pytest.mark.faults

AUTHOR = Author(kind="program", name="writer")


@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
def test_a_killed_server_keeps_what_its_settings_say(start_server, record_property, appendfsync):
    """After kill -9 in the middle of load ``always`` has every answered commit, and none twice.

    With ``everysec`` the last ones may be gone, when the disk was slow; what is there is whole.
    """
    server = start_server(appendfsync=appendfsync)
    lost = 0
    for run in range(fault_runs(3, most=100)):
        url = f"{server.url}?prefix=run-{run}"
        answered, sent = _load_until_killed(server, url)
        server.start()
        with closing(open_store(url)) as store:
            version = store.load().version
            lost += max(0, answered - version)
            assert version <= sent
            assert list(store.check()) == []
            assert race_faults(store, version) == ()
    record_property("lost", lost)
    assert lost == 0 or appendfsync == "everysec"


def _load_until_killed(server, url):
    """Commit one proposal after the other until the server dies; how many it answered and got."""
    answered = sent = 0
    with closing(open_store(url)) as store:
        last = None
        killer = threading.Timer(0.15, server.kill)
        killer.start()
        try:
            while True:
                change = proposal(sent, last, version=sent + 1, author=AUTHOR)
                sent += 1
                store.commit(change, expected_version=answered)
                answered, last = sent, change.events[-1]
        except StoreUnavailableError:
            killer.join()
            return answered, sent


def test_a_restart_in_the_middle_of_load_doubles_nothing(start_server, open_redis):
    """Writers that send again what got no answer come through restarts with each proposal once."""
    server = start_server(appendfsync="always")
    with closing(open_store(server.url)):
        """The library is there."""
    restarts = fault_runs(3, most=50)
    each = 20 * restarts
    works = [
        threading.Thread(target=_offer, args=(server.url, range(each * n, each * (n + 1))))
        for n in range(3)
    ]
    for work in works:
        work.start()
    for number in range(restarts):
        time.sleep(0.15)
        (server.stop if number % 2 else server.kill)()
        server.start()
        if not any(work.is_alive() for work in works):
            break
    for work in works:
        work.join()
    store = open_redis(server.url)
    assert race_faults(store, 3 * each) == ()
    assert list(store.check()) == []


def _offer(url, numbers):
    with closing(open_store(f"{url}?timeout=20")) as store:
        racer = Racer(store)
        for number in numbers:
            while True:
                try:
                    racer.offer(number)
                except StoreUnavailableError:
                    time.sleep(0.02)
                else:
                    break


def test_a_server_that_keeps_nothing_says_so_afterwards(start_server, open_redis):
    """Without persistence a restart takes the library: known at open, and not taken for empty."""
    server = start_server(appendonly="no", save="")
    store = open_redis(server.url)
    assert store.durability.level == "none"
    racer = Racer(store)
    racer.offer(0)
    server.kill()
    server.start()
    with pytest.raises(StoreError, match="no longer holds the library"):
        store.load()


def test_a_server_that_came_back_older_is_believed(start_server, open_redis, raw):
    """After a restart from an old snapshot a store shows what the server has, not what it knew."""
    server = start_server(appendonly="no", save="3600 1000000")
    store = open_redis(server.url)
    racer = Racer(store)
    for number in range(3):
        racer.offer(number)
    client, _ = raw(server.url)
    client.save()
    for number in range(3, 6):
        racer.offer(number)
    store.append(Episode(episode_id="late", request="?"))
    newest = store.load()
    server.kill()
    server.start()
    assert store.load().version == 3
    for number in range(6, 9):  # three others take the places of those that are gone
        Racer(store).offer(number)
    again = store.load()
    assert (newest.version, again.version) == (6, 6)
    assert again.definitions != newest.definitions
    with closing(open_store(server.url)) as fresh:
        assert fresh.load().definitions == again.definitions
    assert verify_chain(store.events()) == ()
    assert list(store.check()) == []


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
    """Where there is nothing to read, a replica cannot be opened, and says so."""
    primary = start_server(repl_diskless_sync_delay="0")
    replica = start_server(replicaof=f"127.0.0.1 {primary.port}", appendonly="no")
    with pytest.raises(StoreError, match="replica"):
        open_store(replica.url)


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
        pytest.skip("before Redis 7 a script cannot ask for rights")
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
