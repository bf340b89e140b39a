"""Counts by tool, parameter and position, which fade, and are kept."""

from datetime import UTC, datetime, timedelta

import pytest

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import (
    Attribution,
    Diagnosis,
    Episode,
    Recovery,
    Turn,
    TurnDiagnosis,
    Verdict,
)
from agentkit.errors import StoreFormatError
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
    profile = FailureProfile(half_life_days=half_life_days, name="r")
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


def test_a_call_whose_tool_broke_is_observed_and_held_against_nobody():
    """A failed call without a label is unjudged: no pass, and no failure of the model."""
    broke = Recovery(
        turn=0, call_id="0", tool="book", kind="timeout", outcome="abandoned", episode="e"
    )
    one = episode()
    profile = FailureProfile()
    profile.observe(one, Diagnosis(label="pass", turns=one.diagnosis.turns, recoveries=(broke,)))
    [cell] = [key for key in profile.to_json()["shards"][profile.name]["cells"] if key[1]]
    assert cell[:2] == ["unjudged", "book"]
    assert rates(profile.tools()) == [("book", "", 0.0, 1.0)]


def test_one_failure_of_one_call_is_not_the_worst():
    """The worst tool is the one whose failures are borne out best."""
    often = [episode(f"o{at}", tool="often", label="argument_mismatch") for at in range(15)]
    often += [episode(f"p{at}", tool="often") for at in range(25)]
    once = episode("x", tool="once", label="argument_mismatch")
    assert [one.tool for one in profile_of(once, *often).worst_tools()] == ["often", "once"]
    assert [one.tool for one in profile_of(once, *often).worst_tools(1)] == ["often"]


def test_labels_are_counted_by_turn():
    """The distribution is over turns."""
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
    assert profile.observed == 3.0


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


def test_profiles_of_several_replicas_are_added_up():
    """An earlier release kept a shard for each replica; the older ones weigh less."""
    day = 86_400.0
    shard = {**GOOD["shards"]["r"], "landmark": 30 * day, "latest": 30 * day}
    for shards in ({**GOOD["shards"], "s": shard}, {"s": shard, **GOOD["shards"]}):
        read = FailureProfile.from_json({**GOOD, "shards": shards})
        assert read.tools()[0].observed == pytest.approx(1.5)
        assert read.to_json()["shards"]["r"]["updates"] == 2


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
        {**GOOD, "shards": {"r": {**GOOD["shards"]["r"], "cells": [["odd", "", "", 0, 1, 1, []]]}}},
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
