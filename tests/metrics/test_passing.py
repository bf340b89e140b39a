"""pass@k and pass^k."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.metrics import pass_at_k, pass_hat_k

COUNTS = st.integers(1, 9).flatmap(
    lambda attempts: st.tuples(
        st.integers(0, attempts), st.just(attempts), st.integers(1, attempts)
    )
)


@given(counts=COUNTS)
def test_estimates_are_shares_of_all_choices(counts):
    """Both equal the exact share over all ways to choose k of the attempts."""
    passed, attempts, k = counts
    outcomes = [True] * passed + [False] * (attempts - passed)
    choices = list(itertools.combinations(outcomes, k))
    assert pass_at_k(*counts) == float(Fraction(sum(map(any, choices)), len(choices)))
    assert pass_hat_k(*counts) == float(Fraction(sum(map(all, choices)), len(choices)))


@pytest.mark.parametrize(
    "counts", [(2, 1, 1), (-1, 1, 1), (0, 0, 1), (1, 2, 3), (1, 2, 0), (1, 2, -1)]
)
@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
def test_numbers_that_can_not_be_are_refused(estimate, counts):
    """More passed than attempts, or a k that was not tried often enough, is an error."""
    with pytest.raises(UsageError):
        estimate(*counts)
