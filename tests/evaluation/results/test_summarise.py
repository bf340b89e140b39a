"""The numbers of a run, and of one run beside another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evaluation.results import compare, summarise
from agentkit.evaluation.results.report import holm
from agentkit.evaluation.task import LeftOut
from agentkit.messages import Usage


def test_accuracy_is_the_share_of_attempts_that_passed(maker):
    """Two of three attempts passed, with a Wilson interval around two thirds."""
    report = summarise(maker.episode(f"t-{at}", passed=at < 2) for at in range(3))
    total = report.total
    assert (total.attempts, total.passed, total.tasks) == (3, 2, 3)
    assert total.accuracy.value == pytest.approx(2 / 3)
    assert total.accuracy.low == pytest.approx(0.2077, abs=1e-4)  # scipy's binomtest, Wilson
    assert total.accuracy.high == pytest.approx(0.9385, abs=1e-4)


def test_an_attempt_passes_when_every_user_turn_does(maker):
    """One failed user turn fails the attempt; its score is the mean of the turns."""
    turns = {"session": "s", "user_turns": 2}
    first = maker.episode("t", passed=True, user_turn=0, ends=False, **turns)
    good = maker.episode("t", passed=True, user_turn=1, **turns)
    bad = maker.episode("t", passed=False, user_turn=1, **turns)
    assert summarise([first, good]).total.passed == 1
    report = summarise([first, bad])
    assert (report.total.attempts, report.total.passed) == (1, 0)
    assert report.total.score == (1.0 + bad.verdict.score) / 2
    broken_off = maker.episode("t", passed=True, user_turn=0, **turns)
    assert summarise([broken_off]).total.passed == 0


def test_only_a_finished_try_counts(maker):
    """What an interruption left behind is in no number but what was spent."""
    cut = maker.episode("t", passed=True, session="first", ends=False)
    whole = maker.episode("t", passed=False, session="second")
    report = summarise([cut, whole])
    assert (report.total.attempts, report.total.passed, report.total.unfinished) == (1, 0, 0)
    assert report.spent.prompt_tokens == cut.usage.prompt_tokens + whole.usage.prompt_tokens
    assert report.total.usage.prompt_tokens == whole.usage.prompt_tokens
    assert summarise([cut]).total.unfinished == 1


def test_the_first_of_two_finished_tries_counts(maker):
    """An attempt that was made twice is counted once."""
    first = maker.episode("t", passed=True, session="one")
    second = maker.episode("t", passed=False, session="two")
    for order in ([first, second], [second, first]):
        report = summarise(order)
        assert (report.total.attempts, report.total.passed) == (1, 1)


def test_faults_are_counted_apart(maker):
    """A broken reference says nothing about the agent: no accuracy, no label, no token."""
    good = maker.episode("a", passed=True)
    broken = maker.episode("b", passed=False, fault="gold_error")
    report = summarise([good, broken])
    assert (report.total.attempts, report.total.faults) == (1, {"gold_error": 1})
    assert report.total.turn_labels == {"pass": 1}
    assert report.total.usage == good.usage
    assert [(one.what, one.task) for one in report.incidents] == [("gold_error", "b")]


def test_an_attempt_without_a_verdict_is_counted_apart(maker):
    """Where nobody judged there is no accuracy."""
    report = summarise([maker.episode("a", judged=False)])
    assert (report.total.attempts, report.total.unjudged) == (0, 1)
    assert report.total.accuracy is None
    assert report.macro is None


def test_planned_attempts_stand_beside_the_finished(maker):
    """A category that was planned and not begun is a row with nothing in it."""
    report = summarise([maker.episode("a", "easy")], planned={"easy": 2, "hard": 3})
    assert (report.total.planned, report.total.finished) == (5, 1)
    assert [(one.name, one.planned, one.attempts) for one in report.categories] == [
        ("easy", 2, 1),
        ("hard", 3, 0),
    ]
    assert summarise([], planned=4).is_short


def with_verdict(episode, **values):
    """The episode with parts of its verdict changed."""
    return replace(episode, verdict=replace(episode.verdict, **values))


def test_metrics_are_means_over_the_attempts_that_have_them(maker):
    """A metric that only some verdicts have is averaged over those, each attempt once."""
    first = with_verdict(maker.episode("a"), metrics={"f1": 1.0, "order": 0.5})
    second = with_verdict(maker.episode("b"), metrics={"f1": 0.5})
    assert summarise([first, second]).total.metrics == {"f1": 0.75, "order": 0.5}


def test_tokens_and_cost_are_totals_of_the_counted_attempts(maker):
    """The cost of an adapter that knows no price is None, not zero."""
    usage = Usage(requests=2, prompt_tokens=10, cached_tokens=4, completion_tokens=5, cost_usd=0.25)
    first = replace(maker.episode("a"), usage=usage)
    second = replace(maker.episode("b"), usage=replace(usage, cost_usd=None))
    total = summarise([first, second]).total
    assert (total.usage.prompt_tokens, total.usage.cached_tokens) == (20, 8)
    assert total.usage.cost_usd == 0.25
    assert summarise([second]).total.usage.cost_usd is None


def test_model_errors_count_and_are_listed_by_type(maker):
    """An attempt on which the model failed stays in the accuracy and is named."""
    failed = [
        replace(
            maker.episode(f"t-{at}", passed=False),
            stop_reason="error",
            error=f"ModelStatusError: status 400, try {at}",
        )
        for at in range(3)
    ]
    report = summarise([*failed, maker.episode("good")])
    assert (report.total.attempts, report.total.passed, report.total.errors) == (4, 1, 3)
    assert [(one.what, one.count) for one in report.incidents] == [("ModelStatusError", 3)]


def test_worst_tools_come_first_with_their_share(maker):
    """Tools are ordered by the episodes that they spoilt; a good call of one is in its share."""
    episodes = [
        maker.episode("a", passed=False, tool="music.play"),
        maker.episode("b", passed=False, tool="music.play"),
        maker.episode("c", passed=True, tool="music.play"),
        maker.episode("d", passed=False, tool="database.query"),
    ]
    tools = summarise(episodes).tools
    assert [(one.tool, one.faulty, one.episodes) for one in tools] == [
        ("music.play", 2, 3),
        ("database.query", 1, 1),
    ]
    assert tools[0].labels == {"argument_mismatch": 2}


def test_what_was_left_out_is_grouped_by_reason():
    """Ten rows left out for one reason are one line with a few places."""
    left_out = [LeftOut(where=f"file, line {at:02d}", reason="no gold") for at in range(10)]
    left_out.append(LeftOut(where="other, line 1", reason="not JSON"))
    first, second = summarise([], left_out=left_out).left_out
    assert (first.reason, first.count, len(first.where)) == ("no gold", 10, 5)
    assert second.count == 1


def test_settings_that_differ_within_a_run_are_named(make):
    """Episodes that were asked otherwise than the rest do not go unseen."""
    episodes = [
        make(settings={"refine": mode}).episode(f"t-{mode}") for mode in ("none", "adaptive")
    ]
    episodes[1] = replace(episodes[1], episode_id="another")
    report = summarise(episodes)
    assert report.mixed == ("refine",)
    broken = maker_with_settings(make, "not JSON")
    assert summarise([broken]).settings == {"settings": "not JSON"}


def maker_with_settings(make, text):
    """An episode whose settings are this text."""
    episode = make().episode("t")
    return replace(episode, metadata={**episode.metadata, "settings": text})


SPECS = st.lists(
    st.fixed_dictionaries(
        {
            "task": st.sampled_from(["a", "b", "c"]),
            "attempt": st.integers(0, 2),
            "session": st.sampled_from(["s1", "s2"]),
            "passed": st.booleans(),
            "ends": st.booleans(),
            "judged": st.booleans(),
            "user_turn": st.integers(0, 1),
            "user_turns": st.integers(1, 2),
            "fault": st.sampled_from([None, None, None, "gold_error", "checker_error"]),
        }
    ),
    max_size=10,
)


def episodes_of(make, specs):
    """Episodes as specified; the category goes by the task."""
    maker = make()
    return [maker.episode(category=f"of {spec['task']}", **spec) for spec in specs]


@given(specs=SPECS, data=st.data())
def test_order_changes_nothing(make_once, specs, data):
    """Any permutation of the episodes gives the same report, to the last digit."""
    episodes = episodes_of(make_once, specs)
    shuffled = data.draw(st.permutations(episodes))
    assert summarise(shuffled) == summarise(episodes)


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


def test_one_changed_setting_is_what_is_compared(make):
    """A change in refinement alone, its limit included, needs no warning, nor does a sample."""
    a = report_of(make, "a", {"t": True}, settings={"refine": "none"})
    settings = {"refine": "adaptive", "max_refinements": 5, "sample": 9}
    b = report_of(make, "b", {"t": True}, settings=settings)
    comparison = compare(a, b)
    assert [*comparison.differences] == ["max_refinements", "refine", "sample"]
    assert comparison.warnings == ()


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


def test_adjusted_p_values_are_holms():
    """The smallest of three counts three times, the next twice, and none falls below an earlier."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
