"""Shadow and canary are decided from the labelled episodes of a store."""

from __future__ import annotations

import pytest

from agentkit import Episode
from agentkit.episodes import Verdict
from agentkit.evolution.compare import EpisodeGates
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateConfig


def episode(episode_id, passed, **labels):
    """A judged episode with labels; each in a session of its own."""
    return Episode(
        episode_id=episode_id,
        request="?",
        session_id=episode_id,
        started_at=f"2026-11-21T00:00:00.{len(episode_id):06}+00:00",
        verdict=Verdict(passed=passed),
        metadata=labels,
    )


@pytest.fixture
def gated(make_manager, store):
    """Makes a manager whose gates read the store's own episodes."""

    def make(**policy):
        gates = EpisodeGates(episodes=store, rules=GateConfig(min_pairs=4, min_sessions=20))
        return make_manager(lifecycle=LifecyclePolicy(**policy), gates=gates)

    return make


def shadow_runs(store, proposal_id, count, *, better):
    """Answers, each with its shadow run; one of the two is right."""
    for number in range(count):
        store.append(episode(f"e{number}", not better))
        labels = {"experiment": proposal_id, "arm": "candidate", "shadow_of": f"e{number}"}
        store.append(episode(f"s{number}", better, **labels))


def test_shadow_runs_that_are_better_let_it_go_on(gated, store, propose):
    """Enough shadow runs that are right where the answers were wrong bring it on."""
    manager = gated(shadow=True)
    record = manager.submit(propose(manager))
    manager.advance()
    assert manager.advance()[0].after == "shadow"
    shadow_runs(store, record.proposal_id, 5, better=True)
    assert manager.advance()[0].after == "shadow"
    shadow_runs(store, record.proposal_id, 20, better=True)
    assert manager.advance()[0].after == "active"
    kept = manager.ledger.proposals[record.proposal_id].assessments
    statistics = {event.facts["gate"]: event.facts["statistics"] for event in kept}
    assert statistics["shadow"]["wins"] == 20
    assert statistics["shadow"]["level"] == pytest.approx(0.05 / 3.93194921181)


def test_shadow_runs_that_are_worse_end_it(gated, store, propose):
    """Shadow runs that are wrong where the answers were right reject it."""
    manager = gated(shadow=True)
    record = manager.submit(propose(manager))
    manager.advance()
    shadow_runs(store, record.proposal_id, 20, better=False)
    assert manager.advance()[0].after == "rejected"


def test_sessions_of_a_canary(gated, store, propose):
    """A canary whose sessions go wrong is rolled back by the alarm."""
    manager = gated(canary=True)
    record = manager.submit(propose(manager))
    manager.advance()
    for number in range(60):
        arm = "candidate" if number % 2 else "control"
        labels = {"experiment": record.proposal_id, "arm": arm}
        store.append(episode(f"c{number}", arm == "control", **labels))
    (advance,) = manager.advance()
    assert (advance.before, advance.after) == ("canary", "rolled_back")
    assert store.load().version == 1
