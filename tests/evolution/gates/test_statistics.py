"""The statistics of the gates: e-processes, betting and e-LOND."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.gate_statistics import (
    DECAY,
    Elond,
    evidence,
    gamma,
    log_e_path,
    log_money_path,
)

# --- The e-process for a bounded mean ------------------------------------------------------------


def money(values, bound):
    """What there is at the end."""
    path = list(log_money_path(values, bound=bound))
    return math.exp(path[-1]) if path else 1.0


def test_every_sequence_is_paid_for():
    """Adding up all sequences of six values with their chances gives 1 at the edge."""
    chances = {1.0: 0.35, -0.5: 0.4, 0.0: 0.25}
    bound = sum(value * chance for value, chance in chances.items())
    total = sum(
        math.prod(chances[value] for value in values) * money(values, bound)
        for values in itertools.product(chances, repeat=6)
    )
    assert total == pytest.approx(1, abs=1e-12)


# --- The e-process on pairs that differ: what makes it valid whenever one looks ------------------


COUNTS = st.tuples(st.integers(0, 300), st.integers(0, 300))


def log_e_value(wins, losses):
    """The end of the path with so many wins and losses."""
    return [0.0, *log_e_path([True] * wins + [False] * losses)][-1]


def exact(wins, losses):
    """E as a fraction, by the binomial sum."""
    pairs = wins + losses
    total = sum(math.comb(pairs + 1, j) for j in range(wins + 1))
    return Fraction(total, (pairs + 1) * math.comb(pairs, wins))


def best_stopping_e_process(value, share, pairs):
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
    found = best_stopping_e_process(lambda w, n: math.exp(log_e_value(w, n)), share, 40)
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


# --- e-LOND: levels for one proposal after another -----------------------------------------------


def test_all_levels_together_are_the_alpha_that_is_tolerated():
    """The parts of alpha add up to 1 and not more, the endless rest included."""
    some = 20_000
    head = math.fsum(gamma(number) for number in range(1, some + 1))
    # The rest lies between the integrals of t^-DECAY from some + 1 and from some.
    integral = gamma(1) / (DECAY - 1)
    low, high = ((some + more) ** (1 - DECAY) * integral for more in (1, 0))
    assert head + low <= 1
    assert head + high == pytest.approx(1, abs=1e-4)


def test_promotions_raise_later_levels_and_openings_lower_them():
    """One promotion doubles the next level; opening one more lowers it by the decay."""
    opened = Elond(opened=7, promoted=0)
    assert Elond(opened=7, promoted=1).level(0.05) == pytest.approx(2 * opened.level(0.05))
    assert Elond(opened=8).level(0.05) == pytest.approx(opened.level(0.05) * (8 / 9) ** 1.3)


def highest_of_200(seed, *, win_share=0.85, differing=120):
    """For each of 200 proposals whether it is useful, every fifth is, and its highest e-value."""
    chance = random.Random(seed)
    for number in range(200):
        share = win_share if number % 5 == 2 else 0.5
        wins = [chance.random() < share for _ in range(differing)]
        yield share > 0.5, evidence(log_e_path(wins), level=1).highest


def promoted(proposals, level_of):
    """Useless and useful promotions, one proposal after the other."""
    state, useless, useful = Elond(), 0, 0
    for is_useful, highest in proposals:
        level = level_of(state)
        is_promoted = highest >= -math.log(level)
        state = Elond(opened=state.opened + 1, promoted=state.promoted + is_promoted)
        if is_promoted:
            useless, useful = useless + (not is_useful), useful + is_useful
    return useless, useful


def test_of_many_useless_proposals_hardly_one_is_promoted():
    """200 proposals, 160 useless: at most one useless passes on the average, and 80% of the useful.

    A fixed level of .05 for each, valid as it is for a single one, lets several useless ones pass.
    """
    rounds = [list(highest_of_200(seed)) for seed in range(10)]
    kept = [promoted(proposals, lambda state: state.level(0.05)) for proposals in rounds]
    fixed = [promoted(proposals, lambda _: 0.05) for proposals in rounds]
    assert sum(useless for useless, _ in kept) <= 10 < sum(useless for useless, _ in fixed)
    assert all(useful >= 32 for _, useful in kept)


# --- Looking again and again: what it does to a naive test, and does not do to the e-process -----


ROUNDS, EPISODES = 300, 300
"""Of 300 experiments without effect: at a true rate of .05 more than 26 pass once in 200 times."""
