"""Which rollouts evolution and feedback learn from."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, strategies as st

from agentkit import Episode
from agentkit.episodes import Evidence, Turn, Verdict
from agentkit.errors import UsageError
from agentkit.evolution.proposers.streams import (
    is_imperfect as is_imperfect_episode,
    is_perfect as is_perfect_episode,
)
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit_training import Rollout
from agentkit_training.rewards import (
    RewardSum,
    Worth,
    is_imperfect,
    is_perfect,
    rewarded,
    verdict_reward,
)

VERDICTS = st.none() | st.builds(
    Verdict,
    passed=st.booleans(),
    score=st.sampled_from([0.0, 0.5, 1.0]),
    fault=st.sampled_from([None, None, "gold_error"]),
    evidence=st.sampled_from([(), (Evidence(kind="other", message="no"),)]),
    metrics=st.sampled_from([{}, {"perfect_match": 1.0}, {"perfect_match": 0.0}]),
)
FAILED = ToolResult(
    call_id="1", name="f", status="failed", failure=ToolFailure(kind="tool_error", rule="no")
)
RESULTS = st.sampled_from([(), (ToolResult(call_id="1", name="f", status="ok"),), (FAILED,)])


def episode_of(verdict, results=()):
    calls = tuple(ToolCall(call_id=one.call_id, name=one.name) for one in results)
    turn = Turn(message=AssistantMessage(tool_calls=calls), results=results)
    return Episode(episode_id="e", request="?", turns=(turn,), verdict=verdict)


EPISODES = st.lists(st.builds(episode_of, VERDICTS, RESULTS), min_size=1, max_size=3)


def rollout_of(episodes, **parts):
    return Rollout(
        task_id="t", attempt=0, episodes=tuple(episodes), sequences=(), library_version=0, **parts
    )


@given(EPISODES, st.sampled_from(["", "broken"]))
def test_each_judged_rollout_takes_one_path(episodes, fault):
    """A rollout is perfect, or imperfect, or says nothing; never two of them."""
    (rollout,) = rewarded([rollout_of(episodes, fault=fault)], verdict_reward)
    judged = [one for one in episodes if one.verdict is not None and one.verdict.fault is None]
    assert is_perfect(rollout) + is_imperfect(rollout) == (bool(judged) and not fault)


@given(st.builds(episode_of, VERDICTS, RESULTS))
def test_the_gates_are_those_of_evolution(episode):
    """For one episode and a reward of its verdict, the gates agree with ``agentkit.evolution``."""
    (rollout,) = rewarded([rollout_of([episode])], verdict_reward)
    assert is_perfect(rollout) == is_perfect_episode(episode)
    assert is_imperfect(rollout) == is_imperfect_episode(episode)


@pytest.mark.parametrize("reward", [0.0, 0.999999, 1.000001, 2.0])
def test_only_a_reward_of_one_exactly_evolves(reward):
    """The gate is r = 1, with no tolerance on either side."""
    episode = episode_of(Verdict(passed=True, score=1.0))
    (found,) = rewarded([rollout_of([episode])], lambda _: {"own": reward})
    assert not is_perfect(found)
    assert is_imperfect(found)


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
