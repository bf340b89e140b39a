"""e-LOND: levels for one proposal after another."""

from __future__ import annotations

import math
import random

import pytest

from agentkit.errors import UsageError
from agentkit.evolution.gate_statistics import DECAY, Elond, evidence, gamma, log_e_path


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
    assert opened.open().level(0.05) == pytest.approx(opened.level(0.05) * (8 / 9) ** 1.3)


def test_what_can_not_be_is_refused():
    """More promotions than experiments, an alpha of one, an experiment number zero."""
    with pytest.raises(UsageError, match="2 of 1"):
        Elond(opened=1, promoted=2)
    with pytest.raises(UsageError, match="alpha"):
        Elond().level(1)
    with pytest.raises(UsageError, match="numbered from 1"):
        gamma(0)


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
        state = state.open()
        if highest >= -math.log(level):
            state = state.promote()
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
