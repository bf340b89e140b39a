"""Looking again and again: what it does to a naive test, and does not do to the e-process."""

from __future__ import annotations

import random
from math import comb

import pytest

from agentkit.evolution.gate_statistics import chance_to_pass, wins_needed
from agentkit.evolution.gates import PairedScore, one_sided_mid_p, shadow_gate

LEVEL = 0.05
ROUNDS, EPISODES = 300, 300
MOST = 26
"""Of 300 experiments without effect: at a true rate of .05 more than 26 pass once in 200 times."""


def without_effect(chance):
    """Episodes of which a third differ, either way with the same probability."""
    pairs = []
    for place in range(EPISODES):
        differ, won = chance.random() < 1 / 3, chance.random() < 0.5
        control, candidate = (float(not won), float(won)) if differ else (1.0, 1.0)
        pairs.append(PairedScore(task=str(place), control=control, candidate=candidate))
    return pairs


def naive_passes(pairs, needed):
    """A test made for one look, asked every ten episodes until it agrees."""
    wins = losses = 0
    for seen, pair in enumerate(pairs, start=1):
        wins += pair.candidate > pair.control
        losses += pair.candidate < pair.control
        enough = needed[wins + losses - 1] if wins + losses else None
        if seen % 10 == 0 and enough is not None and wins >= enough:
            return True
    return False


def test_the_gate_keeps_its_level_where_a_naive_test_does_not():
    """Asked every ten episodes without effect, the naive test passes several times as often."""
    chance = random.Random(20)
    experiments = [without_effect(chance) for _ in range(ROUNDS)]
    # What the gate once decided it keeps, so the last answer is the answer at any earlier look.
    gate = sum(shadow_gate(pairs).decision == "pass" for pairs in experiments)
    needed = naive_needed(160)
    naive = sum(naive_passes(pairs, needed) for pairs in experiments)
    assert gate <= MOST < naive
    assert naive > 4 * max(1, gate)


def naive_needed(pairs):
    """The fewest wins at which the naive test agrees, for each number of pairs."""
    return [
        next((w for w in range(n // 2, n + 1) if one_sided_mid_p(w, n - w) <= LEVEL), None)
        for n in range(1, pairs + 1)
    ]


def ever_reached(needed, share=0.5):
    """The exact probability of reaching the needed wins at some time."""
    going, reached = {0: 1.0}, 0.0
    for wins_to_pass in needed:
        after = {}
        for wins, chance in going.items():
            after[wins] = after.get(wins, 0) + chance * (1 - share)
            after[wins + 1] = after.get(wins + 1, 0) + chance * share
        for wins in list(after):
            if wins_to_pass is not None and wins >= wins_to_pass:
                reached += after.pop(wins)
        going = after
    return reached


def test_the_chance_to_pass_is_that_of_reaching_the_needed_wins():
    """Two ways to work it out agree, and a better candidate has the better chance."""
    for share in (0.5, 0.6, 0.8):
        found = chance_to_pass(share, 120, least=8)
        assert found[-1] == pytest.approx(ever_reached(wins_needed(120, least=8), share), abs=1e-12)
        assert list(found) == sorted(found)
    assert chance_to_pass(0.6, 120)[-1] < chance_to_pass(0.8, 120)[-1]
    assert chance_to_pass(0.5, 0) == ()


def test_the_mid_p_test_is_for_one_look_only():
    """Asked once it keeps its level on the average over numbers of pairs, and nearly at each."""
    errors = []
    for pairs in range(8, 120):
        wins = [w for w in range(pairs + 1) if one_sided_mid_p(w, pairs - w) <= LEVEL]
        errors.append(sum(comb(pairs, w) for w in wins) / 2**pairs)
    assert sum(errors) / len(errors) < LEVEL < max(errors) < 0.074
