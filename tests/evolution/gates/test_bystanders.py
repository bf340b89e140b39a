"""The bystander gate: other tools keep what belongs to them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.gates import GateConfig, PairedSelection, regression_gate

NAMES = st.lists(st.sampled_from(["find", "buy", "sell"]), max_size=3).map(tuple)


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


def test_a_request_that_needs_no_tool_can_be_robbed():
    """An answer without calls that now makes one is a loss."""
    report = regression_gate(selections((), ("buy",), 30), tool="buy")
    assert (report.decision, report.statistics["robbed"]) == ("fail", 30)


def test_with_gold_a_better_choice_is_a_gain_and_a_wrong_one_stays_wrong():
    """What the control chose wrongly can not be lost."""
    gained = selections(("sell",), ("find",), 10, ("find",))
    wrong = selections(("sell",), ("buy",), 10, ("find",), "w")
    report = regression_gate(gained + wrong, tool="buy")
    assert (report.statistics["of"], report.statistics["gained"]) == (0, 10)
    assert report.statistics["changed"] == 20


def test_one_more_call_is_a_loss_only_without_gold():
    """With gold the expected tool is still called; without, the choice is another one."""
    more = selections(("find",), ("find", "sell"), 30)
    assert regression_gate(more, tool="buy").decision == "fail"
    known = selections(("find",), ("find", "sell"), 30, ("find",))
    assert regression_gate(known, tool="buy").statistics["lost"] == 0


def test_order_and_repetition_do_not_matter():
    """Two calls of one tool are that tool."""
    report = regression_gate(selections(("a", "b"), ("b", "a", "a"), 300), tool="buy")
    assert report.decision == "pass"


def test_a_request_counts_once():
    """Repeating one request does not make it many."""
    assert regression_gate(selections(("a",), ("a",), 1) * 500, tool="b").decision == "wait"


@given(
    drawn=st.lists(st.tuples(NAMES, NAMES, NAMES), max_size=30),
    share=st.floats(0, 0.9),
)
def test_any_selections_give_a_report(drawn, share):
    """Counts fit together whatever was chosen, and the decision is the interval's."""
    given_selections = [
        PairedSelection(task=str(n), control=a, candidate=b, expected=c)
        for n, (a, b, c) in enumerate(drawn)
    ]
    rules = GateConfig(lost_share=share)
    report = regression_gate(given_selections, tool="buy", rules=rules, once=True)
    found = report.statistics
    assert found["robbed"] <= found["lost"] <= found["of"] <= found["requests"] <= len(drawn)
    assert (report.decision == "pass") == (found["high"] <= share)
    assert (report.decision == "fail") == (found["low"] > share)
    always = regression_gate(given_selections, tool="buy", rules=rules)
    assert always.statistics == found
    early = regression_gate(given_selections[:10], tool="buy", rules=rules).decision
    assert early in {"wait", always.decision}


@pytest.mark.parametrize("limit", [0.0, 0.5])
def test_the_limit_is_the_callers(limit):
    """A share of losses passes or not as the rules have it; nothing at all is never shown."""
    kept = selections(("find",), ("find",), 100) + selections(("find",), (), 20, name="l")
    report = regression_gate(kept, tool="buy", rules=GateConfig(lost_share=limit))
    assert report.decision == ("fail" if limit == 0 else "pass")


def test_one_changed_request_of_one_is_no_verdict():
    """A single look would fail at once; the gate that may be asked at any time waits for more."""
    robbed = selections(("find",), ("buy",), 2)
    assert regression_gate(robbed[:1], tool="buy", once=True).decision == "fail"
    assert regression_gate(robbed[:1], tool="buy").decision == "wait"
    assert regression_gate(robbed, tool="buy").decision == "fail"


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
