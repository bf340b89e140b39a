"""Hints name what to change: the call as the model sees it, and the text that misled it."""

from __future__ import annotations

import pytest

from agentkit.diagnosis import diagnose
from agentkit.episodes import Evidence, Verdict
from agentkit.messages import ToolCall


def wrong(parameter, kind="wrong_value"):
    return Evidence(kind=kind, message="gold", call_id="c1", tool="set_lamp", parameter=parameter)


def hint_of(library, episode, *found):
    verdict = Verdict(passed=False, evidence=found)
    return diagnose(episode, library, verdict).turns[0].hint


def test_all_arguments_that_are_wrong_in_one_way_are_named(run, call, library):
    """One hint covers the wrong values of a call; what is wrong otherwise has its own words."""
    episode = run([call("set_lamp", room="kitchen", state="off", level=3)], "done")
    hint = hint_of(
        library, episode, wrong("state"), wrong("level"), wrong("room", "unexpected_argument")
    )
    assert hint.startswith("Take `state`, `level` of set_lamp")
    assert "`room`" not in hint


def test_an_argument_that_the_model_could_not_see_is_not_named(run, call, library):
    """A name that stands neither in the schema nor in the call could only come from the gold."""
    episode = run([call("set_lamp", room="kitchen", state="off")], "done")
    hint = hint_of(library, episode, wrong("dimmer"))
    assert hint.startswith("Take the arguments of set_lamp")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ('{"room": "kitchen", "state": "o', "The call of set_lamp ends in the middle"),
        ('{"room": "kitchen", "state":', "The call of set_lamp ends in the middle"),
        ('{"rooms": ["a", "b", ', "The call of set_lamp ends in the middle"),
        ("{room: kitchen}", "Write the arguments of set_lamp as one JSON object"),
        ("", "Write the arguments of set_lamp as one JSON object"),
        ("[" * 100_000, "Write the arguments of set_lamp as one JSON object"),
        ('{"level": ' + "9" * 5000 + "} x", "Write the arguments of set_lamp as one JSON object"),
    ],
)
def test_a_call_that_broke_off_is_told_from_one_that_is_no_json(run, library, text, start):
    """Arguments that end in the middle ran into a limit; other broken ones have a wrong form."""
    cut = ToolCall(call_id="c1", name="set_lamp", malformed=text)
    assert hint_of(library, run([cut], "done")).startswith(start)
