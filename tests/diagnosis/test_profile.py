"""Counts by tool and parameter, and profiles that merge."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from agentkit.diagnosis import FailureProfile
from agentkit.diagnosis.shard import MAX_CELLS, CellKey, Shard
from agentkit.episodes import (
    Attribution,
    Diagnosis,
    Episode,
    Recovery,
    Turn,
    TurnDiagnosis,
    Verdict,
)
from agentkit.errors import StoreFormatError, UsageError
from agentkit.messages import AssistantMessage, ToolCall

TODAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


def episode(name="e", *, tool="book", label="pass", parameter="", days_ago=0.0, calls=1, **more):
    """An episode of one turn with calls of one tool, the first of them labelled."""
    made = tuple(ToolCall(call_id=str(at), name=tool) for at in range(calls))
    about = Attribution(label=label, tool=tool, parameter=parameter, call_id="0")
    failed = label not in {"pass", "unjudged"}
    turn = TurnDiagnosis(
        turn=0, label=label, labels=(label,), attributions=(about,) if failed else ()
    )
    options = {"verdict": Verdict(passed=not failed)} | more
    return Episode(
        episode_id=name,
        request="?",
        turns=(Turn(message=AssistantMessage(tool_calls=made)),),
        started_at=(TODAY - timedelta(days=days_ago)).isoformat(),
        diagnosis=Diagnosis(label=label, turns=(turn,)),
        **options,
    )


def profile_of(*episodes, half_life_days=None):
    profile = FailureProfile(half_life_days=half_life_days, replica="r")
    profile.observe_all(episodes)
    return profile


def rates(found):
    return [(one.tool, one.parameter, one.failures, one.observed) for one in found]


def test_passes_are_the_denominator():
    """A tool's rate is over all of its calls, those that nothing was wrong with included."""
    profile = profile_of(
        episode(label="argument_mismatch", parameter="day", calls=3), episode(calls=2)
    )
    assert rates(profile.tools()) == [("book", "", 1.0, 5.0)]
    assert rates(profile.parameters()) == [("book", "day", 1.0, 5.0)]
    [tool] = profile.tools()
    assert (tool.rate, dict(tool.labels)) == (0.2, {"argument_mismatch": 1.0})
    assert tool.lowest < tool.rate < tool.highest


def test_a_call_with_two_wrong_arguments_is_one_failure():
    """It counts once for the tool, and once for each parameter."""
    one = episode(label="argument_mismatch", parameter="day")
    [turn] = one.diagnosis.turns
    other = Attribution(label="argument_mismatch", tool="book", parameter="seats", call_id="0")
    both = TurnDiagnosis(turn=0, label=turn.label, attributions=(*turn.attributions, other))
    profile = FailureProfile()
    profile.observe(one, Diagnosis(label=turn.label, turns=(both,)))
    assert rates(profile.tools()) == [("book", "", 1.0, 1.0)]
    assert rates(profile.parameters()) == [("book", "day", 1.0, 1.0), ("book", "seats", 1.0, 1.0)]


def test_a_missing_call_counts_for_the_tool_that_was_due():
    """It is an occasion at which the tool failed to be called."""
    about = Attribution(label="missing_tool_call", tool="cancel")
    turn = TurnDiagnosis(turn=0, label="missing_tool_call", attributions=(about,))
    profile = FailureProfile()
    profile.observe(episode(), Diagnosis(label="missing_tool_call", turns=(turn,)))
    assert rates(profile.tools()) == [("book", "", 0.0, 1.0), ("cancel", "", 1.0, 1.0)]


def test_a_call_whose_tool_broke_is_observed_and_held_against_nobody():
    """A failed call without a label is unjudged: no pass, and no failure of the model."""
    broke = Recovery(
        turn=0, call_id="0", tool="book", kind="timeout", outcome="abandoned", episode="e"
    )
    one = episode()
    profile = FailureProfile()
    profile.observe(one, Diagnosis(label="pass", turns=one.diagnosis.turns, recoveries=(broke,)))
    [cell] = [key for key in profile.to_json()["shards"][profile.replica]["cells"] if key[1]]
    assert cell[:2] == ["unjudged", "book"]
    assert rates(profile.tools()) == [("book", "", 0.0, 1.0)]


