"""A proposal walks through the states, and back."""

from __future__ import annotations

from agentkit.library.chain_check import verify_chain


def kinds(manager):
    """The kinds of all events, in order."""
    return [event.kind for event in manager._store.events()]


def test_a_proposal_is_taken_in_promoted_and_taken_back(manager, store, propose):
    """submit, advance and roll_back move a proposal from proposed to rolled_back."""
    before = manager.library["add"].definition
    record = manager.submit(propose(manager))
    assert record.state == "validated"
    (advance,) = manager.advance()
    assert (advance.before, advance.after) == ("validated", "active")
    assert manager.library["add"].definition.description.summary == "Add two numbers, exactly."
    assert store.load().version == 2
    assert manager.roll_back("add") == (record.proposal_id,)
    assert manager.library["add"].definition == before
    assert store.load()["add"].definition == before
    assert manager.ledger.proposals[record.proposal_id].state == "rolled_back"
    assert kinds(manager) == ["written", "proposed", "validated", "active", "rolled_back"]
    assert not verify_chain(store.events())
