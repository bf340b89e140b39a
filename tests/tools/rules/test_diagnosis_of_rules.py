"""A call that a learned rule refused is an argument that does not fit, with its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, Library, tool
from agentkit.diagnosis import FailureProfile, diagnose
from agentkit.episodes import Turn
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools.rules import Between, CallBefore, Condition, OneOf, Requires


@tool
def reserve(city: str, nights: int, guest: str = "", room: str = "") -> str:
    """Reserve a room."""
    return "reserved"


def ruled(*rules):
    """The tool with rules, in a library."""
    specification = replace(reserve.definition.specification, rules=rules)
    return Library(
        [reserve.with_definition(replace(reserve.definition, specification=specification))]
    )


def diagnosed(library, **arguments):
    """The diagnosis of a run with one call."""
    call = ToolCall(call_id="c1", name="reserve", arguments=arguments)
    run = Agent(ScriptedModel([[call], "done"]), library=library).run_sync("go")
    return run.episode, diagnose(run.episode, library, None)


@pytest.mark.parametrize(
    ("rule", "parameter", "kind"),
    [
        (OneOf(parameter="city", values=("Bergen",)), "city", "wrong_value"),
        (Between(parameter="nights", maximum=3), "nights", "wrong_value"),
        (Requires(parameter="city", others=("guest",)), "guest", "missing_argument"),
        (Condition(expression="nights < 3 or room", words="say which room"), "nights", "wrong_value"),
        (CallBefore(tool="log_in"), "", "call_failed"),
    ],
)  # fmt: skip
def test_label_parameter_and_evidence(rule, parameter, kind) -> None:
    """Each kind of rule blames the parameter that it is about."""
    _, diagnosis = diagnosed(ruled(rule), city="Oslo", nights=5)
    (turn, *_) = diagnosis.turns
    assert turn.label == "argument_mismatch"
    assert turn.parameter == parameter
    assert turn.evidence[0].kind == kind
    assert "reserve" in turn.hint
    assert "the refusal names the rule" in turn.hint


def test_a_profile_counts_it_for_the_parameter() -> None:
    """Failures against rules are aggregated where evolution looks for them."""
    library = ruled(Between(parameter="nights", maximum=3))
    episode, diagnosis = diagnosed(library, city="Oslo", nights=5)
    profile = FailureProfile()
    profile.observe(episode, diagnosis)
    (rate,) = profile.parameters()
    assert (rate.tool, rate.parameter) == ("reserve", "nights")


def test_a_call_without_a_result_is_judged_as_it_would_have_been() -> None:
    """Calls that were recorded but not run are held to the rules as the executor would."""
    library = ruled(OneOf(parameter="city", values=("Bergen",)))
    episode, _ = diagnosed(library, city="Bergen", nights=1)
    calls = [
        ToolCall(call_id="c", name="reserve", arguments={"city": city, "nights": 1})
        for city in ("Oslo", "bergen")
    ]
    labels = [
        diagnose(replace(episode, turns=(Turn(message=AssistantMessage(tool_calls=(one,))),)), library, None)
        .turns[0].label
        for one in calls
    ]  # fmt: skip
    assert labels[0] == "argument_mismatch"
    assert labels[1] != "argument_mismatch"
