"""Student's interval."""

from __future__ import annotations

import math

import pytest

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


def test_less_than_two_values_have_no_spread():
    """Nothing is known of it."""
    assert student_spread([], level=0.9) == student_spread([1.0], level=0.9) == math.inf
    assert student_spread([2.0, 2.0], level=0.9) == 0


@pytest.mark.parametrize(("share", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0), (math.nan, 3)])
def test_what_has_no_quantile_is_misuse(share, freedom):
    """A share below a half, one of 1, no degrees of freedom, and what is no number."""
    with pytest.raises(UsageError):
        student_quantile(share, freedom)
