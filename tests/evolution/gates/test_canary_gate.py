"""The canary gate: no worse by more than a margin, and an alarm."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.gates import ArmScore, GateConfig, blocks, canary_gate

SESSIONS = st.lists(
    st.tuples(st.sampled_from(["control", "candidate"]), st.sampled_from([0.0, 0.5, 1.0])),
    max_size=80,
)


def scores(sessions):
    """Sessions of arms and scores, each with a name of its own."""
    return [
        ArmScore(session=str(place), arm=arm, score=score)
        for place, (arm, score) in enumerate(sessions)
    ]


def naive_alarm(sessions):
    """Two shares compared by the normal test for one look, asked every ten sessions."""
    right = {"control": 0.0, "candidate": 0.0}
    count = {"control": 0, "candidate": 0}
    for place, one in enumerate(sessions, start=1):
        right[one.arm] += one.score
        count[one.arm] += 1
        if place % 10 or not all(count.values()):
            continue
        share = sum(right.values()) / place
        error = math.sqrt(share * (1 - share) * sum(1 / n for n in count.values()))
        control, candidate = (right[arm] / count[arm] for arm in ("control", "candidate"))
        if error and (control - candidate) / error > 1.645:
            return True
    return False


def test_false_alarms_are_rare_where_a_naive_test_cries_wolf(sessions_of):
    """Equal arms, asked all the time: at a true rate of .05 more than 19 of 200 come once in 200."""
    rounds = [sessions_of(300, control=0.7, candidate=0.7, seed=seed) for seed in range(200)]
    alarms = sum("alarm: the" in canary_gate(one).reason for one in rounds)
    assert alarms <= 19 < sum(naive_alarm(one) for one in rounds)


def test_a_candidate_that_is_worse_by_the_margin_seldom_passes(sessions_of):
    """At the edge of what is tolerated, without the alarm in the way."""
    rules = GateConfig(margin=0.2, alarm_margin=0.9)
    rounds = [sessions_of(300, control=0.8, candidate=0.6, seed=seed) for seed in range(200)]
    assert sum(canary_gate(one, rules=rules).decision == "pass" for one in rounds) <= 19


def test_harm_rings_and_equality_passes(sessions_of):
    """A fall from .9 to .5 rings within a hundred sessions; equal arms pass within two thousand."""
    assert canary_gate(sessions_of(100, control=0.9, candidate=0.5, seed=1)).decision == "fail"
    rules = GateConfig(margin=0.1)
    equal = sessions_of(2_000, control=0.9, candidate=0.9, seed=1)
    report = canary_gate(equal, rules=rules)
    assert report.decision == "pass"
    assert "worse by less than 0.1, if at all" in report.reason


@given(sessions=SESSIONS)
def test_blocks_hold_both_arms_and_every_session_once(sessions):
    """Each block holds some of either arm; only an unfinished one is left over."""
    given_scores = scores(sessions)
    found = list(blocks(given_scores))
    assert all(block.control and block.candidate for block in found)
    held = sum(len(block.control) + len(block.candidate) for block in found)
    left = given_scores[held:]
    assert len({one.arm for one in left}) <= 1
    assert all(min(len(block.control), len(block.candidate)) == 1 for block in found)


@given(sessions=SESSIONS)
def test_sessions_of_one_arm_decide_nothing(sessions):
    """Without the other arm there is nothing to compare with."""
    alone = [("control", score) for _, score in sessions]
    report = canary_gate(scores(alone))
    assert (report.decision, report.statistics["blocks"]) == ("wait", 0)


def test_traffic_that_grows_harder_for_both_is_no_alarm():
    """Controls of a good hour and candidates of a bad one are not compared."""
    easy = [(arm, 1.0) for arm in ("control", "control", "control", "candidate") * 40]
    hard = [(arm, 0.0) for arm in ("control", "candidate", "candidate", "candidate") * 40]
    report = canary_gate(scores(easy + hard))
    assert report.decision != "fail"
    assert report.statistics["candidate_mean"] < report.statistics["control_mean"] - 0.4


def test_the_first_score_of_a_session_counts():
    """A session that is given twice is one session."""
    twice = [
        ArmScore(session="a", arm="control", score=1),
        ArmScore(session="a", arm="candidate", score=0),
    ]
    report = canary_gate(twice * 20)
    assert report.statistics["control_sessions"] == 1
    assert report.statistics["candidate_sessions"] == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.1])
def test_a_score_off_the_scale_holds_a_pass_up_but_no_alarm(sessions_of, bad):
    """The report says which session and what to do."""
    broken = ArmScore(session="s-bad", arm="candidate", score=bad)
    rules = GateConfig(margin=0.4)
    good = sessions_of(400, control=0.9, candidate=0.9, seed=3)
    assert canary_gate(good, rules=rules).decision == "pass"
    report = canary_gate([broken, *good], rules=rules)
    assert report.decision == "wait"
    assert "session 's-bad' scored" in report.reason
    harmed = sessions_of(200, control=0.9, candidate=0.3, seed=3)
    assert canary_gate([broken, *harmed]).decision == "fail"


def test_it_gives_up_after_the_most_sessions():
    """Then the candidate has not been shown to be harmless, which the reason says."""
    sessions = [(arm, 1.0) for arm in ("control", "candidate") * 30]
    rules = GateConfig(min_sessions=5, max_sessions=30, margin=0.01)
    assert canary_gate(scores(sessions[:-2]), rules=rules).decision == "wait"
    report = canary_gate(scores(sessions), rules=rules)
    assert report.decision == "fail"
    assert "30 sessions did not show" in report.reason


def test_few_sessions_of_an_arm_never_pass(sessions_of):
    """The least number holds for each arm."""
    good = sessions_of(120, control=0.1, candidate=0.99, seed=5)
    assert canary_gate(good, rules=GateConfig(min_sessions=20)).decision == "pass"
    assert canary_gate(good, rules=GateConfig(min_sessions=100)).decision == "wait"
