"""A store that fails in the middle leaves all of a step or nothing, and the manager goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.errors import StaleVersionError, StoreError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.library.chain_check import verify_chain
from agentkit.testing import primitive_library
from agentkit.testing.unreliable_store import UnreliableStore

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

    def make(store, **options):
        manager = make_manager(over=store, lifecycle=LifecyclePolicy(**options))
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


def test_a_late_step_is_decided_again(walk, store):
    """One that was too late is decided anew, as long as the policy allows."""
    unreliable = UnreliableStore(store, [None, "late", "late", "late"])
    _, steps = walk(unreliable, attempts=4)
    assert steps["submit"]().state == "validated"
    assert unreliable.met["late"] == 3


def test_one_that_is_always_late_gives_up(walk, store):
    """After so many attempts the error says so, and nothing was written."""
    unreliable = UnreliableStore(store, [None, *["late"] * 5])
    _, steps = walk(unreliable, attempts=5)
    with pytest.raises(StaleVersionError):
        steps["submit"]()
    assert kinds(store) == []
    assert steps["submit"]().state == "validated"


def test_an_id_that_another_change_has(manager, store, propose):
    """A proposal whose id a change of another kind took is not taken for promoted."""
    manager.insert(
        '''
@composite(examples=[{"arguments": {"a": 1, "b": 2}, "result": 4}])
def one_more(a: float, b: float) -> float:
    """One more than a sum."""
    return add(add(a, b), 1)
''',
        proposal_id="taken",
    )
    manager.submit(replace(propose(manager), proposal_id="taken"))
    with pytest.raises(StoreError, match="'taken' that was another one"):
        manager.advance()
    assert manager.ledger.proposals["taken"].state == "validated"
    assert store.load()["add"].definition == primitive_library()["add"].definition
