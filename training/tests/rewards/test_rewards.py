"""Free-text fields, rewards of users, and credit for composites (CoCoDA)."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Episode, Library
from agentkit.composites.source import compose
from agentkit.episodes import Turn, Verdict
from agentkit.errors import UsageError
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.library.dag import flat_size
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.testing import primitive_library
from agentkit_training import Rollout
from agentkit_training.rewards import (
    RewardSum,
    Worth,
    field_kind,
    rewarded,
    saved_calls,
    saved_calls_reward,
    texts_agree,
    verdict_reward,
)


@pytest.mark.parametrize(
    ("name", "schema", "kind"),
    [
        ("query", {"type": "string"}, "text"),
        ("query", {"type": ["string", "null"]}, "text"),
        ("query", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ("city", {"type": "string"}, "text"),
        ("query", {"type": "string", "enum": ["a"]}, "exact"),
        ("query", {"type": "string", "format": "date"}, "exact"),
        ("query", {"type": "string", "pattern": "^a"}, "exact"),
        ("departure_date", {"type": "string"}, "exact"),
        ("user_id", {"type": "string"}, "exact"),
        ("website_url", {"type": "string"}, "exact"),
        ("currency", {"type": "string"}, "exact"),
        ("n", {"type": "integer"}, "exact"),
        ("flag", {"type": "boolean"}, "exact"),
        ("anything", {}, "exact"),
        ("anything", {"type": ["string", "integer"]}, "exact"),
        ("anything", True, "exact"),
        ("fields", {"type": "array", "items": {"type": "string"}}, "selection"),
        ("fields", {"type": "array", "uniqueItems": True}, "selection"),
        ("point", {"type": "array", "items": {"type": "number"}}, "exact"),
        ("address", {"type": "object"}, "exact"),
        ("query", {"anyOf": "broken"}, "exact"),
        ("query", {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, "exact"),
    ],
)
def test_the_kind_of_a_field_follows_from_its_definition(name, schema, kind):
    """Plain strings are free unless their name says otherwise; doubt means exact."""
    assert field_kind(name, schema) == kind


def test_a_description_can_make_a_text_structured():
    """The author's words count like the name."""
    assert field_kind("when", {"type": "string"}, description="Day as YYYY-MM-DD.") == "exact"


@pytest.mark.parametrize(
    ("given_text", "gold", "agree"),
    [
        ("Passat", "Passat380", True),
        ("passat 380", "Passat 380", True),
        ("2023 used cars", "used 2023 vehicles", True),
        ("New York", "New York City", True),
        ("restaraunt", "restaurant", True),
        ("\uff22\uff2d\uff37 \uff38\uff13", "BMW X3", True),
        ("BMW X3", "BMW X5", False),
        ("San Diego", "San Francisco", False),
        ("C", "C#", False),
        ("CO", "Colorado", False),
        ("x + y", "x - y", False),
        ("67890", "67890XYZ", False),
        ("2024-03-01", "2024-03-02", False),
        ("a@example.org", "b@example.org", False),
        ("$100", "$1000", False),
        ("", "anything", False),
        ("!!!", "anything", False),
    ],
)
def test_texts_agree_when_they_say_about_the_same(given_text, gold, agree):
    """Other words, spelling and case may differ; numbers, dates, codes and formulas may not."""
    assert texts_agree(given_text, gold) is agree


@given(one=st.text(max_size=40), other=st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_texts_can_be_compared(one, other):
    """Whatever the characters, there is an answer, and a text agrees with itself."""
    assert texts_agree(one, other) in {True, False}
    assert texts_agree(one, one)


def test_long_texts_are_compared_by_words_alone():
    """Texts beyond a hundred characters end quickly, whatever they hold."""
    assert not texts_agree("a" * 200_000, "b" * 200_000)
    assert not texts_agree("xab" * 10_000, "yba" * 10_000)
    assert texts_agree("word " * 50_000 + "end", "word " * 50_000)


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


def rollout_with_calls(names, *, passed=True, status="ok", value=1.0):
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
    assert saved_calls(rollout_with_calls(names), LIBRARY) == wanted


@given(NAMES, st.lists(st.sampled_from(PRIMITIVES), max_size=9), WEIGHTS, st.booleans())
def test_padding_with_primitives_never_pays(names, padding, weight, gated):
    """Primitives beside what is called change nothing, gated or not."""
    plain = shaped(rollout_with_calls(names), weight, gated=gated)
    padded = shaped(rollout_with_calls([*names, *padding]), weight, gated=gated)
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
    before = shaped(rollout_with_calls(primitives), weight)
    after = shaped(rollout_with_calls(substituted), weight)
    gain = after.reward - before.reward
    assert gain == pytest.approx(weight * (flat_size(LIBRARY, composite) - 1))
    assert gain >= weight * (length - 1) - 1e-9


@given(NAMES, WEIGHTS)
def test_failure_is_credited_only_without_the_gate(names, weight):
    """Gated, only success is credited; both figures are recorded, and one of them counts."""
    rollout = rollout_with_calls(names, passed=False)
    credit = weight * saved_calls(rollout, LIBRARY)
    gated, ungated = shaped(rollout, weight), shaped(rollout, weight, gated=False)
    assert gated.reward == 0
    assert ungated.reward == pytest.approx(credit)
    notes = {"saved_calls_gated": 0.0, "saved_calls_ungated": credit}
    assert gated.reward_notes == ungated.reward_notes == notes


@pytest.mark.parametrize(
    "rollout",
    [
        rollout_with_calls(COMPOSITES, status="failed"),
        rollout_with_calls(COMPOSITES, status="denied"),
        rollout_with_calls(COMPOSITES, value={"error": "no such file"}),
    ],
)
def test_calls_that_did_not_run_earn_nothing(rollout):
    """A composite that was refused or failed has saved no call."""
    assert saved_calls(rollout, LIBRARY) == 0


def test_a_conversation_that_broke_off_is_no_success():
    """Where the user was to say more, what passed so far is not credited."""
    rollout = rollout_with_calls(COMPOSITES)
    labels = EvaluationLabels(task="t", user_turns=2).to_metadata()
    episode = dataclasses.replace(rollout.episodes[0], metadata=labels)
    found = shaped(dataclasses.replace(rollout, episodes=(episode,)), 0.2)
    assert found.reward == 0
