"""Writers that die: kill -9 in the middle of commits, hundreds of times, in every store."""

from __future__ import annotations

import os

import pytest
from support.faults import fault_runs
from support.store_killer import kill_writers

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system can not fork"),
]


def test_nothing_is_lost_doubled_or_torn(store_url):
    """After each kill all that was answered is there, all that was sent is whole and there once."""
    runs = fault_runs(5)
    report = kill_writers(store_url, runs)
    assert report.in_commit == runs
    assert report.changes >= runs
