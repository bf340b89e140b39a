"""Writers side by side and killed, servers that restart, connections that are cut."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing

import pytest
from support.cost import fault_runs, fault_seconds
from support.store_killer import kill_writers
from support.store_race import Racer, race_faults, run_race

from agentkit import open_store
from agentkit.errors import StoreUnavailableError

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("is_shared", [False, True], ids=["own proposals", "the same proposals"])
def test_four_processes_lose_no_proposal(store_url, *, is_shared):
    """Each proposal is made once, the versions have no gap, and no update is lost."""
    each = fault_runs(20)
    report = run_race(store_url, writers=4, each=each, is_shared=is_shared)
    assert report.made == report.proposals == (each if is_shared else 4 * each)
    with closing(open_store(store_url)) as store:
        assert race_faults(store, report.proposals) == ()
        assert list(store.check()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_nothing_is_lost_doubled_or_torn(store_url):
    """After each kill all that was answered is there, all that was sent is whole and there once."""
    runs = fault_runs(5)
    report = kill_writers(store_url, runs)
    assert report.in_commit == runs
    assert report.changes >= runs


def wait_for_version(url, version):
    """Wait until the writers have come so far."""
    with closing(open_store(url)) as store:
        while store.load().version < version:
            time.sleep(0.01)


@pytest.mark.parametrize("way", ["killed", "stopped"])
def test_a_restart_under_load_loses_nothing(served_store, way):
    """Writers that offer again what got no answer make each proposal once, across restarts."""
    restarts = fault_runs(2, most=10)
    reports = []

    def race() -> None:
        reports.append(
            run_race(served_store.url, writers=3, each=25 * restarts, patience_seconds=60)
        )

    racing = threading.Thread(target=race)
    racing.start()
    for number in range(1, restarts + 1):
        wait_for_version(served_store.url, 10 * number)
        served_store.server.kill() if way == "killed" else served_store.server.stop()
        time.sleep(0.1)
        served_store.server.start()
    racing.join()
    (report,) = reports
    with closing(open_store(served_store.url)) as store:
        assert race_faults(store, 75 * restarts) == ()
    assert report.proposals == 75 * restarts


class Writer(threading.Thread):
    """Offers one proposal after the other until it is told to stop."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._over = threading.Event()
        self.made = 0
        self.unavailable = 0

    def run(self) -> None:
        """Offer, again where the store is away."""
        with closing(open_store(self._url)) as store:
            racer = Racer(store, patience_seconds=120)
            while not self._over.is_set():
                racer.offer(self.made)
                self.made += 1
                self.unavailable = racer.answers["unavailable"]

    def wait_for(self, more: int) -> None:
        """Wait until so many more are made."""
        wanted = self.made + more
        while self.made < wanted:
            assert self.is_alive()
            time.sleep(0.01)

    def stop(self) -> None:
        """Let it finish the proposal at hand."""
        self._over.set()
        self.join()


def test_a_network_that_is_cut_and_mended_loses_nothing(served_store, proxy, url_through):
    """A writer goes on after the silence, and each of its proposals was made once."""
    writer = Writer(url_through)
    writer.start()
    for _ in range(2):
        writer.wait_for(5)
        proxy.cut()
        time.sleep(fault_seconds(0.5, 30.0))
        proxy.mend()
    writer.wait_for(5)
    writer.stop()
    with closing(open_store(served_store.url)) as store:
        assert race_faults(store, writer.made) == ()


def test_connections_that_break_lose_nothing(served_store, proxy, url_through):
    """A writer whose connections are reset again and again makes each proposal once."""
    writer = Writer(url_through)
    writer.start()
    for _ in range(10):
        writer.wait_for(2)
        proxy.reset()
    writer.wait_for(5)
    writer.stop()
    with closing(open_store(served_store.url)) as store:
        assert race_faults(store, writer.made) == ()


def test_a_reader_is_told_and_recovers(served_store, proxy, url_through):
    """A store whose connections break says that it is unavailable or answers, never wrongly."""
    with closing(open_store(served_store.url)) as near, closing(open_store(url_through)) as far:
        racer = Racer(near)
        for number in range(10):
            racer.offer(number)
            proxy.reset()
            for _ in range(20):
                try:
                    assert far.load().version == number + 1
                    assert len(far.events()) == number + 1
                except StoreUnavailableError:
                    continue
                break
            else:
                pytest.fail("the store did not come back")
