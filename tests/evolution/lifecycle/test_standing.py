"""What a proposal waits for is told, and with it the command that comes next."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.evolution.checker import Judgement
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.library.events import Author

JUDGE = Author(kind="model", name="judge")


def told(manager, record):
    """Why, and the commands without the id."""
    stands = manager.standing(record.proposal_id)
    start = "agentkit "
    assert all(command.startswith(start) for command in stands.commands)
    return stands.why, [
        one.removeprefix(start).replace(record.proposal_id, "ID") for one in stands.commands
    ]


@pytest.fixture
def waiting(make_manager, propose):
    """A manager whose proposals wait for evidence, and makes one of the tool ``add``."""
    manager = make_manager(lifecycle=LifecyclePolicy())
    return manager, manager.submit(propose(manager))


def test_who_must_agree_is_named_one_after_the_other(make_manager, propose, ada):
    """A judge and a person, then who of them is left."""
    manager = make_manager(lifecycle=LifecyclePolicy())
    manager.register([ToolDefinition(name="pay")])
    record = manager.submit(propose(manager, "pay", "Pay."))
    assert told(manager, record) == (
        "waits for a judge of another model and a person to agree",
        ["review approve ID --judge MODEL", "review approve ID"],
    )
    manager.judge(record.proposal_id, Judgement(agrees=True, reason="so", author=JUDGE))
    assert told(manager, record) == (
        "waits for a person to agree",
        ["review approve ID"],
    )
    manager.approve(record.proposal_id, person=ada)
    assert told(manager, record)[1] == ["review approve ID"]


def test_evidence_is_asked_for_as_the_policy_says(waiting, make_manager, store):
    """By default tasks or a person; where only gates count, tasks alone."""
    manager, record = waiting
    assert told(manager, record) == (
        "waits for a comparison on held-out tasks or a person's approval",
        ["review approve ID", "evolve --tasks FILE"],
    )
    strict = make_manager(lifecycle=LifecyclePolicy(evidence="gate"))
    assert told(strict, record) == (
        "waits for a comparison on held-out tasks",
        ["evolve --tasks FILE"],
    )


def test_what_stands_in_the_way(waiting, make_manager, propose, ada):
    """A pin, or another proposal that is being tried, is named with the way around it."""
    manager, record = waiting
    manager.approve(record.proposal_id, person=ada)
    manager.pin(1, "add")
    assert told(manager, record) == (
        "'add' is pinned to library version 1",
        ["rollback --unpin --tool add"],
    )
    manager.pin(1)
    assert told(manager, record)[1] == ["rollback --unpin"]
    manager.unpin()
    manager.unpin("add")
    trying = make_manager(lifecycle=LifecyclePolicy(canary=True))
    other = trying.submit(propose(trying, summary="Add."))
    trying.advance(other.proposal_id)
    assert told(trying, other) == (
        "serves a share of the sessions until its numbers decide",
        ["evolve"],
    )
    manager.refresh()
    assert told(manager, record)[1] == [f"review show {other.proposal_id}"]


def test_what_ended_says_why(waiting, ada):
    """A rejection needs no command."""
    manager, record = waiting
    manager.reject(record.proposal_id, person=ada, reason="we do not say so")
    assert told(manager, record) == ("we do not say so", [])
