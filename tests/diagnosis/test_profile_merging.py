"""Profiles of replicas merge in any order and any number of times (a state-based CRDT)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Attribution, Diagnosis, Episode, Turn, TurnDiagnosis
from agentkit.errors import StoreFormatError, UsageError
from agentkit.messages import AssistantMessage, ToolCall

EPISODES = st.builds(
    lambda name, tool, label, parameter, day: Episode(
        episode_id=name,
        request="?",
        started_at=f"2026-0{day}-01T00:00:00+00:00",
        turns=(
            Turn(message=AssistantMessage(tool_calls=(ToolCall(call_id="1", name=tool),))),
            Turn(message=AssistantMessage(text="done")),
        ),
        diagnosis=Diagnosis(
            label=label,
            turns=(
                TurnDiagnosis(
                    turn=0,
                    label=label,
                    attributions=(
                        Attribution(label=label, tool=tool, parameter=parameter, call_id="1"),
                    )
                    if label != "pass"
                    else (),
                ),
                TurnDiagnosis(turn=1, label="pass"),
            ),
        ),
    ),
    st.sampled_from("abcdefgh"),
    st.sampled_from(["book", "cancel"]),
    st.sampled_from(["pass", "argument_mismatch", "spurious_tool_call", "gold_error"]),
    st.sampled_from(["", "day"]),
    st.integers(1, 9),
)
STEPS = st.lists(EPISODES | st.sampled_from([0.5, 0.9]), max_size=4)
LIVES = st.sampled_from([None, 10.0])


def taken(profile: FailureProfile, steps: list[Episode | float]) -> FailureProfile:
    """The profile after observing episodes and fading by factors."""
    for step in steps:
        if isinstance(step, Episode):
            profile.observe(step)
        else:
            profile.decay(step)
    return profile


@st.composite
def replicas(draw: st.DrawFn) -> list[FailureProfile]:
    """States of up to three replicas, at different times, some of which have merged before."""
    half_life = draw(LIVES)
    states: list[FailureProfile] = []
    for name in ("r1", "r2", "r3"):
        state = taken(FailureProfile(half_life_days=half_life, replica=name), draw(STEPS))
        states.append(FailureProfile.from_json(state.to_json()))
        if draw(st.booleans()):
            state = state.merge(states[0])
        states.append(taken(state, draw(STEPS)))
    return draw(st.permutations(states))


@given(replicas())
def test_merging_is_commutative_associative_and_idempotent(states):
    """The order in which replicas exchange profiles, and how often, makes no difference."""
    a, b, c = states[:3]
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(a) == a
    assert a.merge(b).merge(b) == a.merge(b)


@given(LIVES, STEPS, STEPS)
def test_two_replicas_together_are_as_one_that_saw_everything(half_life, first, second):
    """Merged rates are those of one profile that observed all episodes."""
    first = [step for step in first if isinstance(step, Episode)]
    second = [step for step in second if isinstance(step, Episode)]
    a = taken(FailureProfile(half_life_days=half_life, replica="a"), first)
    b = taken(FailureProfile(half_life_days=half_life, replica="b"), second)
    whole = taken(FailureProfile(half_life_days=half_life, replica="c"), first + second)
    merged = a.merge(b)
    assert [one.tool for one in merged.tools()] == [one.tool for one in whole.tools()]
    for found, expected in zip(merged.tools(), whole.tools(), strict=True):
        assert found.failures == pytest.approx(expected.failures)
        assert found.observed == pytest.approx(expected.observed)
        assert found.examples == expected.examples
    assert merged.label_distribution() == pytest.approx(whole.label_distribution())


@given(replicas())
def test_a_profile_survives_json(states):
    """Writing and reading gives an equal profile under the same name."""
    for state in states:
        read = FailureProfile.from_json(json.loads(json.dumps(state.to_json())))
        assert read == state
        assert read.replica == state.replica
        assert read.to_json() == state.to_json()


def test_profiles_that_fade_at_different_speeds_do_not_merge():
    """Their weights mean different things."""
    with pytest.raises(UsageError, match="half-lives of 7 and 30"):
        FailureProfile(half_life_days=7).merge(FailureProfile(half_life_days=30))


GOOD = {
    "format": 1,
    "half_life_days": 30.0,
    "replica": "r",
    "shards": {
        "r": {
            "updates": 1,
            "landmark": 0.0,
            "latest": 0.0,
            "cells": [["pass", "book", "", -1, 1.0, 1, [[0.0, "e"]]]],
        }
    },
}


def test_a_profile_of_the_first_format_stays_readable():
    """A record as it is written today is read, and can be written on under another name."""
    profile = FailureProfile.from_json(GOOD, replica="s")
    assert profile.tools()[0].observed == 1.0
    assert profile.replica == "s"
    assert profile.to_json() == {**GOOD, "replica": "s"}


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {**GOOD, "format": 2},
        {**GOOD, "half_life_days": -1},
        {**GOOD, "half_life_days": "soon"},
        {**GOOD, "shards": []},
        {**GOOD, "shards": {"r": {"updates": 1}}},
        {**GOOD, "shards": {"r": {**GOOD["shards"]["r"], "landmark": float("nan")}}},
        {**GOOD, "shards": {"r": {**GOOD["shards"]["r"], "cells": [["pass", "book"]]}}},
        {
            **GOOD,
            "shards": {"r": {**GOOD["shards"]["r"], "cells": [["odd", "", "", 0, 1, 1, []]]}},
        },
        {
            **GOOD,
            "shards": {
                "r": {**GOOD["shards"]["r"], "cells": [["pass", "", "", 0, float("inf"), 1, []]]}
            },
        },
    ],
)
def test_a_record_that_is_no_profile_is_refused(broken):
    """A broken or newer record raises and says what it is, instead of counting wrongly."""
    with pytest.raises(StoreFormatError, match="profile"):
        FailureProfile.from_json(broken)
