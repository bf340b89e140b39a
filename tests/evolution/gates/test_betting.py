"""The e-process for a bounded mean."""

from __future__ import annotations

import itertools
import math
from functools import cache

import pytest

from agentkit.errors import UsageError
from agentkit.evolution.gate_statistics import log_money_path

BOUNDS = [-0.9, -0.05, 0.0, 0.05, 0.5]


def money(values, bound):
    """What there is at the end."""
    path = list(log_money_path(values, bound=bound))
    return math.exp(path[-1]) if path else 1.0


def best_stopping(bound, mean, steps):
    """The largest expectation of any stopping rule, values being -1, 0 or 1 with this mean."""
    up, down = 0.3 + mean / 2, 0.3 - mean / 2
    if down < 0:
        up, down = mean, 0.0
    if up < 0:
        up, down = 0.0, -mean
    chances = {1.0: up, -1.0: down, 0.0: 1 - up - down}

    @cache
    def from_here(ups, downs, zeros):
        values = [1.0] * ups + [-1.0] * downs + [0.0] * zeros
        here = money(values, bound)
        if len(values) == steps:
            return here
        going_on = (
            chances[1.0] * from_here(ups + 1, downs, zeros)
            + chances[-1.0] * from_here(ups, downs + 1, zeros)
            + chances[0.0] * from_here(ups, downs, zeros + 1)
        )
        return max(here, going_on)

    return from_here(0, 0, 0)


@pytest.mark.parametrize("bound", BOUNDS)
def test_no_rule_of_stopping_makes_money(bound):
    """Under the null hypothesis, at its edge or within it, one does not gain on the average."""
    for mean in (bound, (bound - 1) / 2):
        assert best_stopping(bound, mean, 9) <= 1 + 1e-12
    assert best_stopping(bound, bound, 9) == pytest.approx(1)
    assert best_stopping(bound, min(0.95, bound + 0.2), 9) > 1.01  # beyond it one does


def test_every_sequence_is_paid_for():
    """Adding up all sequences of six values with their chances gives 1 at the edge."""
    chances = {1.0: 0.35, -0.5: 0.4, 0.0: 0.25}
    bound = sum(value * chance for value, chance in chances.items())
    total = sum(
        math.prod(chances[value] for value in values) * money(values, bound)
        for values in itertools.product(chances, repeat=6)
    )
    assert total == pytest.approx(1, abs=1e-12)


def test_long_runs_neither_overflow_nor_end_in_ruin():
    """Ten thousand values that all say the same are followed in logarithms."""
    assert list(log_money_path([1.0] * 10_000, bound=0.0))[-1] > 5_000
    ruined = list(log_money_path([-1.0] * 10_000, bound=0.0))
    assert math.isfinite(ruined[-1])
    assert ruined[-1] < -100


@pytest.mark.parametrize("value", [1.5, -1.01, math.nan])
def test_a_value_outside_its_bounds_is_refused(value):
    """The guarantee holds for bounded values only, so another one is a mistake of the caller."""
    with pytest.raises(UsageError, match="a value must lie between"):
        list(log_money_path([0.0, value], bound=0.0))
