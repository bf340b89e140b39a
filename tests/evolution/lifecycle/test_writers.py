"""Several writers, and stores that fail."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import ToolDefinition, open_store
from agentkit.errors import StaleVersionError, StoreError
from agentkit.evolution import ToolManager
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.validation.report import ValidationReport
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.events import Author
from agentkit.library.store import LibraryChange
from agentkit.testing import primitive_library
from agentkit.testing.conformance.fixtures import together

# --- Managers that race each other make each proposal active exactly once, and lose none ---------


TOOLS, PARAMETERS = 20, 25
AUTHOR = Author(kind="program", name="racer")


def definitions():
    """The tools before anybody proposes anything."""
    texts = {f"p{at}": {"type": "string"} for at in range(PARAMETERS)}
    schema = {"type": "object", "properties": texts}
    names = [f"tool_{at}" for at in range(TOOLS)]
    return [ToolDefinition.from_schema(name, f"Does {name}.", schema) for name in names]


def proposals(count):
    """Each changes the text of another parameter, of the revision that was there at first."""
    bases = definitions()
    for number in range(count):
        base = bases[number % TOOLS]
        texts = {f"p{number // TOOLS % PARAMETERS}": f"Text number {number}."}
        candidate = replace(base, description=replace(base.description, parameters=texts))
        yield Proposal.of(base, candidate, stream="evidence", author=AUTHOR)


class Counting:
    """A store that counts how often a commit came too late."""

    def __init__(self, store):
        self._store, self.stale = store, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, change, *, expected_version):
        """As the store does."""
        try:
            return self._store.commit(change, expected_version=expected_version)
        except StaleVersionError:
            self.stale += 1
            raise


def manager_of(store):
    """A manager that promotes whatever is submitted."""
    policy = LifecyclePolicy(evidence="none")
    return ToolManager(store, lifecycle=policy, validate=lambda _: ValidationReport())


def test_managers_that_race(tmp_path):
    """Four take the same proposals, in orders of their own, through one file; all get in once."""
    url, given = f"sqlite:///{tmp_path / 'library.db'}", list(proposals(12))

    def take_through(seed):
        with closing(open_store(url)) as store:
            counting = Counting(store)
            manager = manager_of(counting)
            for proposal in random.Random(seed).sample(given, len(given)):
                manager.submit(proposal)
                manager.advance(proposal.proposal_id)
            return counting.stale

    with closing(open_store(url)) as store:
        manager_of(store).register(definitions())
        assert sum(together([partial(take_through, seed) for seed in range(4)])) > 0
        events, library = store.events(), store.load()
        promoted = [event.proposal_id for event in events if event.kind == "active"]
        assert len(promoted) == len(set(promoted)) == len(given)
        states = [record.state for record in Ledger().after(events).proposals.values()]
        assert states.count("active") + states.count("superseded") == len(given)
        assert library.version == 1 + len(given)
        for proposal in given:
            wanted = proposal.candidate.description.parameters
            held = library[proposal.tool_name].definition.description.parameters
            assert wanted.items() <= held.items()
        assert not verify_chain(events)
        assert not verify_library(store, events)


# --- A store that fails in the middle leaves all of a step or nothing, and the manager goes o ----


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
