"""Writers side by side, writers that are killed, servers that restart."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing

import pytest
from support.cost import fault_runs
from support.store_killer import kill_writers
from support.store_race import race_faults, run_race

from agentkit import open_store

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
