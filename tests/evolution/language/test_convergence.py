"""Whether edits get smaller."""

from itertools import combinations, permutations

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.language.trends import at_most, convergence

sizes = st.lists(st.floats(0, 1), max_size=45)


@pytest.mark.parametrize("rounds", [2, 3, 4, 5, 6])
def test_chances_are_those_of_all_orders(rounds):
    """Counted over every order of so many different sizes."""
    scores = [
        sum(1 if b > a else -1 for a, b in combinations(order, 2))
        for order in permutations(range(rounds))
    ]
    pairs = rounds * (rounds - 1) // 2
    for score in range(-pairs - 1, pairs + 2):
        share = sum(one <= score for one in scores) / len(scores)
        assert at_most(score, rounds) == pytest.approx(share)


def test_approximation_joins_the_exact_chances():
    """Above thirty rounds the chances go on where the exact ones end."""
    assert at_most(-75, 31) == pytest.approx(at_most(-75, 30), abs=0.02)


@given(sizes)
def test_numbers_keep_their_bounds(some):
    """Tau is a correlation, chances are chances, whatever the sizes."""
    found = convergence(some)
    if len(some) < 2:
        assert found.tau is None
        assert found.p_shrinking is None
        return
    assert -1 <= found.tau <= 1
    assert 0 <= found.p_shrinking <= 1
    assert 0 <= found.p_growing <= 1


@given(sizes)
def test_direction_turns_with_the_order(some):
    """Sizes read backwards shrink where they grew."""
    there, back = convergence(some), convergence(some[::-1])
    assert there.p_shrinking == back.p_growing


@given(sizes, st.floats(0.1, 10))
def test_scale_does_not_matter(some, factor):
    """Only the order of sizes counts, so ties stay ties and the scale is nothing."""
    ranks = sorted(set(some))
    assert convergence([ranks.index(size) * factor for size in some]).tau == convergence(some).tau


@pytest.mark.parametrize(
    ("some", "trend"),
    [
        ([], "too few"),
        ([0.5, 0.3, 0.1], "too few"),
        ([0.5, 0.3, 0.2, 0.1], "shrinking"),
        ([0.1, 0.2, 0.3, 0.5], "growing"),
        ([0.3, 0.5, 0.2, 0.4], "no trend"),
        ([0.3] * 10, "no trend"),
    ],
)
def test_trend_needs_four_rounds_and_a_clear_order(some, trend):
    """Equal sizes show nothing, and three rounds can not."""
    assert convergence(some).trend == trend


def test_coming_back_is_counted():
    """A text that was there before is oscillation; a text that stays is not."""
    assert convergence([0.5] * 4, ["a", "b", "a", "b", "c"]).returns == 2
    assert convergence([0.5], ["a", "b"]).returns == 0
