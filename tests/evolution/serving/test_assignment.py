"""Sessions are divided by a hash: exactly, always alike, and so that more is only ever more."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.serving import arm, bucket, experiment_for

KEYS = [f"session-{number}" for number in range(5_000)]
shares = st.floats(min_value=0, max_value=1)
ids = st.text(max_size=40)


@dataclass(frozen=True)
class Named:
    """As much of an experiment as is looked at."""

    proposal_id: str


def candidates(proposal, share):
    return {key for key in KEYS if arm(key, proposal, share) == "candidate"}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9, 1.0])
def test_the_share_is_met(share):
    """Over many sessions the candidate's part lies within four standard errors of its share."""
    expected = share * len(KEYS)
    allowed = 4 * (share * (1 - share) * len(KEYS)) ** 0.5

    assert abs(len(candidates("p", share)) - expected) <= allowed


@given(ids, ids, shares, shares)
def test_raising_the_share_only_adds_sessions(key, proposal, one, other):
    """Nobody who has the candidate loses it when more get it."""
    low, high = sorted((one, other))

    assert arm(key, proposal, high) == "candidate" or arm(key, proposal, low) == "control"


@given(st.text(max_size=20), ids, ids)
def test_the_place_is_documented(purpose, key, proposal):
    """Anybody can work it out again: SHA-256 over the list as JSON, its first 53 bits."""
    text = json.dumps([purpose, key, proposal]).encode("ascii")
    bits = int(hashlib.sha256(text).hexdigest(), 16) >> (256 - 53)

    assert bucket(purpose, key, proposal) == bits / 2**53


def test_a_session_takes_part_in_one_experiment():
    """Three experiments get a third of the sessions each."""
    three = [Named(name) for name in "pqr"]
    counts = Counter(experiment_for(key, three).proposal_id for key in KEYS)

    assert all(
        abs(count - len(KEYS) / 3) < 4 * (len(KEYS) * 2 / 9) ** 0.5 for count in counts.values()
    )


@given(ids, st.lists(ids, unique=True, max_size=6), ids)
def test_an_experiment_that_begins_takes_sessions_to_itself_only(key, names, new):
    """No session is moved from one running experiment to another."""
    before = experiment_for(key, [Named(name) for name in names])
    after = experiment_for(key, [Named(name) for name in [*names, new]])

    assert after in {before, Named(new)}
