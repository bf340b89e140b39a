"""Definitions and events survive writers that race, and writers that are killed in mid-commit."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import pytest
from support.store_killer import kill_writers
from support.store_race import run_race

from agentkit.library.sqlite import SQLiteStore
from agentkit.testing.conformance.races import race_faults

PROPOSALS = 500
WRITERS = 4
KILLS = 200


@pytest.mark.long
def test_proposals_that_four_processes_offer_are_each_committed_once(tmp_path):
    """All four offer the same 500 ids: each makes one version with one event, whoever was first."""
    path = tmp_path / "store.db"
    report = run_race(f"sqlite:///{path}", writers=WRITERS, each=PROPOSALS, is_shared=True)
    assert (report.made, report.known) == (PROPOSALS, PROPOSALS * (WRITERS - 1))
    assert report.stale > 0
    with closing(SQLiteStore(path)) as store:
        assert race_faults(store, PROPOSALS) == ()


@pytest.mark.long
@pytest.mark.skipif(
    not (hasattr(os, "fork") and hasattr(signal, "SIGKILL")), reason="the system can not fork"
)
def test_writers_killed_in_mid_commit_leave_nothing_half_done(tmp_path):
    """After each of 200 kills inside a commit: all that was answered is kept, once, whole."""
    report = kill_writers(f"sqlite:///{tmp_path / 'store.db'}", KILLS)
    assert report.in_commit == KILLS
