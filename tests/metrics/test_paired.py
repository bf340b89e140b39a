"""Two systems on the same tasks."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.metrics import PairedOutcome, compare_paired, mcnemar_mid_p

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


def test_a_published_value():
    """Fagerland et al. (2013), table 1: 1 against 7 gives .039."""
    assert mcnemar_mid_p(1, 7) == pytest.approx(0.039, abs=5e-4)


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


def test_attempts_at_one_task_are_averaged():
    """Two attempts that cancel each other are a tie on their task."""
    attempts = [*pairs((0, 1), (1, 1)), *pairs((1, 0), (1, 1))]
    found = compare_paired(attempts)
    assert (found.tasks, found.only_first, found.only_second) == (2, 0, 0)
    assert found.p_value == 1


@given(scores=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_turning_the_comparison_round_turns_the_difference(scores):
    """Swapping the systems changes the sign of the difference and nothing else."""
    there = compare_paired(pairs(*scores), resamples=200)
    back = compare_paired(pairs(*((b, a) for a, b in scores)), resamples=200)
    assert there.p_value == back.p_value
    assert there.difference.value == pytest.approx(-back.difference.value)
    assert there.difference.low <= there.difference.value <= there.difference.high


def test_nothing_to_compare_is_refused():
    """Without common tasks there is no comparison."""
    with pytest.raises(UsageError, match="at least one"):
        compare_paired([])
