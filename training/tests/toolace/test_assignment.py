"""The best one-to-one assignment of rows to columns."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.errors import UsageError
from agentkit_training.toolace.assignment import optimal_assignment


def total(weights, pairs):
    return sum(weights[row][column] for row, column in pairs)


def best_total(weights):
    """The most that any assignment reaches, found by trying all of them."""
    rows, columns = len(weights), len(weights[0])
    if rows > columns:
        return best_total([list(column) for column in zip(*weights, strict=True)])
    choices = itertools.permutations(range(columns), rows)
    return max(sum(weights[row][c] for row, c in enumerate(choice)) for choice in choices)


def matrices(weights, most=6):
    size = st.integers(1, most)
    return st.tuples(size, size).flatmap(
        lambda shape: st.lists(
            st.lists(weights, min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        )
    )


@given(weights=matrices(st.integers(-5, 5)))
@settings(max_examples=120, deadline=None)
def test_no_other_assignment_weighs_more(weights):
    """The total equals the best over all permutations, exactly for integers."""
    pairs = optimal_assignment(weights)
    assert total(weights, pairs) == best_total(weights)
    assert len(pairs) == min(len(weights), len(weights[0]))
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert list(pairs) == sorted(pairs)


@given(weights=matrices(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0]), most=5))
@settings(max_examples=80, deadline=None)
def test_shares_are_assigned_as_well_as_integers(weights):
    """Weights like those of overlaps give the best total up to rounding."""
    assert math.isclose(total(weights, optimal_assignment(weights)), best_total(weights))


@given(weights=matrices(st.floats(-1e6, 1e6, allow_nan=False), most=12))
@settings(max_examples=60, deadline=None)
def test_scipy_finds_nothing_better(weights):
    """On larger matrices the total is that of SciPy's solver, where SciPy is installed."""
    optimize = pytest.importorskip("scipy.optimize")
    rows, columns = optimize.linear_sum_assignment(weights, maximize=True)
    expected = sum(weights[row][column] for row, column in zip(rows, columns, strict=True))
    assert math.isclose(
        total(weights, optimal_assignment(weights)), expected, rel_tol=1e-9, abs_tol=1e-6
    )


def test_integers_of_any_size_stay_exact():
    """A difference that floats would lose decides."""
    huge = 10**30
    assert optimal_assignment([[huge, huge + 1], [huge, huge]]) == ((0, 1), (1, 0))


@pytest.mark.parametrize("empty", [[], [[]], [[], []]])
def test_nothing_is_assigned_where_there_is_nothing(empty):
    """Without rows or without columns there are no pairs."""
    assert optimal_assignment(empty) == ()


@pytest.mark.parametrize(
    ("weights", "says"),
    [([[1, 2], [3]], "differ in length"), ([[float("nan")]], "finite"), ([[math.inf]], "finite")],
)
def test_what_is_no_matrix_of_weights_is_refused(weights, says):
    """Ragged rows, NaN and infinity are the caller's mistake, and said so."""
    with pytest.raises(UsageError, match=says):
        optimal_assignment(weights)
