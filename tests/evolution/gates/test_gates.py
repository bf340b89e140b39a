"""The gates: pass, wait or fail, by the numbers alone; and the scores that episodes give them."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import StoreFormatError
from agentkit.evolution.compare import (
    canary_scores,
    shadow_pairs,
    shadow_selections,
)
from agentkit.evolution.gate_statistics import log_e_path
from agentkit.evolution.gates import (
    ArmScore,
    GateConfig,
    GateReport,
    PairedScore,
    PairedSelection,
    canary_gate,
    offline_gate,
    regression_gate,
    shadow_gate,
)

# --- Records of gates: kept in events as JSON, refused when they can not be ----------------------


REPORTS = st.builds(
    GateReport,
    gate=st.text(),
    decision=st.sampled_from(["pass", "wait", "fail"]),
    reason=st.text(),
    statistics=st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)


@given(report=REPORTS)
def test_reports_survive_json(report):
    """Written as JSON text and read again, a report is what it was."""
    text = json.dumps(report.to_json(), allow_nan=False)
    assert GateReport.from_json(json.loads(text)) == report


@given(
    record=st.dictionaries(
        st.sampled_from(["gate", "decision", "reason", "statistics", "tasks", "lost", "x"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    ),
)
def test_any_other_json_is_refused_with_a_reason(record):
    """What is no report gives an error of ours, never another one."""
    with suppress(StoreFormatError):
        assert isinstance(GateReport.from_json(record), GateReport)


# --- The offline gate: held-out tasks, asked once ------------------------------------------------


def test_a_clear_gain_passes(pairs_of):
    """Twelve tasks gained, one lost."""
    report = offline_gate(pairs_of("w" * 12 + "l" + "=" * 30))
    assert report.decision == "pass"
    assert report.statistics["gain"] == pytest.approx(11 / 43)
    assert report.statistics["gain_low"] < 11 / 43 < report.statistics["gain_high"]


def test_no_evidence_is_not_evidence_of_none(pairs_of):
    """A gain that chance explains fails with a reason that says no more than that."""
    report = offline_gate(pairs_of("w" * 7 + "l" * 4 + "=" * 30))
    assert report.decision == "fail"
    assert report.reason.startswith("no evidence of a gain: +7.3 points")


@pytest.mark.parametrize("text", ["", "====", "www", "w" * 7])
def test_too_few_tasks_that_differ_wait(pairs_of, text):
    """No tasks, all equal, or a handful: more held-out tasks are asked for."""
    report = offline_gate(pairs_of(text))
    assert report.decision == "wait"
    assert "bring more held-out tasks" in report.reason


def test_attempts_at_one_task_are_averaged():
    """A hundred attempts at one task are one task."""
    pairs = [PairedScore(task="t", control=0, candidate=n % 3 > 0) for n in range(100)]
    report = offline_gate(pairs)
    assert (report.decision, report.statistics["tasks"], report.statistics["wins"]) == (
        "wait",
        1,
        1,
    )


# --- The shadow gate: what it decides, and that it never changes its mind ------------------------


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
    assert report.statistics["log_e"] == pytest.approx([*log_e_path([True] * 8)][-1])
    assert report.statistics["p_value"] == pytest.approx(math.exp(-[*log_e_path([True] * 8)][-1]))


def test_a_worse_candidate_fails_without_waiting_for_the_end(pairs_of):
    """The mirrored e-process rings as soon as losses are evidence."""
    report = shadow_gate(pairs_of("l" * 7))
    assert report.decision == "fail"
    assert "the candidate is worse" in report.reason
    assert report.statistics["alarm_log_e"] == pytest.approx([*log_e_path([True] * 7)][-1])


def test_pairs_that_do_not_differ_decide_nothing(pairs_of):
    """With all pairs equal the gate waits, and gives up after the most pairs that are allowed."""
    rules = GateConfig(max_pairs=50)
    assert shadow_gate(pairs_of("=" * 49), rules=rules).decision == "wait"
    report = shadow_gate(pairs_of("=" * 50), rules=rules)
    assert report.decision == "fail"
    assert "not evidence that there is none" in report.reason


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


# --- The canary gate: no worse by more than a margin, and an alarm -------------------------------


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
    rules = GateConfig(margin=0.2)
    rounds = [sessions_of(300, control=0.8, candidate=0.6, seed=seed) for seed in range(200)]
    assert sum(canary_gate(one, rules=rules).decision == "pass" for one in rounds) <= 19


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


# --- The bystander gate: other tools keep what belongs to them -----------------------------------


def selections(control, candidate, count, name="s"):
    """The same selection for so many requests."""
    return [
        PairedSelection(task=f"{name}{place}", control=control, candidate=candidate)
        for place in range(count)
    ]


def test_requests_that_the_changed_tool_takes_are_counted():
    """A robbed request is a lost one to which the changed tool was called."""
    mixed = selections(("find",), ("find",), 80) + selections(("find",), ("buy",), 20, name="r")
    report = regression_gate(mixed, tool="buy")
    assert report.decision == "fail"
    assert (report.statistics["robbed"], report.statistics["lost"]) == (20, 20)


def test_another_choice_that_was_found_right_is_no_loss():
    """Where the candidate's answer was judged right, its tools are as good as those of the control."""
    other = selections(("find",), ("look_up",), 30)
    accepted = [replace(one, accepted=True) for one in other]
    assert regression_gate(other, tool="buy").decision == "fail"
    assert regression_gate(accepted, tool="buy").statistics["lost"] == 0


