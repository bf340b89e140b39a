"""The best one-to-one assignment of rows to columns."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings, strategies as st

from agentkit_training.toolace.overlap import optimal_assignment


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
