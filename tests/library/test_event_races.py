"""Definitions and events survive writers that race, and writers that are killed in mid-commit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agentkit.library.chain_faults import verify_chain
from agentkit.library.chain_library import verify_library
from agentkit.library.sqlite import SQLiteStore

HERE = Path(__file__).parent
PROPOSALS = 500
WRITERS = 4
KILLS = 200


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program beside this file."""
    command = [sys.executable, str(HERE / program), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answer_of(process: subprocess.Popen[str]) -> dict[str, int]:
    """What a program printed at its end."""
    with process:
        told, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(told)


def test_proposals_that_four_processes_offer_are_each_committed_once(tmp_path):
    """All four offer the same 500 ids: each makes one version with one event, whoever was first."""
    path = tmp_path / "store.db"
    SQLiteStore(path).close()
    starts = range(0, PROPOSALS, PROPOSALS // WRITERS)
    racers = [start("racing_writer.py", f"sqlite:///{path}", at, PROPOSALS) for at in starts]
    answers = [answer_of(racer) for racer in racers]
    made, known, stale = (sum(a.get(k, 0) for a in answers) for k in ("made", "known", "stale"))
    assert (made, known) == (PROPOSALS, PROPOSALS * (WRITERS - 1))
    assert stale > 0
    with closing(SQLiteStore(path)) as store:
        events = store.events()
        assert list(store.versions()) == list(range(1, PROPOSALS + 1))
        assert [event.library_version for event in events] == list(store.versions())
        ids = {event.proposal_id for event in events}
        assert ids == {f"proposal-{number}" for number in range(PROPOSALS)}
        assert verify_chain(events) == verify_library(store, events) == ()


@pytest.mark.skipif(
    not (hasattr(os, "fork") and hasattr(signal, "SIGKILL")), reason="the system can not fork"
)
def test_writers_killed_in_mid_commit_leave_nothing_half_done(tmp_path):
    """After each of 200 kills inside a transaction: all that was answered is kept, once, whole."""
    path = tmp_path / "store.db"
    found = answer_of(start("kill_writers.py", path, KILLS, 1))
    assert found["in_commit"] >= KILLS
    with closing(SQLiteStore(path)) as store:
        events = store.events()
        assert len(events) == found["events"]
        assert verify_chain(events) == verify_library(store, events) == ()
