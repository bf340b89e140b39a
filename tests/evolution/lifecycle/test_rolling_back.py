"""What was promoted is taken back by giving the tool the definition that it had before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.errors import StoreError, UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.library import LibraryChange
from agentkit.library.chain_check import verify_library
from agentkit.tools.definition import Description


@pytest.fixture
def promote(manager, propose):
    """Promotes a summary of ``add``, and gives the proposal's id."""

    def make(summary):
        record = manager.submit(propose(manager, summary=summary))
        manager.advance(record.proposal_id)
        return record.proposal_id

    return make


def states(manager):
    """The state of each proposal, in order."""
    return [record.state for record in manager.ledger.proposals.values()]


def summary_of(store):
    """What the store says of ``add``."""
    return store.load()["add"].definition.description.summary


def test_the_last_one_of_a_tool(manager, store, promote):
    """Taking back a tool twice goes back two promotions."""
    original = summary_of(store)
    first, second = promote("Add two numbers, once."), promote("Add two numbers, twice.")
    assert manager.roll_back("add") == (second,)
    assert summary_of(store) == "Add two numbers, once."
    assert manager.roll_back("add") == (first,)
    assert summary_of(store) == original
    assert states(manager) == ["rolled_back", "rolled_back"]
    with pytest.raises(UsageError, match="agentkit rollback add --to VERSION"):
        manager.roll_back("add")


def test_what_was_built_on_it_goes_too(manager, store, promote, ada):
    """Taking back an earlier proposal takes back all that became active after it."""
    original = summary_of(store)
    ids = [promote(f"Add two numbers, {number}.") for number in "abc"]
    assert manager.roll_back(ids[1], author=ada, reason="wrong") == (ids[2], ids[1])
    assert summary_of(store) == "Add two numbers, a."
    assert states(manager) == ["superseded", "rolled_back", "rolled_back"]
    assert [revision.author for revision in store.history("add")][-1] == "ada"
    assert manager.roll_back(ids[0]) == (ids[0],)
    assert summary_of(store) == original
    assert not verify_library(store, store.events())


def test_one_in_canary_is_taken_out(make_manager, store, propose):
    """A canary is taken back without a new library version; by its tool's name as well."""
    manager = make_manager(lifecycle=LifecyclePolicy(canary=True))
    record = manager.submit(propose(manager))
    manager.advance()
    assert manager.roll_back("add") == (record.proposal_id,)
    assert states(manager) == ["rolled_back"]
    assert store.load().version == 1


@pytest.mark.parametrize("state", ["validated", "rejected"])
def test_what_never_served_can_not_be_taken_back(manager, propose, state):
    """A proposal that did not get that far is refused, with where it stands."""
    record = manager.submit(propose(manager, summary="bad" if state == "rejected" else "Sum two."))
    with pytest.raises(UsageError, match=state):
        manager.roll_back(record.proposal_id)


def test_a_persons_own_words_are_not_taken_back_by_accident(manager, store, promote):
    """What a person wrote over a promotion supersedes it: there is nothing of it to take back."""
    proposal_id = promote("Add two numbers, once.")
    base = manager.library["add"].definition
    mine = replace(base, description=Description(summary="Mine."))
    manager.edit(lambda _held: LibraryChange(proposal_id="mine", upserts=(mine,)))
    assert states(manager) == ["superseded"]
    with pytest.raises(UsageError):
        manager.roll_back("add")
    with pytest.raises(UsageError, match="superseded"):
        manager.roll_back(proposal_id)
    assert summary_of(store) == "Mine."


def test_restoring_a_version_takes_back_what_came_since(manager, store, promote):
    """Going back to a library version rolls back the promotions after it, and no others."""
    original = summary_of(store)
    promote("Add two numbers, once.")
    promote("Add two numbers, twice.")
    manager.restore("add", to_version=2)
    assert states(manager) == ["superseded", "rolled_back"]
    assert summary_of(store) == "Add two numbers, once."
    manager.restore("add", to_version=1)
    assert states(manager) == ["rolled_back", "rolled_back"]
    assert summary_of(store) == original
    with pytest.raises(StoreError, match="already is as it was"):
        manager.restore("add", to_version=1)
