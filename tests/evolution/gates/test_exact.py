"""Exact bounds on a share."""

from __future__ import annotations

import pytest

from agentkit.errors import UsageError
from agentkit.evolution.gate_statistics import chance_of_at_most, exact_interval
from agentkit.evolution.gates import GateConfig, PairedSelection, regression_gate


@pytest.mark.parametrize(
    ("found", "of", "low", "high"),
    [
        (0, 149, 0.0, 0.019904816220685077),
        (1, 33, 0.0015531348898801132, 0.13585064679854747),
        (7, 10, 0.39337578389458766, 0.9127355660858496),
        (20, 400, 0.03337901341767718, 0.07182859004603483),
    ],
)
def test_it_is_the_interval_of_clopper_and_pearson(found, of, low, high):
    """Against quantiles of the beta distribution from SciPy 1.17."""
    interval = exact_interval(found, of, alpha=0.05)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("limit", [0.02, 0.05])
def test_a_gate_that_is_asked_once_errs_as_often_as_it_says(limit):
    """At the very limit: summed over all that can happen, at every number of requests up to 150."""
    worst = {"pass": 0.0, "fail": 0.0}
    rules = GateConfig(lost_share=limit)
    for requests in (20, 33, 52, 100, 133, 149, 150):
        chances = {"pass": 0.0, "fail": 0.0, "wait": 0.0}
        for lost in range(16):
            pairs = [
                PairedSelection(task=str(n), control=("find",), candidate=("find",) * (n >= lost))
                for n in range(requests)
            ]
            chance = chance_of_at_most(lost, requests, limit)
            chance -= chance_of_at_most(lost - 1, requests, limit)
            chances[regression_gate(pairs, tool="buy", rules=rules, once=True).decision] += chance
        worst = {name: max(worst[name], chances[name]) for name in worst}
    assert all(0 < chance <= rules.alpha for name, chance in worst.items() if name == "fail")
    assert worst["pass"] <= rules.alpha


@pytest.mark.parametrize(("found", "of", "alpha"), [(2, 1, 0.05), (-1, 3, 0.05), (1, 3, 0.5)])
def test_impossible_counts_are_misuse(found, of, alpha):
    """More than there were, less than none, or an alpha that is none."""
    with pytest.raises(UsageError):
        exact_interval(found, of, alpha=alpha)
