"""A server that ends or is killed under load: nothing acknowledged is lost, nothing made twice."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from support.faults import fault_runs
from support.store_race import race_faults, run_race

from agentkit import open_store

pytestmark = pytest.mark.faults


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
