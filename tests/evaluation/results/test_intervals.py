"""pass@k, intervals, and two runs side by side."""

from __future__ import annotations

import pytest

from agentkit.errors import UsageError
from agentkit.evaluation.results import compare, comparison_html, comparison_markdown, summarise
from agentkit.evaluation.results.statistics import accuracy, holm
from agentkit.metrics.intervals import wilson_interval


def test_pass_at_k_counts_tasks_with_enough_attempts(maker):
    """A task tried twice says nothing about three attempts."""
    episodes = [maker.episode("a", passed=at == 0, attempt=at) for at in range(3)] + [
        maker.episode("b", passed=True, attempt=at) for at in range(2)
    ]
    table = summarise(episodes).pass_at
    assert [(one.k, one.tasks) for one in table] == [(1, 2), (2, 2), (3, 1)]
    assert table[0].any_passes == pytest.approx((1 / 3 + 1) / 2)
    assert table[0].all_pass == pytest.approx((1 / 3 + 1) / 2)
    assert (table[2].any_passes, table[2].all_pass) == (1.0, 0.0)


def report_of(make, run, passed, *, settings=None, **options):
    """The report of a run with one attempt at each task; ``passed`` by task."""
    maker = make(run=run, settings=settings or {"refine": "none"}, **options)
    return summarise(
        maker.episode(task, "one" if at % 2 else "two", passed=one)
        for at, (task, one) in enumerate(passed.items())
    )


def test_tasks_gained_and_lost_are_named(make):
    """What only the second run passes is gained, what only the first does is lost."""
    a = report_of(make, "a", {"t1": True, "t2": False, "t3": False, "t4": True})
    b = report_of(make, "b", {"t1": False, "t2": True, "t3": True, "t4": True})
    comparison = compare(a, b)
    assert comparison.total.gained == ("t2", "t3")
    assert comparison.total.lost == ("t1",)
    assert (comparison.total.a, comparison.total.b) == (0.5, 0.75)
    assert comparison.total.difference.value == pytest.approx(0.25)


def test_only_tasks_of_both_are_compared(make):
    """A task that one run lacks is counted and compared with nothing."""
    a = report_of(make, "a", {"t1": True, "t2": True})
    b = report_of(make, "b", {"t2": False, "t3": True})
    comparison = compare(a, b)
    assert (comparison.total.tasks, comparison.total.lost) == (1, ("t2",))
    assert (comparison.only_a, comparison.only_b) == (("t1",), ("t3",))
    assert any("finished it: 2 tasks" in warning for warning in comparison.warnings)


def test_different_benchmarks_are_refused(make):
    """Tasks of another release are other tasks, whatever their ids."""
    a = report_of(make, "a", {"t": True}, benchmark="BFCL v3")
    b = report_of(make, "b", {"t": True}, benchmark="BFCL v4")
    with pytest.raises(UsageError, match=r"'BFCL v3'.*'BFCL v4'"):
        compare(a, b)


def test_runs_without_a_common_task_are_refused(make):
    """There is nothing to compare, and the message says what to do."""
    with pytest.raises(UsageError, match="no task in common"):
        compare(report_of(make, "a", {"t1": True}), report_of(make, "b", {"t2": True}))


def test_one_changed_setting_is_what_is_compared(make):
    """A change in refinement alone, its limit included, needs no warning."""
    a = report_of(make, "a", {"t": True}, settings={"refine": "none"})
    b = report_of(make, "b", {"t": True}, settings={"refine": "adaptive", "max_refinements": 5})
    comparison = compare(a, b)
    assert [*comparison.differences] == ["max_refinements", "refine"]
    assert comparison.warnings == ()


def test_two_changed_settings_are_warned_of(make):
    """With another model and another refinement nobody knows what made the difference."""
    a = report_of(make, "a", {"t": True}, settings={"refine": "none"})
    b = report_of(make, "b", {"t": True}, settings={"refine": "adaptive"}, model="other")
    (warning,) = compare(a, b).warnings
    assert "model, refine" in warning


def test_repeated_attempts_are_compared_by_their_share(make):
    """Two of three passes against one of three is a gain, not a tie."""
    reports = [
        summarise(
            maker.episode("t", passed=at < passes, attempt=at)
            for maker in [make(run=run)]
            for at in range(3)
        )
        for run, passes in (("a", 1), ("b", 2))
    ]
    comparison = compare(*reports)
    assert comparison.total.gained == ("t",)
    assert comparison.total.difference.value == pytest.approx(1 / 3)


def test_the_p_value_is_mcnemars_mid_p(make):
    """Five gained and none lost: 2 x (1/2 x 1/32) = 1/32 (Fagerland et al. 2013)."""
    tasks = [f"t{at}" for at in range(8)]
    a = report_of(make, "a", {task: task >= "t5" for task in tasks})
    b = report_of(make, "b", dict.fromkeys(tasks, True))
    total = compare(a, b).total
    assert (len(total.gained), len(total.lost)) == (5, 0)
    assert total.p_value == pytest.approx(0.03125)


def test_few_pairs_have_the_interval_of_agresti_and_min(make):
    """Two gained and one lost of four: (2 - 1) / 6, and Wald's interval with half a pair each."""
    a = report_of(make, "a", {"t1": True, "t2": False, "t3": False, "t4": True})
    b = report_of(make, "b", {"t1": False, "t2": True, "t3": True, "t4": True})
    total = compare(a, b).total.difference
    error = (4 - 1 / 6) ** 0.5 / 6
    assert total.low == pytest.approx(1 / 6 - 1.959964 * error)
    assert total.high == pytest.approx(1 / 6 + 1.959964 * error)


def test_a_comparison_can_be_read(make):
    """The Markdown and the page name both runs, the difference and the setting that changed."""
    a = report_of(make, "plain", {"t1": False, "t2": False}, settings={"refine": "none"})
    b = report_of(make, "refined", {"t1": True, "t2": False}, settings={"refine": "adaptive"})
    comparison = compare(a, b)
    for page in (comparison_markdown(comparison), comparison_html(comparison)):
        assert "plain" in page
        assert "refined" in page
        assert "+50.0" in page
        assert "refine" in page


def test_adjusted_p_values_are_holms():
    """The smallest of three counts three times, the next twice, and none falls below an earlier."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_few_tasks_have_wilsons_interval():
    """Below twenty tasks no bootstrap is drawn, even where attempts at a task differ."""
    share, wilson = accuracy([(2, 1), (2, 2), (2, 0)]), wilson_interval(1.5, 3)
    assert (share.low, share.high) == (wilson.low, wilson.high)
