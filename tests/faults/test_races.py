"""Programs that write to one store at the same time, in every store."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.faults import fault_runs
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
