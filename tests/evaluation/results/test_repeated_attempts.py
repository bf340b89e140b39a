"""pass@k, pass^k and intervals where tasks are tried several times."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.evaluation.results import summarise
from agentkit.evaluation.results.counting import accuracy, macro_mean, pass_table
from agentkit.metrics.intervals import Interval, wilson_interval

OUTCOMES = st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


def test_pass_at_k_needs_repeated_attempts(maker):
    """Where every task was tried once there is nothing to tell."""
    assert summarise([maker.episode("a"), maker.episode("b")]).pass_at == ()


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


@settings(max_examples=40, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=8))
def test_pass_at_k_is_the_share_of_all_choices_of_k_attempts(outcomes):
    """The closed form is what drawing every k of the attempts gives (Chen et al. 2021, Eq. 1)."""
    for one in pass_table(outcomes):
        tried = [(n, c) for n, c in outcomes if n >= one.k]
        draws = [list(combinations([1] * c + [0] * (n - c), one.k)) for n, c in tried]
        any_passes = [sum(map(any, own)) / len(own) for own in draws]
        all_pass = [sum(map(all, own)) / len(own) for own in draws]
        assert one.any_passes == pytest.approx(sum(any_passes) / len(tried))
        assert one.all_pass == pytest.approx(sum(all_pass) / len(tried))


@settings(max_examples=40, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=8))
def test_more_attempts_help_any_and_harm_all(outcomes):
    """pass@k never falls with k and pass^k never rises, where every task has enough attempts."""
    table = [one for one in pass_table(outcomes) if one.tasks == len(outcomes)]
    for one, next_one in pairwise(table):
        assert one.any_passes <= next_one.any_passes + 1e-12
        assert one.all_pass >= next_one.all_pass - 1e-12


@settings(max_examples=40, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=8))
def test_an_interval_holds_its_value(outcomes):
    """However the attempts are spread, 0 <= low <= accuracy <= high <= 1."""
    share = accuracy(outcomes)
    assert 0.0 <= share.low <= share.value + 1e-12
    assert share.value <= share.high + 1e-12 <= 1.0 + 1e-12


def test_attempts_at_one_task_are_not_taken_for_independent():
    """Ten attempts at each of four tasks that always or never pass tell no more than four tasks."""
    clustered = accuracy([(10, 10), (10, 0), (10, 10), (10, 0)])
    independent = accuracy([(1, 1)] * 20 + [(1, 0)] * 20)
    assert clustered.high - clustered.low > 2 * (independent.high - independent.low)


@settings(max_examples=60, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=40))
def test_no_number_of_attempts_is_certain(outcomes):
    """An interval is never a point, and never narrower than if all attempts were independent."""
    share = accuracy(outcomes)
    attempts = sum(tried for tried, _ in outcomes)
    independent = wilson_interval(share.value * attempts, attempts)
    assert share.high - share.low >= (independent.high - independent.low) - 1e-9 > 0.0


@pytest.mark.parametrize("tasks", [1, 5, 40])
def test_repetitions_that_agree_tell_nothing_new(tasks):
    """A model that always answers the same is known no better after four attempts than after one."""
    once = [(1, at % 2) for at in range(tasks)]
    again = [(4, 4 * passed) for _, passed in once]
    assert accuracy(again) == accuracy(once)


def test_many_attempts_are_listed_by_powers_of_two():
    """The table of a hundred attempts stays short."""
    assert [one.k for one in pass_table([(100, 40)])] == [1, 2, 4, 8, 16, 32, 64, 100]


INTERVALS = (
    st.lists(st.floats(0, 1), min_size=3, max_size=3)
    .map(sorted)
    .map(lambda ends: Interval(low=ends[0], value=ends[1], high=ends[2]))
)


@settings(max_examples=40, deadline=None)
@given(st.lists(INTERVALS, min_size=1, max_size=8))
def test_the_mean_over_categories_is_narrower_than_they_are(groups):
    """The interval of a mean holds the mean, and is no wider than the widest of its parts."""
    mean = macro_mean(groups)
    assert mean.low <= mean.value <= mean.high
    assert mean.high - mean.low <= max(one.high - one.low for one in groups) + 1e-9
    if len(groups) == 1:
        assert mean.value == groups[0].value
