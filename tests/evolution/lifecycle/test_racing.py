"""Managers that race each other make each proposal active exactly once, and lose none."""

from __future__ import annotations

import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentkit import open_store
from agentkit.evolution.ledger import Ledger
from agentkit.library.chain_check import verify_chain, verify_library
from agentkit.testing.store_fixtures import together

PROGRAM = Path(__file__).with_name("racing_manager.py")


@pytest.fixture
def racing():
    """What the racing program defines."""
    return SimpleNamespace(**runpy.run_path(str(PROGRAM)))


def check_all_are_in(racing, store, count):
    """Each proposal became active once; every edit is in the library; the chain is whole."""
    events = store.events()
    promoted = [event.proposal_id for event in events if event.kind == "active"]
    assert len(promoted) == len(set(promoted)) == count
    counts = Ledger().after(events).counts()
    assert counts["active"] + counts["superseded"] == count
    assert store.load().version == 1 + count
    for proposal in racing.proposals(count):
        wanted = proposal.candidate.description.parameters
        held = store.load()[proposal.tool_name].definition.description.parameters
        assert wanted.items() <= held.items()
    assert not verify_chain(events)
    assert not verify_library(store, events)


def test_threads_with_managers_of_their_own(racing):
    """Four threads take the same proposals through one store; others are often faster."""
    store = open_store("memory:")
    racing.manager_of(store).register(racing.definitions())
    stores = [racing.Counting(store) for _ in range(4)]
    outcomes = together(
        [lambda seed=seed: racing.take_through(stores[seed], seed, 40) for seed in range(4)]
    )
    assert outcomes == [None] * 4
    check_all_are_in(racing, store, 40)
    assert sum(one.stale for one in stores) > 0


def test_threads_that_share_a_manager(racing):
    """Four threads with one manager make each proposal active once, too."""
    store = open_store("memory:")
    manager = racing.manager_of(store)
    manager.register(racing.definitions())

    def take(proposal):
        manager.submit(proposal)
        manager.advance(proposal.proposal_id)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take, [*racing.proposals(40), *racing.proposals(40)]))
    check_all_are_in(racing, store, 40)


def test_processes(racing, tmp_path):
    """Four programs take the same proposals through one SQLite file."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    store = open_store(url)
    racing.manager_of(store).register(racing.definitions())
    programs = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), url, str(seed), "12"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    for program in programs:
        assert program.stdout.readline() == "ready\n"
    for program in programs:  # all begin together, so that they stand in each other's way
        program.stdin.write("go\n")
        program.stdin.flush()
    stale = [int(program.communicate()[0]) for program in programs]
    assert [program.returncode for program in programs] == [0] * 4
    check_all_are_in(racing, store, 12)
    assert sum(stale) > 0
    store.close()
