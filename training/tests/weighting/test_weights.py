"""SEAL's diagnostic weights."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Episode
from agentkit.episodes import Diagnosis, FailureLabel, Turn, TurnDiagnosis, Verdict
from agentkit.errors import UsageError
from agentkit.messages import AssistantMessage
from agentkit_training import Rollout
from agentkit_training.engines.packing import group_advantages, weighted
from agentkit_training.errors import CheckpointError
from agentkit_training.weighting import (
    CLIP,
    PAPER_UTILITIES,
    DynamicWeighting,
    FixedWeighting,
    MeanNormalised,
    diagnostic_weight,
    label_profile,
    mean_weight,
    weighted_rollouts,
)

OUTSIDE = ("checker_error", "gold_error")
ALL = st.sampled_from(get_args(FailureLabel))
LABELS = st.lists(ALL, max_size=6)
CLIPS = st.tuples(st.floats(0.05, 1), st.floats(1, 5))


def rollout_of(labels, *, passed=False, fault="", reward=0.0):
    turns = tuple(TurnDiagnosis(turn=at, label=label) for at, label in enumerate(labels))
    episode = Episode(
        episode_id="e",
        request="?",
        turns=tuple(Turn(message=AssistantMessage(text="")) for _ in labels),
        verdict=Verdict(passed=passed),
        diagnosis=Diagnosis(label="pass", turns=turns),
    )
    return Rollout(
        task_id="t",
        attempt=0,
        episodes=(episode,),
        sequences=(),
        library_version=0,
        fault=fault,
        reward=reward,
    )


ROLLOUTS = st.lists(
    st.builds(
        rollout_of,
        LABELS,
        passed=st.booleans(),
        fault=st.sampled_from(["", "", "", "broken"]),
        reward=st.floats(-1, 1),
    ),
    min_size=1,
    max_size=8,
)


def learned(rounds):
    weighting = DynamicWeighting()
    for rollouts in rounds:
        weighting = weighting.observed(rollouts)
    return weighting


WEIGHTINGS = st.one_of(
    st.builds(FixedWeighting, clip=CLIPS),
    st.builds(learned, st.lists(ROLLOUTS, max_size=3)),
    st.builds(MeanNormalised, inner=st.builds(FixedWeighting, clip=CLIPS)),
    st.builds(MeanNormalised, inner=st.builds(learned, st.lists(ROLLOUTS, max_size=2))),
)


@given(LABELS)
def test_a_profile_is_the_share_of_each_label(labels):
    """Shares add up to 1, over the turns that say something about the policy (Eq. 10)."""
    counted = [one for one in labels if one not in OUTSIDE]
    profile = label_profile(labels)
    assert profile == {one: counted.count(one) / len(counted) for one in set(counted)}
    assert not counted or math.isclose(sum(profile.values()), 1)


@given(LABELS, CLIPS)
def test_a_weight_is_the_expected_utility(labels, clip):
    """The weight is sum p(l) u(l), clipped (Eq. 11); 1 where nothing is known."""
    wanted = sum(share * PAPER_UTILITIES[one] for one, share in label_profile(labels).items())
    found = diagnostic_weight(labels, clip=clip)
    if label_profile(labels):
        assert found == pytest.approx(min(max(wanted, clip[0]), clip[1]))
    else:
        assert found == 1


@settings(max_examples=40)
@given(ROLLOUTS, WEIGHTINGS)
def test_no_advantage_changes_its_sign(rollouts, weighting):
    """Every weighting keeps the sign of every advantage, and so the verifier's ranking."""
    found = weighted_rollouts(rollouts, weighting)
    plain = group_advantages([one.reward for one in rollouts])
    scaled = weighted(plain, [one.weight for one in found])
    assert [math.copysign(1, one) for one in plain] == [math.copysign(1, one) for one in scaled]
    assert [one == 0 for one in plain] == [one == 0 for one in scaled]


