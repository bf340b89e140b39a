"""Figures of a ranking, percentiles and intervals."""

import math
import random

import pytest
from hypothesis import given, strategies as st

from agentkit_bench.retrieval.scores import (
    mean_interval,
    percentile,
    recall_at,
    reciprocal_rank,
)

keys = st.sampled_from("abcdefgh")
rankings = st.lists(keys, unique=True)
golds = st.frozensets(keys)


def test_recall_and_rank_by_hand():
    """Two of three within four; the first right one is second."""
    ranked = ["x", "a", "y", "b", "c"]
    assert recall_at({"a", "b", "c"}, ranked, 4) == pytest.approx(2 / 3)
    assert reciprocal_rank({"a", "b"}, ranked) == 0.5
    assert reciprocal_rank({"z"}, ranked) == 0.0


@given(golds, rankings, st.integers(0, 8))
def test_recall_grows_with_depth(gold, ranked, depth):
    """A longer list never finds less, and no list finds more than there is."""
    now, later = recall_at(gold, ranked, depth), recall_at(gold, ranked, depth + 1)
    assert 0 <= now <= later <= 1


@given(rankings)
def test_nothing_known_is_nothing_found(ranked):
    """Without known gold all figures are 0."""
    assert recall_at(frozenset(), ranked, 5) == reciprocal_rank(frozenset(), ranked) == 0


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values(values, share):
    """No value is made up, and at least the share of values lies at or below it."""
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= math.floor(share * len(values))


def test_the_mean_interval_covers_as_often_as_it_says():
    """In 400 samples of known mean the interval misses it in about one of twenty."""
    chance = random.Random(5)
    missed = 0
    for _ in range(400):
        found = mean_interval([float(chance.random() < 0.8) for _ in range(200)])
        missed += not found.low <= 0.8 <= found.high
    assert 8 <= missed <= 36


def test_too_few_values_have_no_width():
    """One value says nothing about its spread."""
    assert mean_interval([0.5]).low == mean_interval([0.5]).high == 0.5
    assert mean_interval([]).value == 0.0
