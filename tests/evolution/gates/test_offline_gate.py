"""The offline gate: held-out tasks, asked once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evolution.gates import GateConfig, PairedScore, offline_gate, one_sided_mid_p
from agentkit.metrics import mcnemar_mid_p

COUNTS = st.tuples(st.integers(0, 60), st.integers(0, 60))


@given(counts=COUNTS)
def test_the_two_sides_together_are_the_two_sided_test(counts):
    """The p-values of the two questions add up to 1, and the smaller is half the two-sided one.

    Except for a draw, of which the two-sided test counts half although nothing is less extreme.
    """
    wins, losses = counts
    better, worse = one_sided_mid_p(wins, losses), one_sided_mid_p(losses, wins)
    assert better + worse == pytest.approx(1)
    if wins != losses:
        assert min(better, worse) == pytest.approx(mcnemar_mid_p(wins, losses) / 2)


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
    assert report.reason.startswith("no evidence of a gain: +0.073")


def test_a_gain_below_what_is_asked_for_fails(pairs_of):
    """Evidence of a tiny gain is not enough where more is asked for."""
    pairs = pairs_of("w" * 12 + "=" * 988)
    assert offline_gate(pairs).decision == "pass"
    assert offline_gate(pairs, rules=GateConfig(min_gain=0.05)).decision == "fail"


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


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200])
def test_a_score_that_is_no_number_leaves_it_undecided(pairs_of, bad):
    """With the tasks fixed, an answer on a part of them is none."""
    pairs = [*pairs_of("w" * 12), PairedScore(task="bad", control=0, candidate=bad)]
    report = offline_gate(pairs)
    assert report.decision == "wait"
    assert "task 'bad'" in report.reason


def test_counts_are_never_negative():
    """A negative count is a mistake of the caller."""
    with pytest.raises(UsageError, match="negative"):
        one_sided_mid_p(-1, 0)
