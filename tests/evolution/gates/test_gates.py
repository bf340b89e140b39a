"""The gates: pass, wait or fail, by the numbers alone; the scores that episodes give them, and the statistics."""

import itertools
import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, strategies as st

from agentkit.episodes import Episode, Verdict
from agentkit.errors import UsageError
from agentkit.evolution.compare import canary_scores, shadow_pairs, shadow_selections
from agentkit.evolution.gate_statistics import DECAY, gamma, log_e_path, log_money_path
from agentkit.evolution.gates import (
    MAX_PAIRS,
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


def pairs_of(text):
    """Pairs from a text: ``w`` the candidate alone is right, ``l`` the control alone, ``=`` both."""
    return [
        PairedScore(task=f"t{place}", control=float(one != "w"), candidate=float(one != "l"))
        for place, one in enumerate(text)
    ]


def sessions_of(count, *, control, candidate, seed):
    """Sessions in a random order of arms, each right with the probability of its arm."""
    chance = random.Random(seed)
    scores = []
    for place in range(count):
        arm = "candidate" if chance.random() < 0.5 else "control"
        right = chance.random() < (candidate if arm == "candidate" else control)
        scores.append(ArmScore(session=f"s{place}", arm=arm, score=float(right)))
    return scores


def episode(episode_id, at, *, passed=None, fault=None, **others):
    """An episode with labels, begun so many seconds after midnight."""
    names = ("experiment", "arm", "shadow_of", "view_of", "imported")
    labels = {name: others.pop(name) for name in names if name in others}
    return Episode(
        episode_id=episode_id,
        request="how much is it?",
        started_at=f"2026-05-01T00:{at // 60:02}:{at % 60:02}.000+00:00",
        verdict=None if passed is None else Verdict(passed=passed, fault=fault),
        metadata=labels,
        **others,
    )


def shadow(number, control, candidate, **others):
    """An episode and the shadow run that repeats it."""
    labels = {"experiment": "p1", "arm": "candidate", "shadow_of": f"e{number}"}
    session = others.pop("session", None)
    return [
        episode(f"e{number}", number, passed=control, session_id=session),
        episode(f"x{number}", number + 30, passed=candidate, **labels, **others),
    ]


# --- Records of gates: kept in events as JSON, refused when they cannot be ----------------------


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
    plain = {"gate": report.gate, "decision": report.decision, "reason": report.reason}
    assert GateReport(**plain).to_json() == plain


# --- The offline gate: held-out tasks, asked once ------------------------------------------------


def test_a_clear_gain_passes():
    """Twelve tasks gained, one lost."""
    report = offline_gate(pairs_of("w" * 12 + "l" + "=" * 30))
    assert report.decision == "pass"
    assert report.statistics["gain"] == pytest.approx(11 / 43)
    assert report.statistics["gain_low"] < 11 / 43 < report.statistics["gain_high"]
    asked = GateConfig(min_gain=0.3)
    assert offline_gate(pairs_of("w" * 12 + "l" + "=" * 30), rules=asked).decision == "fail"


@pytest.mark.parametrize("text", ["", "====", "www", "w" * 7])
def test_too_few_tasks_that_differ_wait(text):
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


def test_a_better_candidate_passes():
    """Eight wins of eight are evidence enough at level .05, and the reason says so in numbers."""
    report = shadow_gate(pairs_of("=w" * 8))
    assert report.decision == "pass"
    assert "8 of 8 pairs that differ were won, of 16 in all" in report.reason
    assert report.statistics["log_e"] == pytest.approx([*log_e_path([True] * 8)][-1])
    assert report.statistics["p_value"] == pytest.approx(math.exp(-[*log_e_path([True] * 8)][-1]))


def test_only_the_first_pair_of_a_conversation_counts():
    """Twenty pairs of one conversation are one observation; so are twenty attempts at one task."""
    grouped = [PairedScore(task=str(n), control=0, candidate=1, group="g") for n in range(20)]
    repeated = [PairedScore(task="t", control=0, candidate=1) for _ in range(20)]
    for given_pairs in (grouped, repeated):
        report = shadow_gate(given_pairs)
        assert report.decision == "wait"
        assert (report.statistics["wins"], report.statistics["same_group"]) == (1, 19)


# --- The canary gate: no worse by more than a margin, and an alarm -------------------------------


def scores(sessions):
    """Sessions of arms and scores, each with a name of its own."""
    return [
        ArmScore(session=str(place), arm=arm, score=score)
        for place, (arm, score) in enumerate(sessions)
    ]


def test_false_alarms_are_rare():
    """Equal arms, asked all the time: at a true rate of .05 more than 19 of 200 come once in 200."""
    rounds = [sessions_of(300, control=0.7, candidate=0.7, seed=seed) for seed in range(200)]
    assert sum("alarm: the" in canary_gate(one).reason for one in rounds) <= 19


def test_a_candidate_that_is_worse_by_the_margin_seldom_passes():
    """At the edge of what is tolerated, without the alarm in the way."""
    rules = GateConfig(margin=0.2)
    rounds = [sessions_of(300, control=0.8, candidate=0.6, seed=seed) for seed in range(200)]
    assert sum(canary_gate(one, rules=rules).decision == "pass" for one in rounds) <= 19


# --- The bystander gate: other tools keep what belongs to them -----------------------------------


def selections(control, candidate, count, name="s"):
    """The same selection for so many requests."""
    return [
        PairedSelection(task=f"{name}{place}", control=control, candidate=candidate)
        for place in range(count)
    ]


def test_another_choice_that_was_found_right_is_no_loss():
    """Where the candidate's answer was judged right, its tools are as good as those of the control."""
    other = selections(("find",), ("look_up",), 30)
    accepted = [replace(one, accepted=True) for one in other]
    assert regression_gate(other, tool="buy").decision == "fail"
    assert regression_gate(accepted, tool="buy").statistics["lost"] == 0


def test_whichever_side_was_first_decides():
    """Evidence that comes after the decision, and after the gate gave up, comes too late."""
    assert shadow_gate(pairs_of("w" * 12 + "l" * 60)).decision == "pass"
    assert shadow_gate(pairs_of("l" * 12 + "w" * 60)).decision == "fail"
    report = shadow_gate(pairs_of("=" * MAX_PAIRS + "w" * 50))
    assert (report.decision, report.statistics["wins"]) == ("fail", 0)


def test_a_shadow_run_makes_a_pair_with_what_it_repeats():
    """Right and wrong become 1 and 0; the conversation is the group."""
    found = shadow_pairs([*shadow(1, False, True), *shadow(2, True, False, session="s")], "p1")
    assert [(one.task, one.control, one.candidate, one.group) for one in found] == [
        ("e1", 0, 1, ""),
        ("e2", 1, 0, "s"),
    ]


def test_faults_and_missing_verdicts_are_set_aside():
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


def test_a_run_that_broke_off_counts_as_a_failure():
    """Nobody judged it, but the user would have had no answer; a cancelled one says nothing."""
    broken = shadow(1, True, None, stop_reason="error") + shadow(
        2, True, None, stop_reason="step_limit"
    )
    found = shadow_pairs([*broken, *shadow(3, True, None, stop_reason="cancelled")], "p1")
    assert [one.candidate for one in found] == [0, 0]


def test_imported_episodes_are_on_neither_side():
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


def test_canary_takes_the_first_judged_episode_of_each_session():
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


# --- The e-process for a bounded mean ------------------------------------------------------------


def money(values, bound):
    """What there is at the end."""
    path = list(log_money_path(values, bound=bound))
    return math.exp(path[-1]) if path else 1.0


def test_every_sequence_is_paid_for():
    """Adding up all sequences of six values with their chances gives 1 at the edge."""
    chances = {1.0: 0.35, -0.5: 0.4, 0.0: 0.25}
    bound = sum(value * chance for value, chance in chances.items())
    total = sum(
        math.prod(chances[value] for value in values) * money(values, bound)
        for values in itertools.product(chances, repeat=6)
    )
    assert total == pytest.approx(1, abs=1e-12)


# --- The e-process on pairs that differ: what makes it valid whenever one looks ------------------


COUNTS = st.tuples(st.integers(0, 300), st.integers(0, 300))


def log_e_value(wins, losses):
    """The end of the path with so many wins and losses."""
    return [0.0, *log_e_path([True] * wins + [False] * losses)][-1]


def exact(wins, losses):
    """E as a fraction, by the binomial sum."""
    pairs = wins + losses
    total = sum(math.comb(pairs + 1, j) for j in range(wins + 1))
    return Fraction(total, (pairs + 1) * math.comb(pairs, wins))


def best_stopping_e_process(value, share, pairs):
    """The largest expectation that any rule of when to stop can reach, by backward induction."""

    @cache
    def from_here(wins, losses):
        here = value(wins, losses)
        if wins + losses == pairs:
            return here
        going_on = share * from_here(wins + 1, losses) + (1 - share) * from_here(wins, losses + 1)
        return max(here, going_on)

    return from_here(0, 0)


@pytest.mark.parametrize("share", [0.5, 0.49, 0.4, 0.2, 0.0])
def test_no_rule_of_stopping_makes_it_grow(share):
    """Under the null hypothesis the expectation is at most 1, however cleverly one stops."""
    found = best_stopping_e_process(lambda w, n: math.exp(log_e_value(w, n)), share, 40)
    assert found == pytest.approx(1, abs=1e-12)


@given(counts=COUNTS)
def test_the_closed_form_is_the_binomial_sum(counts):
    """In floating point it agrees with fractions, also where hundreds of pairs all say the same."""
    found = exact(*counts)
    logarithm = math.log(found.numerator) - math.log(found.denominator)
    assert log_e_value(*counts) == pytest.approx(logarithm, rel=1e-12, abs=1e-12)


# --- e-LOND: levels for one proposal after another -----------------------------------------------


def test_all_levels_together_are_the_alpha_that_is_tolerated():
    """The parts of alpha add up to 1 and not more, the endless rest included."""
    some = 20_000
    head = math.fsum(gamma(number) for number in range(1, some + 1))
    # The rest lies between the integrals of t^-DECAY from some + 1 and from some.
    integral = gamma(1) / (DECAY - 1)
    low, high = ((some + more) ** (1 - DECAY) * integral for more in (1, 0))
    assert head + low <= 1
    assert head + high == pytest.approx(1, abs=1e-4)


def test_verdicts_say_which_selections_can_be_lost():
    """A wrong episode has nothing to lose; a run found right may choose as it likes."""
    episodes = [*shadow(1, False, True), *shadow(2, True, True), *shadow(3, True, False)]
    found = shadow_selections(episodes, "p1")
    assert [(one.task, one.accepted) for one in found] == [("e2", True), ("e3", False)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_a_score_that_is_no_number_is_refused(bad):
    """The error names the task or session, and what to do."""
    with pytest.raises(UsageError, match="task 't-bad' scored"):
        PairedScore(task="t-bad", control=bad, candidate=1)
    with pytest.raises(UsageError, match="session 's-bad' scored"):
        ArmScore(session="s-bad", arm="control", score=bad)