@settings(max_examples=40)
@given(ROLLOUTS, WEIGHTINGS)
def test_weights_stay_within_their_bounds(rollouts, weighting):
    """No weight leaves the clip, and a rollout with a fault keeps 1."""
    low, high = weighting.clip
    for one in weighted_rollouts(rollouts, weighting):
        assert one.weight == 1 if one.fault else low <= one.weight <= high


@settings(max_examples=40)
@given(ROLLOUTS, WEIGHTINGS, CLIPS)
def test_normalised_weights_have_a_mean_of_one(rollouts, weighting, clip):
    """Normalising takes out the factor on the learning rate, and stays within the bounds."""
    found = weighted_rollouts(rollouts, MeanNormalised(inner=weighting, clip=clip))
    assert mean_weight(found) == pytest.approx(1, abs=1e-9)
    assert all(clip[0] <= one.weight <= clip[1] for one in found if not one.fault)


def test_weighting_alone_raises_the_mean():
    """Without normalising, a batch of failures trains at a higher rate than the plain loss."""
    rollouts = [rollout_of(["argument_mismatch"]), rollout_of(["missing_tool_call", "pass"])]
    assert mean_weight(weighted_rollouts(rollouts, FixedWeighting())) == 1.625


@settings(max_examples=40)
@given(st.lists(ROLLOUTS, max_size=4))
def test_learned_utilities_stay_between_base_and_bound(rounds):
    """A utility never falls below its base nor leaves the clip, and passing stays at 1."""
    utilities = learned(rounds).utilities
    assert utilities["pass"] == utilities["unjudged"] == 1
    for label, base in PAPER_UTILITIES.items():
        assert base - 1e-9 <= utilities[label] <= CLIP[1] + 1e-9


def test_a_frequent_failure_grows_by_the_released_rule():
    """One round moves the utility by beta towards base (1 + prevalence * stagnation)."""
    rollouts = [rollout_of(["response_mismatch"]) for _ in range(32)]
    rollouts += [rollout_of(["pass"], passed=True) for _ in range(32)]
    found = DynamicWeighting().observed(rollouts).utilities["response_mismatch"]
    assert found == pytest.approx(0.75 * 0.9 + 0.25 * 0.9 * 1.5)


def test_a_failure_that_is_gone_comes_back_to_its_base():
    """Once a label no longer comes up, its utility falls back to the base."""
    weighting = learned([[rollout_of(["response_mismatch"] * 6) for _ in range(8)]] * 4)
    assert weighting.utilities["response_mismatch"] > 1.2
    for _ in range(40):
        weighting = weighting.observed([rollout_of(["pass"], passed=True)])
    assert weighting.utilities["response_mismatch"] == pytest.approx(0.9, abs=1e-3)


@settings(max_examples=40)
@given(st.lists(ROLLOUTS, max_size=3), ROLLOUTS)
def test_a_restored_weighting_goes_on_as_before(rounds, rollouts):
    """What a checkpoint keeps gives the same weights, and the same next round."""
    first = MeanNormalised(inner=learned(rounds))
    second = MeanNormalised(inner=DynamicWeighting()).restored(first.state())
    assert second == first
    assert second.observed(rollouts) == first.observed(rollouts)


@pytest.mark.parametrize("state", [{}, {"utilities": {"odd": 1.0}}, {"utilities": {"pass": -1}}])
def test_a_foreign_state_is_refused(state):
    """A checkpoint of another weighting is told from one of this."""
    with pytest.raises(CheckpointError, match="no utilities of labels"):
        DynamicWeighting().restored(state)


@pytest.mark.parametrize("clip", [(0, 2), (-1, 1), (2, 1), (0.5, math.inf)])
def test_bounds_that_lose_the_sign_are_refused(clip):
    """A weight of 0 or less is never possible."""
    with pytest.raises(UsageError, match="positive"):
        FixedWeighting(clip=clip)