def test_a_repeated_turn_of_a_resumed_run_is_counted_once():
    """The calls that waited were counted in the episode that waited."""
    assert profile_of(episode(resumes="d")).tools() == ()
    assert rates(profile_of(episode(resumes="d", label="argument_mismatch")).tools()) == [
        ("book", "", 1.0, 1.0)
    ]


def test_one_failure_of_one_call_is_not_the_worst():
    """The worst tool is the one whose failures are borne out best."""
    often = [episode(f"o{at}", tool="often", label="argument_mismatch") for at in range(15)]
    often += [episode(f"p{at}", tool="often") for at in range(25)]
    once = episode("x", tool="once", label="argument_mismatch")
    assert [one.tool for one in profile_of(once, *often).worst_tools()] == ["often", "once"]
    assert [one.tool for one in profile_of(once, *often).worst_tools(1)] == ["often"]


def test_labels_are_counted_by_turn_and_position():
    """The distribution is over turns; the positions keep their denominators."""
    turns = [
        TurnDiagnosis(turn=0, label="pass"),
        TurnDiagnosis(turn=1, label="argument_mismatch"),
        TurnDiagnosis(turn=40, label="pass"),
        TurnDiagnosis(turn=-2, label="pass"),
    ]
    long = Episode(
        episode_id="e",
        request="?",
        turns=tuple(Turn(message=AssistantMessage(text="…")) for _ in range(41)),
    )
    profile = FailureProfile()
    profile.observe(long, Diagnosis(label="argument_mismatch", turns=tuple(turns)))
    assert profile.label_distribution() == pytest.approx(
        {"pass": 2 / 3, "argument_mismatch": 1 / 3}
    )
    assert [(one.position, one.observed, one.labels) for one in profile.by_position()] == [
        (0, 1.0, {"pass": 1.0}),
        (1, 1.0, {"argument_mismatch": 1.0}),
        (31, 1.0, {"pass": 1.0}),
    ]


def test_an_observation_loses_half_its_weight_in_a_half_life():
    """Weights go by the time between episodes, in whatever order these are observed."""
    new = episode("new", label="argument_mismatch")
    old = episode("old", label="argument_mismatch", days_ago=10)
    for pair in ((new, old), (old, new)):
        [tool] = profile_of(*pair, half_life_days=10).tools()
        assert tool.failures == pytest.approx(1.5)


def test_decay_fades_what_was_observed_before():
    """After a round of training older observations weigh less than those of the next round."""
    profile = profile_of(episode(label="argument_mismatch"))
    profile.decay(0.25)
    profile.observe(episode("f"))
    [tool] = profile.tools()
    assert (tool.failures, tool.observed) == (0.25, 1.25)


def test_names_that_a_model_makes_up_can_not_fill_the_memory():
    """Beyond the bound the lightest cells are dropped, and long names are cut."""
    shard = Shard()
    for at in range(0, MAX_CELLS + 2000, 2000):
        keys = [CellKey("invalid_tool_call", f"made_up_{at + n}") for n in range(2000)]
        keys += [CellKey("invalid_tool_call", "often")]
        shard.observe(keys, at=0.0, episode_id="e", half_life=None)
    assert len(shard.cells) <= MAX_CELLS
    assert shard.cells[CellKey("invalid_tool_call", "often")].count > 5
    [tool] = profile_of(episode(tool="x" * 10_000)).tools()
    assert len(tool.tool) == 200


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


def test_two_processes_under_one_name_still_agree():
    """Where the rule of one name each was broken, all replicas settle on the same state."""
    left, right = FailureProfile(replica="r"), FailureProfile(replica="r")
    for profile, tool in ((left, "book"), (right, "cancel")):
        call = ToolCall(call_id="1", name=tool)
        turn = Turn(message=AssistantMessage(tool_calls=(call,)))
        passed = Diagnosis(label="pass", turns=(TurnDiagnosis(turn=0, label="pass"),))
        profile.observe(Episode(episode_id="e", request="?", turns=(turn,)), passed)
    assert left.merge(right) == right.merge(left)
