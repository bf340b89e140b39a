"""CoCoDA's credit for composites."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, strategies as st

from agentkit import Episode, Library
from agentkit.composites.source import compose
from agentkit.episodes import Turn, Verdict
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.library.dag import flat_size
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.testing import primitive_library
from agentkit_training import Rollout
from agentkit_training.rewards import (
    RewardSum,
    rewarded,
    saved_calls,
    saved_calls_reward,
    verdict_reward,
)


def grown() -> Library:
    """The primitives, and composites of 2, 3 and 4 of them."""
    library = primitive_library()
    for text in (
        "def gross(net: float, rate: float) -> float:\n    return add(net, mul(net, rate))",
        "def pair(a: float, b: float) -> float:\n    return add(gross(a, 0.1), b)",
        "def both(a: float, b: float) -> float:\n    return gross(gross(a, 0.1), b)",
    ):
        library = library.with_tools([compose(text, library.tools)])
    return library


LIBRARY = grown()
PRIMITIVES = ("add", "mul", "div", "not_in_the_library")
COMPOSITES = ("gross", "pair", "both")
NAMES = st.lists(st.sampled_from((*PRIMITIVES, *COMPOSITES)), max_size=8)
WEIGHTS = st.floats(0.01, 2)


def rollout_of(names, *, passed=True, status="ok", value=1.0):
    calls = tuple(ToolCall(call_id=str(at), name=name) for at, name in enumerate(names))
    failure = ToolFailure(kind="tool_error", rule="no") if status == "failed" else None
    results = tuple(
        ToolResult(call_id=c.call_id, name=c.name, status=status, value=value, failure=failure)
        for c in calls
    )
    turn = Turn(message=AssistantMessage(text="1", tool_calls=calls), results=results)
    verdict = Verdict(passed=passed, score=float(passed))
    episode = Episode(episode_id="e", request="?", turns=(turn,), verdict=verdict)
    return Rollout(task_id="t", attempt=0, episodes=(episode,), sequences=(), library_version=0)


def shaped(rollout, weight, *, gated=True):
    reward = RewardSum([verdict_reward, saved_calls_reward(LIBRARY, weight=weight, gated=gated)])
    (found,) = rewarded([rollout], reward)
    assert found.fault == ""
    return found


@given(NAMES)
def test_credit_is_the_sum_of_flat_sizes_less_one(names):
    """R_comp adds flat - 1 over the calls (CoCoDA, Eq. 2)."""
    wanted = sum(flat_size(LIBRARY, name) - 1 for name in names if name in LIBRARY)
    assert saved_calls(rollout_of(names), LIBRARY) == wanted


@given(NAMES, st.lists(st.sampled_from(PRIMITIVES), max_size=9), WEIGHTS, st.booleans())
def test_padding_with_primitives_never_pays(names, padding, weight, gated):
    """Primitives beside what is called change nothing, gated or not."""
    plain = shaped(rollout_of(names), weight, gated=gated)
    padded = shaped(rollout_of([*names, *padding]), weight, gated=gated)
    assert plain.reward == padded.reward


@given(
    st.lists(st.sampled_from(PRIMITIVES[:3]), min_size=2, max_size=6),
    st.sampled_from(COMPOSITES),
    WEIGHTS,
    st.data(),
)
def test_lossless_substitution_gains_its_saved_calls(primitives, composite, weight, data):
    """A composite in the place of a block of primitives gains lambda * Phi exactly (theorem 3)."""
    most = min(len(primitives), flat_size(LIBRARY, composite))
    length = data.draw(st.integers(2, most))
    start = data.draw(st.integers(0, len(primitives) - length))
    substituted = [*primitives[:start], composite, *primitives[start + length :]]
    before = shaped(rollout_of(primitives), weight)
    after = shaped(rollout_of(substituted), weight)
    gain = after.reward - before.reward
    assert gain == pytest.approx(weight * (flat_size(LIBRARY, composite) - 1))
    assert gain >= weight * (length - 1) - 1e-9


@given(NAMES, WEIGHTS)
def test_failure_is_credited_only_without_the_gate(names, weight):
    """Gated, only success is credited; both figures are recorded, and one of them counts."""
    rollout = rollout_of(names, passed=False)
    credit = weight * saved_calls(rollout, LIBRARY)
    gated, ungated = shaped(rollout, weight), shaped(rollout, weight, gated=False)
    assert gated.reward == 0
    assert ungated.reward == pytest.approx(credit)
    notes = {"saved_calls_gated": 0.0, "saved_calls_ungated": credit}
    assert gated.reward_notes == ungated.reward_notes == notes


@pytest.mark.parametrize(
    "rollout",
    [
        rollout_of(COMPOSITES, status="failed"),
        rollout_of(COMPOSITES, status="denied"),
        rollout_of(COMPOSITES, value={"error": "no such file"}),
    ],
)
def test_calls_that_did_not_run_earn_nothing(rollout):
    """A composite that was refused or failed has saved no call."""
    assert saved_calls(rollout, LIBRARY) == 0


def test_a_conversation_that_broke_off_is_no_success():
    """Where the user was to say more, what passed so far is not credited."""
    rollout = rollout_of(COMPOSITES)
    labels = EvaluationLabels(task="t", user_turns=2).to_metadata()
    episode = dataclasses.replace(rollout.episodes[0], metadata=labels)
    found = shaped(dataclasses.replace(rollout, episodes=(episode,)), 0.2)
    assert found.reward == 0
