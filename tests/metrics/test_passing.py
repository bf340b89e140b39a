"""pass@k and pass^k."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.errors import UsageError
from agentkit.metrics import pass_at_k, pass_hat_k

COUNTS = st.integers(1, 9).flatmap(
    lambda attempts: st.tuples(
        st.integers(0, attempts), st.just(attempts), st.integers(1, attempts)
    )
)


@given(counts=COUNTS)
@settings(max_examples=60, deadline=None)
def test_estimates_are_shares_of_all_choices(counts):
    """Both equal the exact share over all ways to choose k of the attempts."""
    passed, attempts, k = counts
    outcomes = [True] * passed + [False] * (attempts - passed)
    choices = list(itertools.combinations(outcomes, k))
    assert pass_at_k(*counts) == float(Fraction(sum(map(any, choices)), len(choices)))
    assert pass_hat_k(*counts) == float(Fraction(sum(map(all, choices)), len(choices)))


@given(counts=COUNTS)
@settings(max_examples=60, deadline=None)
def test_more_tries_help_one_and_hurt_the_other(counts):
    """pass@k rises and pass^k falls with k; at k = 1 both are the share that passed."""
    passed, attempts, _ = counts
    at = [pass_at_k(passed, attempts, k) for k in range(1, attempts + 1)]
    hat = [pass_hat_k(passed, attempts, k) for k in range(1, attempts + 1)]
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)
    assert at[0] == hat[0] == passed / attempts


def test_many_attempts_lose_no_digit():
    """A chance of one in 10**5 over 10**5 attempts is as exact as a float can be."""
    assert pass_at_k(1, 100_000, 1) == 1e-5
    assert math.isclose(pass_at_k(1, 100_000, 50_000), 0.5, rel_tol=1e-15)


@pytest.mark.parametrize(
    "counts", [(2, 1, 1), (-1, 1, 1), (0, 0, 1), (1, 2, 3), (1, 2, 0), (1, 2, -1)]
)
@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
def test_numbers_that_can_not_be_are_refused(estimate, counts):
    """More passed than attempts, or a k that was not tried often enough, is an error."""
    with pytest.raises(UsageError):
        estimate(*counts)
