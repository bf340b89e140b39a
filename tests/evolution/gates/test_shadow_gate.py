"""The shadow gate: what it decides, and that it never changes its mind."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evolution.gate_statistics import log_e_value
from agentkit.evolution.gates import GateConfig, PairedScore, shadow_gate

TEXTS = st.text(alphabet="wl=", max_size=80)


def pairs(text):
    """As the fixture ``pairs_of``, for tests that hypothesis drives."""
    return [
        PairedScore(task=f"t{place}", control=float(one != "w"), candidate=float(one != "l"))
        for place, one in enumerate(text)
    ]


def test_a_better_candidate_passes(pairs_of):
    """Eight wins of eight are evidence enough at level .05, and the reason says so in numbers."""
    report = shadow_gate(pairs_of("=w" * 8))
    assert report.decision == "pass"
    assert "8 of 8 pairs that differ were won, of 16 in all" in report.reason
    assert report.statistics["log_e"] == pytest.approx(log_e_value(8, 0))
    assert report.statistics["p_value"] == pytest.approx(math.exp(-log_e_value(8, 0)))


def test_a_worse_candidate_fails_without_waiting_for_the_end(pairs_of):
    """The mirrored e-process rings as soon as losses are evidence."""
    report = shadow_gate(pairs_of("l" * 7))
    assert report.decision == "fail"
    assert "the candidate is worse" in report.reason
    assert report.statistics["alarm_log_e"] == pytest.approx(log_e_value(7, 0))


def test_pairs_that_do_not_differ_decide_nothing(pairs_of):
    """With all pairs equal the gate waits, and gives up after the most pairs that are allowed."""
    rules = GateConfig(max_pairs=50)
    assert shadow_gate(pairs_of("=" * 49), rules=rules).decision == "wait"
    report = shadow_gate(pairs_of("=" * 50), rules=rules)
    assert report.decision == "fail"
    assert "not evidence that there is none" in report.reason


@given(text=TEXTS, more=TEXTS)
def test_what_was_decided_stays_decided(text, more):
    """Later pairs do not turn a pass or a fail around, so it does not matter when one looks."""
    rules = GateConfig(max_pairs=60)
    early = shadow_gate(pairs(text), rules=rules).decision
    late = shadow_gate(pairs(text + more), rules=rules).decision
    assert early in {"wait", late}


def test_the_level_of_e_lond_takes_the_place_of_alpha(pairs_of):
    """What passes at .05 waits at a thousandth."""
    assert shadow_gate(pairs_of("w" * 9)).decision == "pass"
    strict = shadow_gate(pairs_of("w" * 9), level=0.001)
    assert (strict.decision, strict.statistics["level"]) == ("wait", 0.001)
    with pytest.raises(UsageError, match="level"):
        shadow_gate([], level=0)


def test_only_the_first_pair_of_a_conversation_counts():
    """Twenty pairs of one conversation are one observation; so are twenty attempts at one task."""
    grouped = [PairedScore(task=str(n), control=0, candidate=1, group="g") for n in range(20)]
    repeated = [PairedScore(task="t", control=0, candidate=1) for _ in range(20)]
    for given_pairs in (grouped, repeated):
        report = shadow_gate(given_pairs)
        assert report.decision == "wait"
        assert (report.statistics["wins"], report.statistics["same_group"]) == (1, 19)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_a_score_that_is_no_number_holds_a_pass_up(pairs_of, bad):
    """The report names the task and what to do; the alarm is not silenced by it."""
    broken = PairedScore(task="t-bad", control=bad, candidate=1)
    report = shadow_gate([broken, *pairs_of("w" * 9)])
    assert report.decision == "wait"
    assert "1 of 10 scores can not be counted (task 't-bad'" in report.reason
    assert shadow_gate([broken, *pairs_of("l" * 9)]).decision == "fail"


def test_fewer_pairs_than_asked_for_never_pass(pairs_of):
    """However clear they are."""
    rules = GateConfig(min_pairs=20)
    assert shadow_gate(pairs_of("w" * 19), rules=rules).decision == "wait"
    assert shadow_gate(pairs_of("w" * 20), rules=rules).decision == "pass"
