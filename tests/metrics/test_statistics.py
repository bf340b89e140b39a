"""Intervals, paired comparisons and shares of attempts."""

import itertools
import random
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given, strategies as st

from agentkit.metrics import (
    Observation,
    PairedOutcome,
    bootstrap_interval,
    compare_paired,
    mcnemar_mid_p,
    pass_at_k,
    pass_hat_k,
    wilson_interval,
)


def observed(values):
    return [Observation(value=value, task=str(task)) for task, value in enumerate(values)]


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_published_values(passed, total, low, high):
    """Four published intervals, at the level of .95."""
    found = wilson_interval(passed, total)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize("total", [5, 10, 17, 20, 33])
def test_the_end_of_an_extreme_share_is_exact(total):
    """Where none or all passed, rounding moves the end neither off 0 nor off 1."""
    assert wilson_interval(0, total).low == 0
    assert wilson_interval(total, total).high == 1


@given(total=st.integers(0, 200), level=st.floats(0.5, 0.999), data=st.data())
def test_wilson_holds_the_share_and_stays_between_0_and_1(total, level, data):
    """The share lies inside, the ends inside [0, 1], and turning pass into fail mirrors it."""
    passed = data.draw(st.integers(0, total))
    found, mirrored = (
        wilson_interval(count, total, level=level) for count in (passed, total - passed)
    )
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert passed or found.low == 0
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-9)


def test_the_same_seed_gives_the_same_interval_in_any_order():
    """Nothing depends on the order of the observations, and another seed changes little."""
    values = observed([0, 1, 1, 0, 1, 1, 1, 0, 1, 1] * 4)
    shuffled = random.Random(1).sample(values, len(values))
    first, again = bootstrap_interval(values, seed=5), bootstrap_interval(shuffled, seed=5)
    other = bootstrap_interval(values, seed=6)
    assert first == again
    assert other.low == pytest.approx(first.low, abs=0.05)


def test_repeated_attempts_do_not_make_it_narrower():
    """Ten identical attempts at each task tell no more than one: tasks are drawn, not attempts."""
    once = observed([0, 1, 1, 0, 1, 1])
    tenfold = [one for one in once for _ in range(10)]
    assert bootstrap_interval(once) == bootstrap_interval(tenfold)


COUNTS = st.tuples(st.integers(0, 30), st.integers(0, 30))


def brute_force(only_first, only_second):
    """Half of what is as likely to be as extreme, all of what is more extreme."""
    differ = only_first + only_second
    here = abs(only_first - only_second)
    total = Fraction(0)
    for first in range(differ + 1):
        there = abs(first - (differ - first))
        weight = 1 if there > here else Fraction(1, 2) if there == here else 0
        total += weight * Fraction(comb(differ, first), 2**differ)
    return float(total)


@given(counts=COUNTS)
def test_mid_p_counts_half_of_what_is_as_extreme(counts):
    """The closed form equals adding up all divisions of the tasks; order does not matter."""
    first, second = counts
    expected = brute_force(first, second) if first + second else 1.0
    assert mcnemar_mid_p(first, second) == pytest.approx(expected, abs=1e-15)
    assert mcnemar_mid_p(first, second) == mcnemar_mid_p(second, first)
    assert 0 < mcnemar_mid_p(first, second) <= 1


def pairs(*scores, **more):
    return [
        PairedOutcome(task=str(task), first=first, second=second, **more)
        for task, (first, second) in enumerate(scores)
    ]


def test_pairing_is_what_makes_it_sure():
    """Where the second is better on each task by the same, the difference has no spread."""
    found = compare_paired(pairs((0.1, 0.3), (0.5, 0.7), (0.8, 1.0)))
    assert found.difference.low == pytest.approx(0.2)
    assert found.difference.high == pytest.approx(0.2)


@given(scores=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_turning_the_comparison_round_turns_the_difference(scores):
    """Swapping the systems changes the sign of the difference and nothing else."""
    there = compare_paired(pairs(*scores), resamples=200)
    back = compare_paired(pairs(*((b, a) for a, b in scores)), resamples=200)
    assert there.p_value == back.p_value
    assert there.difference.value == pytest.approx(-back.difference.value)
    assert there.difference.low <= there.difference.value <= there.difference.high


COUNTS_passing = st.integers(1, 9).flatmap(
    lambda attempts: st.tuples(
        st.integers(0, attempts), st.just(attempts), st.integers(1, attempts)
    )
)


@given(counts=COUNTS_passing)
def test_estimates_are_shares_of_all_choices(counts):
    """Both equal the exact share over all ways to choose k of the attempts."""
    passed, attempts, k = counts
    outcomes = [True] * passed + [False] * (attempts - passed)
    choices = list(itertools.combinations(outcomes, k))
    assert pass_at_k(*counts) == float(Fraction(sum(map(any, choices)), len(choices)))
    assert pass_hat_k(*counts) == float(Fraction(sum(map(all, choices)), len(choices)))
