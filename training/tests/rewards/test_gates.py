"""Rewards of users: parts add up, notes do not count, and what breaks makes a fault."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit_training import Rollout
from agentkit_training.rewards import RewardSum, Worth, rewarded, verdict_reward


def rollout_of(episodes, **parts):
    return Rollout(
        task_id="t", attempt=0, episodes=tuple(episodes), sequences=(), library_version=0, **parts
    )


def test_notes_do_not_count():
    """What a reward function only records is in the rollout and not in its reward."""

    def noting(rollout):
        return Worth(parts={"length": 0.25}, noted={"words": 12})

    (found,) = rewarded([rollout_of([])], RewardSum([noting, noting, verdict_reward]))
    assert found.reward == 0.5
    assert found.reward_parts == {"length": 0.5, "passed": 0.0}
    assert found.reward_notes == {"words": 24.0}


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(-2, 2)), min_size=1))
def test_a_sum_adds_what_its_rewards_give(several):
    """The reward of a sum is the sum of the rewards."""
    combined = RewardSum([lambda _, parts=parts: parts for parts in several])
    (found,) = rewarded([rollout_of([])], combined)
    assert found.reward == pytest.approx(sum(sum(parts.values()) for parts in several))


def test_a_reward_that_is_no_number_is_a_fault():
    """Infinite rewards would move the mean of their group; their rollouts are not trained on."""
    (found,) = rewarded([rollout_of([])], lambda _: {"own": float("inf")})
    assert found.fault == "the reward is inf"
    assert dataclasses.replace(found, fault="").reward == 0


def test_a_sum_of_nothing_is_refused():
    """A sum needs a reward."""
    with pytest.raises(UsageError, match="at least one"):
        RewardSum([])
