"""The e-process on pairs that differ: what makes it valid whenever one looks."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evolution.gate_statistics import evidence, log_e_path, log_e_value

COUNTS = st.tuples(st.integers(0, 300), st.integers(0, 300))
OUTCOMES = st.lists(st.booleans(), max_size=60)


def exact(wins, losses):
    """E as a fraction, by the binomial sum."""
    pairs = wins + losses
    total = sum(math.comb(pairs + 1, j) for j in range(wins + 1))
    return Fraction(total, (pairs + 1) * math.comb(pairs, wins))


def best_stopping(value, share, pairs):
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
    found = best_stopping(lambda w, n: math.exp(log_e_value(w, n)), share, 40)
    assert found == pytest.approx(1, abs=1e-12)


def test_the_expectation_is_one_after_each_number_of_pairs():
    """At a win share of exactly 1/2 it is a martingale: the mean is 1 at every n, in fractions."""
    for pairs in range(30):
        ways = (math.comb(pairs, wins) * exact(wins, pairs - wins) for wins in range(pairs + 1))
        assert sum(ways) <= 2**pairs
        one_step = [(exact(w + 1, pairs - w) + exact(w, pairs - w + 1)) / 2 for w in range(pairs)]
        assert one_step == [exact(wins, pairs - wins) for wins in range(pairs)]


@given(counts=COUNTS)
def test_the_closed_form_is_the_binomial_sum(counts):
    """In floating point it agrees with fractions, also where hundreds of pairs all say the same."""
    found = exact(*counts)
    logarithm = math.log(found.numerator) - math.log(found.denominator)
    assert log_e_value(*counts) == pytest.approx(logarithm, rel=1e-12, abs=1e-12)


@given(counts=st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_it_is_the_mixture_of_bets(counts):
    """Against the integral over all bets, where SciPy is installed."""
    beta = pytest.importorskip("scipy.special")
    wins, losses = counts
    expected = (
        math.log(2)
        + (wins + losses) * math.log(2)
        + beta.betaln(wins + 1, losses + 1)
        + math.log(beta.betaincc(wins + 1, losses + 1, 0.5))
    )
    assert log_e_value(wins, losses) == pytest.approx(expected, abs=1e-9)


@given(outcomes=OUTCOMES)
def test_the_path_is_the_closed_form_step_by_step(outcomes):
    """Following pair by pair gives what counting gives."""
    path = list(log_e_path(outcomes))
    for place, found in enumerate(path, start=1):
        wins = sum(outcomes[:place])
        assert found == pytest.approx(log_e_value(wins, place - wins), abs=1e-12)


def test_counts_are_never_negative():
    """A negative count is a mistake of the caller, said with its value."""
    with pytest.raises(UsageError, match="-1"):
        log_e_value(-1, 3)


@pytest.mark.parametrize("level", [0, -0.1, 1.5, math.nan])
def test_a_level_is_a_probability(level):
    """A level that can not be one is refused."""
    with pytest.raises(UsageError, match="level"):
        evidence([], level=level)
