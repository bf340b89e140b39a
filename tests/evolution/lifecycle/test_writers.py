"""Several writers, and stores that fail."""

from __future__ import annotations

import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import ToolDefinition, open_store
from agentkit.errors import StaleVersionError, StoreError
from agentkit.evolution.ledger import Ledger
from agentkit.library.chain_check import verify_chain, verify_library
from agentkit.library.store import LibraryChange
from agentkit.testing import primitive_library

# --- Managers that race each other make each proposal active exactly once, and lose none ---------


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
    states = [record.state for record in Ledger().after(events).proposals.values()]
    assert states.count("active") + states.count("superseded") == count
    assert store.load().version == 1 + count
    for proposal in racing.proposals(count):
        wanted = proposal.candidate.description.parameters
        held = store.load()[proposal.tool_name].definition.description.parameters
        assert wanted.items() <= held.items()
    assert not verify_chain(events)
    assert not verify_library(store, events)


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


# --- A store that fails in the middle leaves all of a step or nothing, and the manager goes o ----
# A store that fails in the middle leaves all of a step or nothing, and the manager goes on.


STEPS = ("submit", "approve", "advance", "roll_back", "pin", "unpin")
KINDS = {
    "submit": ["proposed", "validated"],
    "approve": ["approved"],
    "advance": ["active"],
    "roll_back": ["rolled_back"],
    "pin": ["pinned"],
    "unpin": ["unpinned"],
}


@pytest.fixture
def walk(make_manager, propose, ada):
    """A manager over an unreliable store, and the steps of one proposal by name."""

    def make(store):
        manager = make_manager(over=store)
        proposal = propose(manager)
        steps = {
            "submit": lambda: manager.submit(proposal),
            "approve": lambda: manager.approve(proposal.proposal_id, person=ada),
            "advance": lambda: manager.advance(proposal.proposal_id),
            "roll_back": lambda: manager.roll_back(proposal.proposal_id),
            "pin": lambda: manager.pin(1),
            "unpin": manager.unpin,
        }
        return manager, steps

    return make


def kinds(store):
    """The kinds of all events after the first, which registers the tools."""
    return [event.kind for event in store.events()][1:]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", ["refused", "unanswered"])
def test_a_step_that_fails_is_made_once_when_it_is_repeated(walk, store, step, fault):
    """Whether the store failed before or after it wrote, repeating the step makes it once."""
    at = STEPS.index(step)
    unreliable = UnreliableStore(store, [None] * (at + 1) + [fault])
    _, steps = walk(unreliable)
    for name in STEPS[:at]:
        steps[name]()
    before, version = kinds(store), store.load().version
    with pytest.raises(StoreError, match="connection was lost"):
        steps[step]()
    written = KINDS[step] if fault == "unanswered" else []
    assert kinds(store) == before + written
    if not written:
        assert store.load().version == version
    steps[step]()
    assert kinds(store) == before + KINDS[step]
    assert unreliable.met[fault] == 1
    assert not verify_chain(store.events())


def test_one_that_is_always_late_gives_up(walk, store):
    """After so many attempts the error says so, and nothing was written."""
    unreliable = UnreliableStore(store, [None, *["late"] * 100])
    _, steps = walk(unreliable)
    with pytest.raises(StaleVersionError):
        steps["submit"]()
    assert kinds(store) == []
    assert steps["submit"]().state == "validated"


def test_an_id_that_another_change_has(manager, store, propose):
    """A proposal whose id a change of another kind took is not taken for promoted."""
    change = LibraryChange(proposal_id="taken", upserts=(ToolDefinition(name="other"),))
    manager.edit(lambda _library: change)
    manager.submit(replace(propose(manager), proposal_id="taken"))
    with pytest.raises(StoreError, match="'taken' that was another one"):
        manager.advance()
    assert manager.ledger.proposals["taken"].state == "validated"
    assert store.load()["add"].definition == primitive_library()["add"].definition
