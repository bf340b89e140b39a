"""The bystander gate: other tools keep what belongs to them."""

from __future__ import annotations

import random
from dataclasses import replace

from agentkit.evolution.gates import GateConfig, PairedSelection, regression_gate


def selections(control, candidate, count, expected=(), name="s"):
    """The same selection for so many requests."""
    return [
        PairedSelection(
            task=f"{name}{place}", control=control, candidate=candidate, expected=expected
        )
        for place in range(count)
    ]


def test_unchanged_selections_pass_once_there_are_enough():
    """None lost of 300 shows at any time that at most 2% are, and none of 150 in a single look."""
    kept = selections(("find",), ("find",), 300)
    assert regression_gate(kept, tool="buy").decision == "pass"
    assert regression_gate(kept[:150], tool="buy", once=True).decision == "pass"
    few = regression_gate(kept[:150], tool="buy")
    assert few.decision == "wait"
    assert "bring more of them" in few.reason


def test_requests_that_the_changed_tool_takes_are_counted():
    """A robbed request is a lost one to which the changed tool was called."""
    mixed = selections(("find",), ("find",), 80) + selections(("find",), ("buy",), 20, name="r")
    report = regression_gate(mixed, tool="buy")
    assert report.decision == "fail"
    assert (report.statistics["robbed"], report.statistics["lost"]) == (20, 20)


def test_requests_of_the_changed_tool_itself_are_left_out():
    """Whether it gains or loses its own is not asked here."""
    own = selections(("buy",), ("find",), 50) + selections(("find",), ("sell",), 50, ("buy",), "e")
    assert regression_gate(own, tool="buy").statistics["of"] == 0


def test_with_gold_a_better_choice_is_a_gain_and_a_wrong_one_stays_wrong():
    """What the control chose wrongly can not be lost."""
    gained = selections(("sell",), ("find",), 10, ("find",))
    wrong = selections(("sell",), ("buy",), 10, ("find",), "w")
    report = regression_gate(gained + wrong, tool="buy")
    assert (report.statistics["of"], report.statistics["gained"]) == (0, 10)
    assert report.statistics["changed"] == 20


def test_a_request_counts_once():
    """Repeating one request does not make it many."""
    assert regression_gate(selections(("a",), ("a",), 1) * 500, tool="b").decision == "wait"


def test_asked_all_the_time_it_seldom_errs():
    """At the limit either decision comes in one case of twenty: 100 rounds of 200 requests.

    At a true rate of .05 more than 11 of 100 come once in 200 times.
    """
    rules, decisions = GateConfig(lost_share=0.05), []
    chance = random.Random(11)
    kept, robbed = selections(("a",), ("a",), 200), selections(("a",), ("b",), 200)
    for _ in range(100):
        drawn = [robbed[n] if chance.random() < 0.05 else kept[n] for n in range(200)]
        decisions.append(regression_gate(drawn, tool="x", rules=rules).decision)
    assert decisions.count("fail") <= 11
    assert decisions.count("pass") <= 11


def test_another_choice_that_was_found_right_is_no_loss():
    """Where the candidate's answer was judged right, its tools are as good as those of the control."""
    other = selections(("find",), ("look_up",), 30)
    accepted = [replace(one, accepted=True) for one in other]
    assert regression_gate(other, tool="buy").decision == "fail"
    assert regression_gate(accepted, tool="buy").statistics["lost"] == 0
