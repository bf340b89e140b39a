"""Servers that die: what was answered is kept as the settings say, and nothing is there twice."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from support.faults import fault_runs
from support.store_race import Racer, proposal, race_faults

from agentkit import Episode, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library.chain_check import verify_chain
from agentkit.library.events import Author

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
