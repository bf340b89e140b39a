"""Which episodes count, and that the counts add up."""

import pytest

from agentkit.errors import UsageError
from agentkit.evaluation.results import summarise


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


def test_an_attempt_that_ends_early_has_not_passed(maker):
    """A conversation that broke off after the first of two user turns is not whole."""
    only = maker.episode("t", passed=True, user_turn=0, user_turns=2)
    assert summarise([only]).total.passed == 0


def test_one_that_breaks_off_before_it_is_judged_has_failed(maker):
    """Who runs out of steps in a first turn that nobody judges never gets to what is judged."""
    early = maker.episode("t", judged=False, user_turn=0, user_turns=3)
    report = summarise([early])
    assert (report.total.attempts, report.total.passed, report.total.unjudged) == (1, 0, 0)
    whole = maker.episode("t", judged=False)
    report = summarise([whole])
    assert (report.total.attempts, report.total.unjudged) == (0, 1)


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
    """An attempt that was made twice is counted once, and the report says so."""
    first = maker.episode("t", passed=True, session="one")
    second = maker.episode("t", passed=False, session="two")
    for order in ([first, second], [second, first]):
        report = summarise(order)
        assert (report.total.attempts, report.total.passed, report.repeated) == (1, 1, 1)


def test_faults_are_counted_apart(maker):
    """A broken reference says nothing about the agent: no accuracy, no label, no token."""
    good = maker.episode("a", passed=True)
    broken = maker.episode("b", passed=False, fault="gold_error")
    report = summarise([good, broken])
    assert (report.total.attempts, report.total.faults) == (1, {"gold_error": 1})
    assert report.total.turn_labels == {"pass": 1}
    assert report.total.usage == good.usage
    assert [one.task for one in report.faults] == ["b"]


def test_an_attempt_without_a_verdict_is_counted_apart(maker):
    """Where nobody judged there is no accuracy."""
    report = summarise([maker.episode("a", judged=False)])
    assert (report.total.attempts, report.total.unjudged) == (0, 1)
    assert report.total.accuracy is None
    assert report.macro is None


def test_planned_attempts_stand_beside_the_finished(maker):
    """A category that was planned and not begun is a row with nothing in it."""
    report = summarise([maker.episode("a", "easy")], planned={"easy": 2, "hard": 3})
    assert (report.planned, report.finished) == (5, 1)
    assert [(one.name, one.planned, one.attempts) for one in report.categories] == [
        ("easy", 2, 1),
        ("hard", 3, 0),
    ]
    assert summarise([], planned=4).planned == 4


def test_two_runs_are_refused(make):
    """A report about two runs at once would mean nothing."""
    episodes = [make(run="a").episode("t"), make(run="b").episode("t")]
    with pytest.raises(UsageError, match="'a' and 'b'"):
        summarise(episodes)


def test_episodes_that_are_no_evaluation_are_counted_as_strangers(maker):
    """An episode without the label of its task is left out and told."""
    plain = maker.episode("t")
    plain.metadata.clear()
    report = summarise([plain, maker.episode("t")])
    assert (report.strangers, report.total.attempts) == (1, 1)


def test_no_episodes_make_an_empty_report():
    """Nothing was run: every number is zero and every table empty."""
    report = summarise([])
    assert report.total.accuracy is None
    assert report.categories == report.tools == report.examples == report.results == ()


def test_an_episode_read_twice_counts_once(maker):
    """A file given twice changes nothing."""
    episode = maker.episode("t")
    assert summarise([episode, episode]) == summarise([episode])
