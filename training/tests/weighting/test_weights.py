"""SEAL's diagnostic weights."""

import math
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Episode
from agentkit.episodes import Diagnosis, FailureLabel, Turn, TurnDiagnosis, Verdict
from agentkit.messages import AssistantMessage
from agentkit_training import Rollout
from agentkit_training.engines.packing import group_advantages, weighted
from agentkit_training.weighting import (
    CLIP,
    PAPER_UTILITIES,
    Weighting,
    diagnostic_weight,
    label_profile,
    with_weights,
)

OUTSIDE = ("checker_error", "gold_error")
ALL = st.sampled_from(get_args(FailureLabel))
LABELS = st.lists(ALL, max_size=6)


def rollout_of(labels, *, passed=False, fault="", reward=0.0, task_id="t"):
    turns = tuple(TurnDiagnosis(turn=at, label=label) for at, label in enumerate(labels))
    episode = Episode(
        episode_id="e",
        request="?",
        turns=tuple(Turn(message=AssistantMessage(text="")) for _ in labels),
        verdict=Verdict(passed=passed),
        diagnosis=Diagnosis(label="pass", turns=turns),
    )
    return Rollout(
        task_id=task_id,
        attempt=0,
        episodes=(episode,),
        sequences=(),
        library_version=0,
        fault=fault,
        reward=reward,
    )


def weighted_rollouts(rollouts, weighting):
    return with_weights(rollouts, weighting.weights(rollouts))


ROLLOUTS = st.lists(
    st.builds(
        rollout_of,
        LABELS,
        passed=st.booleans(),
        fault=st.sampled_from(["", "", "", "broken"]),
        reward=st.floats(-1, 1),
        task_id=st.sampled_from("tu"),
    ),
    min_size=1,
    max_size=8,
)


WEIGHTINGS = st.builds(Weighting, normalised=st.booleans(), scaled=st.booleans())


def mean_weight(rollouts):
    """The mean weight of what is trained on: how much larger they make the advantages."""
    weights = [one.weight for one in rollouts if not one.fault]
    return sum(weights) / len(weights) if weights else 1.0


@given(LABELS)
def test_a_profile_is_the_share_of_each_label(labels):
    """Shares add up to 1, over the turns that say something about the policy (Eq. 10)."""
    counted = [one for one in labels if one not in OUTSIDE]
    profile = label_profile(labels)
    assert profile == {one: counted.count(one) / len(counted) for one in set(counted)}
    assert not counted or math.isclose(sum(profile.values()), 1)


@given(LABELS)
def test_a_weight_is_the_expected_utility(labels):
    """The weight is sum p(l) u(l), clipped (Eq. 11); 1 where nothing is known."""
    wanted = sum(share * PAPER_UTILITIES[one] for one, share in label_profile(labels).items())
    found = diagnostic_weight(labels)
    if label_profile(labels):
        assert found == pytest.approx(min(max(wanted, CLIP[0]), CLIP[1]))
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
    low, high = CLIP
    for one in weighted_rollouts(rollouts, weighting):
        assert one.weight == 1 if one.fault else low <= one.weight <= high


@settings(max_examples=40)
@given(ROLLOUTS, st.booleans())
def test_normalised_weights_keep_the_size_of_the_advantages(rollouts, scaled):
    """The mean of ``|w A|`` is that of ``|A|``, which is the scale of the gradient."""
    sound = [one for one in rollouts if not one.fault]
    sound.sort(key=lambda one: one.task_id)
    groups = [[one.reward for one in sound if one.task_id == task] for task in "tu"]
    sizes = [abs(one) for group in groups for one in group_advantages(group, scaled=scaled)]
    found = weighted_rollouts(sound, Weighting(scaled=scaled))
    total = sum(one.weight * size for one, size in zip(found, sizes, strict=True))
    assert total == pytest.approx(sum(sizes), abs=1e-9)


def test_weighting_alone_raises_the_mean():
    """Without normalising, a batch of failures trains at a higher rate than the plain loss."""
    rollouts = [rollout_of(["argument_mismatch"]), rollout_of(["missing_tool_call", "pass"])]
    assert mean_weight(weighted_rollouts(rollouts, Weighting(normalised=False))) == 1.625
