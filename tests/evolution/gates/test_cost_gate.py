"""The cost gate: tokens and seconds."""

from __future__ import annotations

import math
import random

import pytest

from agentkit.evolution.gates import GateConfig, PairedScore, cost_gate


def costs(growth, *, count=60, seed=0):
    """Costs that spread widely between tasks and little between the two sides."""
    chance = random.Random(seed)
    pairs = []
    for place in range(count):
        control = chance.lognormvariate(6, 1)
        candidate = control * growth * chance.lognormvariate(-0.005, 0.1)
        pairs.append(PairedScore(task=str(place), control=control, candidate=candidate))
    return pairs


@pytest.mark.parametrize(
    ("growth", "decision"), [(1.0, "pass"), (1.05, "pass"), (1.1, "wait"), (1.3, "fail")]
)
def test_tokens_may_grow_by_a_tenth(growth, decision):
    """Well below the tolerance passes, well above fails, at it more tasks are asked for."""
    report = cost_gate(costs(growth, count=240), measure="tokens")
    assert report.decision == decision
    assert report.statistics["growth"] == pytest.approx(growth - 1, abs=0.05)
    assert cost_gate(costs(growth), measure="tokens", once=True).decision == decision


@pytest.mark.parametrize("once", [True, False])
def test_at_the_tolerance_it_seldom_passes(once):
    """Either decision is wrong in about one case of twenty: 60 tasks, 200 rounds."""
    rules = GateConfig(resamples=400)
    at_edge = [
        cost_gate(costs(1.1, seed=seed), measure="tokens", rules=rules) for seed in range(200)
    ]
    assert sum(report.decision == "pass" for report in at_edge) <= 10
    assert sum(report.decision == "fail" for report in at_edge) <= 10


@pytest.mark.parametrize("count", [0, 1, 29])
def test_few_tasks_wait(count):
    """With none, one or 29 nothing is said."""
    report = cost_gate(costs(2.0, count=count), measure="tokens")
    assert report.decision == "wait"
    assert report.statistics["tasks"] == count


def test_costs_of_nothing_do_not_divide_by_zero():
    """Answers from a cache cost nothing before, so any cost is growth."""
    free = [PairedScore(task=str(n), control=0, candidate=0) for n in range(40)]
    assert cost_gate(free, measure="tokens").decision == "pass"
    dear = [PairedScore(task=str(n), control=0, candidate=9) for n in range(40)]
    report = cost_gate(dear, measure="tokens")
    assert (report.decision, report.statistics["growth"]) == ("fail", 0)


def test_a_cost_that_is_no_number_holds_a_pass_up():
    """The task is named."""
    pairs = [*costs(1.0), PairedScore(task="bad", control=math.nan, candidate=3)]
    report = cost_gate(pairs, measure="seconds")
    assert report.decision == "wait"
    assert "task 'bad'" in report.reason


def test_what_was_decided_stays_decided():
    """More tasks do not change a decision: it looks at 30, 60, 120 tasks and keeps the first word."""
    pairs = costs(1.02, count=30) + [
        PairedScore(task=f"dear{n}", control=100, candidate=900) for n in range(200)
    ]
    assert cost_gate(pairs[:30], measure="tokens").decision == "pass"
    for count in (31, 60, 119, 230):
        report = cost_gate(pairs[:count], measure="tokens")
        assert (report.decision, report.statistics["used"]) == ("pass", 30)
    assert cost_gate(pairs, measure="tokens", once=True).decision == "fail"
