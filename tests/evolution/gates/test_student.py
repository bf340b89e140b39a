"""Student's interval."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evolution.gate_statistics import student_quantile, student_spread


@pytest.mark.parametrize(
    ("share", "freedom", "expected"),
    [
        (0.975, 1, 12.706204736174694),
        (0.975, 2, 4.302652729749462),
        (0.975, 29, 2.045229642132703),
        (0.995, 30, 2.7499956535672254),
        (0.9999, 7, 7.063432828157639),
    ],
)
def test_the_quantiles_are_those_of_the_tables(share, freedom, expected):
    """Against SciPy 1.17."""
    assert student_quantile(share, freedom) == pytest.approx(expected, rel=1e-10)


@given(st.floats(0.5, 0.9999), st.integers(1, 300))
def test_it_lies_beyond_the_normal_one_and_nears_it(share, freedom):
    """More values bring it nearer."""
    normal = statistics.NormalDist().inv_cdf(share)
    nearer, further = student_quantile(share, freedom + 1), student_quantile(share, freedom)
    assert normal - 1e-9 <= nearer <= further + 1e-9


def test_the_median_is_the_middle():
    """Half lies below 0."""
    assert student_quantile(0.5, 3) == pytest.approx(0, abs=1e-12)


def test_less_than_two_values_have_no_spread():
    """Nothing is known of it."""
    assert student_spread([], level=0.9) == student_spread([1.0], level=0.9) == math.inf
    assert student_spread([2.0, 2.0], level=0.9) == 0


@pytest.mark.parametrize(("share", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0), (math.nan, 3)])
def test_what_has_no_quantile_is_misuse(share, freedom):
    """A share below a half, one of 1, no degrees of freedom, and what is no number."""
    with pytest.raises(UsageError):
        student_quantile(share, freedom)
