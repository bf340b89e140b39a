"""Proposals go on from stage to stage as the gates, the policy and the others allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import ToolDefinition
from agentkit.errors import UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateReport
from agentkit.evolution.validation.report import FailedCheck, ValidationReport
from agentkit.library import LibraryChange

STAGES = LifecyclePolicy(shadow=True, canary=True)


class Gates:
    """Gates that say what a test wants, by stage."""

    def __init__(self):
        self.says = {}

    def __call__(self, record, ledger):
        decision = self.says.get(record.state)
        if decision is None:
            return ()
        return (GateReport(gate=record.state, decision=decision, reason=f"it is {decision}"),)


@pytest.fixture
def gates():
    """Gates that say nothing yet."""
    return Gates()


def offline(decision, reason="12 of 14"):
    """What an offline comparison says."""
    return GateReport(gate="offline", decision=decision, reason=reason, statistics={"wins": 12})


def states(manager):
    """The state of each proposal, in order."""
    return [record.state for record in manager.ledger.proposals.values()]


def test_through_all_stages(make_manager, gates, store, propose):
    """A proposal walks validated, shadow, canary, active, one stage a step, each with its numbers."""
    manager = make_manager(lifecycle=STAGES, gates=gates)
    record = manager.submit(propose(manager))
    assert [one.after for one in manager.advance()] == ["shadow"]
    assert [one.why for one in manager.advance()] == ["is in shadow, with no numbers yet"]
    gates.says["shadow"] = "wait"
    assert [one.why for one in manager.advance()] == ["it is wait"]
    gates.says["shadow"] = "pass"
    assert [one.after for one in manager.advance()] == ["canary"]
    assert store.load().version == 1
    gates.says["canary"] = "pass"
    assert [one.after for one in manager.advance()] == ["active"]
    kinds = [event.kind for event in manager.ledger.proposals[record.proposal_id].events]
    assert kinds == ["proposed", "validated", "shadow", "assessed", "canary", "assessed", "active"]


def test_a_gate_in_shadow_that_fails_rejects(make_manager, gates, propose):
    """What is no better in shadow is rejected, and this is not counted against its proposer."""
    manager = make_manager(lifecycle=STAGES, gates=gates)
    manager.submit(propose(manager))
    manager.advance()
    gates.says["shadow"] = "fail"
    (advance,) = manager.advance()
    assert (advance.after, advance.why) == ("rejected", "it is fail")
    assert manager.ledger.proposer("feedback:proposer").rejected_in_a_row == 0
    assert manager.ledger.experiment("add") is None


def test_an_alarm_in_canary_takes_the_candidate_back(make_manager, gates, propose):
    """A canary whose alarm rings is rolled back; the library never held it."""
    manager = make_manager(lifecycle=LifecyclePolicy(canary=True), gates=gates)
    manager.submit(propose(manager))
    manager.advance()
    gates.says["canary"] = "fail"
    (advance,) = manager.advance()
    assert advance.after == "rolled_back"
    assert manager.library.version == 1


def test_an_alarm_is_heard_while_the_tool_is_pinned(make_manager, gates, propose):
    """A pin holds back what would go on, never what must stop."""
    manager = make_manager(lifecycle=LifecyclePolicy(canary=True), gates=gates)
    manager.submit(propose(manager))
    manager.advance()
    manager.pin(1, "add")
    gates.says["canary"] = "pass"
    assert "pinned" in manager.advance()[0].why
    gates.says["canary"] = "fail"
    assert manager.advance()[0].after == "rolled_back"


def test_an_offline_comparison_promotes(make_manager, store, propose):
    """By default a pass on held-out tasks is what it takes; its numbers stay with the event."""
    manager = make_manager(lifecycle=LifecyclePolicy())
    record = manager.submit(propose(manager))
    manager.assess(record.proposal_id, [offline("pass")])
    assert manager.advance()[0].after == "active"
    (assessed,) = manager.ledger.proposals[record.proposal_id].assessments
    assert assessed.facts["statistics"] == {"wins": 12}


def test_all_gates_must_pass(make_manager, propose):
    """One gate that waits holds a proposal; what a gate says last counts."""
    manager = make_manager(lifecycle=LifecyclePolicy())
    record = manager.submit(propose(manager))
    waits = GateReport(gate="bystanders", decision="wait", reason="too few")
    manager.assess(record.proposal_id, [offline("pass"), waits])
    assert manager.advance()[0].why == "too few"
    manager.assess(record.proposal_id, [replace(waits, decision="pass")])
    assert manager.advance()[0].after == "active"


def test_what_waits_for_somebody_is_not_compared(make_manager, propose):
    """A report on a proposal that somebody must still agree to is refused: it would be lost."""
    manager = make_manager(validate=lambda _change: ValidationReport(needs=("person",)))
    record = manager.submit(propose(manager))
    with pytest.raises(UsageError, match="once it is validated"):
        manager.assess(record.proposal_id, [offline("pass")])


def test_one_experiment_a_tool(make_manager, gates, propose):
    """A second proposal for a tool waits while one is tried; one for another tool does not."""
    manager = make_manager(lifecycle=STAGES, gates=gates)
    first = manager.submit(propose(manager, summary="Add two numbers, one way."))
    manager.submit(propose(manager, summary="Add two numbers, another way."))
    manager.submit(propose(manager, "mul", "Multiply two numbers, and no more."))
    advances = manager.advance()
    assert [one.after for one in advances] == ["shadow", "validated", "shadow"]
    assert first.proposal_id in advances[1].why
    gates.says["shadow"] = "fail"
    manager.advance()
    assert states(manager) == ["rejected", "shadow", "rejected"]


def test_a_later_proposal_supersedes(manager, store, propose):
    """What becomes active on a tool takes the place of what was; both changes are in the words."""
    first = manager.submit(propose(manager))
    manager.advance()
    base = manager.library["add"].definition
    second = manager.submit(propose(manager, summary=f"{base.description.summary} Not more."))
    manager.advance()
    assert states(manager) == ["superseded", "active"]
    assert manager.ledger.promoted["add"] == (first.proposal_id, second.proposal_id)
    assert manager.ledger.active("add").proposal_id == second.proposal_id


def test_who_becomes_active_after_somebody_else_wins_is_rebased(manager, store, propose):
    """Two proposals from one revision both get in, when they change different fields."""
    words = manager.library["add"].definition.description
    tagged = replace(words, tags=("sum",))
    one, other = propose(manager), propose(manager, summary="", description=tagged)
    manager.submit(one)
    manager.submit(other)
    assert [advance.after for advance in manager.advance()] == ["active", "active"]
    told = store.load()["add"].definition.description
    assert (told.summary, told.tags) == ("Add two numbers, exactly.", ("sum",))
    activation = manager.ledger.proposals[other.proposal_id].activation
    assert activation.digest_after == store.load()["add"].definition.digest


def test_who_changed_the_same_field_is_rejected_as_a_conflict(manager, store, propose):
    """The second of two rewordings of one summary is rejected; the first one stays."""
    one = propose(manager, summary="Add two numbers, one way.")
    other = propose(manager, summary="Add two numbers, another way.")
    manager.submit(one)
    manager.submit(other)
    assert [advance.after for advance in manager.advance()] == ["active", "rejected"]
    (failed,) = manager.ledger.proposals[other.proposal_id].failed
    assert (failed.code, failed.field) == ("conflict", "description.summary")
    assert store.load()["add"].definition == one.candidate
    assert manager.ledger.proposer("feedback:proposer").rejected_in_a_row == 0


def test_an_experiment_whose_tool_changes_is_moved_along(make_manager, gates, store, propose):
    """A person's edit of another field moves the candidate in shadow onto the new revision."""
    manager = make_manager(lifecycle=STAGES, gates=gates)
    record = manager.submit(propose(manager))
    manager.advance()
    base = manager.library["add"].definition
    edited = replace(base, description=replace(base.description, tags=("sum",)))
    store.commit(LibraryChange(proposal_id="edit", upserts=(edited,)), expected_version=1)
    manager.refresh()
    gates.says["shadow"] = "pass"
    (advance,) = manager.advance()
    moved = manager.ledger.proposals[record.proposal_id]
    assert (advance.after, moved.events[-1].kind) == ("shadow", "rebased")
    assert moved.base == edited.digest
    assert moved.candidate.description.tags == ("sum",)
    assert moved.candidate.description.summary == "Add two numbers, exactly."
    assert manager.advance()[0].after == "canary"