def test_whichever_side_was_first_decides(pairs_of):
    """Evidence that comes after the decision, and after the gate gave up, comes too late."""
    assert shadow_gate(pairs_of("w" * 12 + "l" * 60)).decision == "pass"
    assert shadow_gate(pairs_of("l" * 12 + "w" * 60)).decision == "fail"
    report = shadow_gate(pairs_of("=" * 50 + "w" * 50), rules=GateConfig(max_pairs=50))
    assert (report.decision, report.statistics["wins"]) == ("fail", 0)


@given(sessions=SESSIONS, more=SESSIONS)
def test_what_a_canary_decided_stays_decided(sessions, more):
    """Later sessions do not turn a pass or a fail around."""
    rules = GateConfig(min_sessions=5, max_sessions=30, margin=0.5)
    early = canary_gate(scores(sessions), rules=rules).decision
    assert early in {"wait", canary_gate(scores(sessions + more), rules=rules).decision}


@pytest.fixture
def shadow(episode):
    """An episode and the shadow run that repeats it."""

    def build(number, control, candidate, **others):
        return [
            episode(f"e{number}", number, passed=control, session_id=others.pop("session", None)),
            episode(
                f"x{number}",
                number + 30,
                passed=candidate,
                experiment="p1",
                arm="candidate",
                shadow_of=f"e{number}",
                **others,
            ),
        ]

    return build


def test_a_shadow_run_makes_a_pair_with_what_it_repeats(shadow):
    """Right and wrong become 1 and 0; the conversation is the group."""
    found = shadow_pairs([*shadow(1, False, True), *shadow(2, True, False, session="s")], "p1")
    assert [(one.task, one.control, one.candidate, one.group) for one in found] == [
        ("e1", 0, 1, ""),
        ("e2", 1, 0, "s"),
    ]


def test_faults_and_missing_verdicts_are_set_aside(shadow, episode):
    """None of these says anything about the definitions."""
    episodes = [
        *shadow(1, False, True),
        *shadow(2, None, True),
        *shadow(3, True, None),
        *shadow(4, True, False, fault="checker_error"),
        *shadow(5, True, True)[1:],  # what it repeats is not there
        *shadow(6, True, True),
        episode("x9", 50, passed=False, experiment="p1", shadow_of="e6"),  # a second run of e6
    ]
    found = shadow_pairs(episodes, "p1")
    assert [one.task for one in found] == ["e1", "e6"]


def test_a_run_that_broke_off_counts_as_a_failure(shadow):
    """Nobody judged it, but the user would have had no answer; a cancelled one says nothing."""
    broken = shadow(1, True, None, stop_reason="error") + shadow(
        2, True, None, stop_reason="step_limit"
    )
    found = shadow_pairs([*broken, *shadow(3, True, None, stop_reason="cancelled")], "p1")
    assert [one.candidate for one in found] == [0, 0]


def test_imported_episodes_are_on_neither_side(shadow, episode):
    """Labels and verdicts of a file decide no experiment; its verdicts on our episodes neither."""
    forged = [
        episode("f1", 3, passed=True, experiment="p1", arm="candidate", imported="theirs.jsonl"),
        *shadow(4, False, True, imported="theirs.jsonl"),
        episode(
            "f2", 5, passed=True, experiment="p1", arm="control", view_of="e1", imported="x.jsonl"
        ),
    ]
    ours = episode("e1", 6, passed=False, experiment="p1", arm="control")
    assert [one.session for one in canary_scores([*forged, ours], "p1")] == ["e1"]
    assert shadow_pairs(forged, "p1") == shadow_selections(forged, "p1") == ()


def test_canary_takes_the_first_judged_episode_of_each_session(episode):
    """Later ones depend on it; the arm of a session is that of its first episode."""
    episodes = [
        episode("e2", 2, passed=False, session_id="s1", experiment="p1", arm="candidate"),
        episode("e1", 1, passed=True, session_id="s1", experiment="p1", arm="control"),
        episode("e3", 3, passed=False, experiment="p1", arm="candidate"),
        episode("e4", 4, experiment="p1", arm="control"),
        episode("e5", 5, passed=True, experiment="p1", arm="neither"),
        episode("e6", 6, passed=True, fault="gold_error", experiment="p1", arm="control"),
    ]
    found = canary_scores(episodes, "p1")
    assert [(one.session, one.arm, one.score) for one in found] == [
        ("s1", "control", 1),
        ("e3", "candidate", 0),
    ]


def test_verdicts_say_which_selections_can_be_lost(shadow):
    """A wrong episode has nothing to lose; a run found right may choose as it likes."""
    episodes = [*shadow(1, False, True), *shadow(2, True, True), *shadow(3, True, False)]
    found = shadow_selections(episodes, "p1")
    assert [(one.task, one.accepted) for one in found] == [("e2", True), ("e3", False)]