def test_the_checks_look_again_at_promotion(make_manager, store, propose):
    """What the checks let pass on one library may fail on a later one, and is rejected then."""

    def lonely(change):
        failed = FailedCheck(code="crowd", layer="semantic", message="too many", advice="")
        return ValidationReport(failed=(failed,) if "ping" in change.library else ())

    manager = make_manager(validate=lonely)
    manager.submit(propose(manager))
    ping = ToolDefinition(name="ping")
    store.commit(LibraryChange(proposal_id="ping", upserts=(ping,)), expected_version=1)
    manager.refresh()
    (advance,) = manager.advance()
    assert (advance.after, advance.why) == ("rejected", "[crowd]: too many")


def test_needs_that_come_up_later_are_waited_for(make_manager, store, propose, ada):
    """A tool that became one which needs a person holds the proposal until one agrees."""

    def check(change):
        needs = ("person",) if "money" in change.base.description.tags else ()
        return ValidationReport(needs=needs)

    manager = make_manager(validate=check)
    record = manager.submit(propose(manager))
    base = manager.library["add"].definition
    edited = replace(base, description=replace(base.description, tags=("money",)))
    store.commit(LibraryChange(proposal_id="edit", upserts=(edited,)), expected_version=1)
    manager.refresh()
    assert manager.advance()[0].why == "by now a person must agree"
    manager.approve(record.proposal_id, person=ada)
    assert manager.advance()[0].after == "active"


def test_tests_are_numbered_for_elond(make_manager, propose):
    """The place of a test is fixed when it begins; only what went on counts as a discovery."""
    manager = make_manager(lifecycle=LifecyclePolicy())
    names = ["add", "mul", "sub"]
    ids = [
        manager.submit(propose(manager, name, f"{name.title()}, said anew, of two numbers."))
        for name in names
    ]
    ids = [record.proposal_id for record in ids]
    assert manager.ledger.place_of(ids[0]).number == 1
    manager.assess(ids[1], [offline("pass")])
    assert (manager.ledger.tested, manager.ledger.passed) == ((ids[1],), frozenset())
    manager.advance(ids[1])
    assert manager.ledger.passed == {ids[1]}
    place = manager.ledger.place_of(ids[0])
    assert (place.number, place.discoveries) == (2, 1)
    manager.assess(ids[0], [offline("fail")])
    manager.advance(ids[0])
    assert manager.ledger.place_of(ids[0]) == place
    assert manager.ledger.place_of(ids[2]).number == 3
    manager.roll_back(ids[1])
    assert manager.ledger.passed == {ids[1]}
