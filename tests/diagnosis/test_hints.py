"""What a model is told of a failure, and that no gold is in it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from agentkit import Agent, Library, ToolDefinition
from agentkit.agent import ToolPolicy
from agentkit.diagnosis import diagnose
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.diagnosis.wording import describe_failure
from agentkit.episodes import Episode, Evidence, EvidenceKind, Recovery, Verdict
from agentkit.messages import FailureKind, ToolCall, ToolFailure
from agentkit.testing import ScriptedModel


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


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_every_kind_has_words(kind):
    """Each kind of failure names the tool, the rule and a way out."""
    text = describe_failure("book", ToolFailure(kind=kind, rule="Rule."))

    assert "book" in text
    assert "Rule." in text
    assert len(text.splitlines()) == 2


BOOK = ToolDefinition.from_schema(
    "book",
    "Book a table.",
    {
        "properties": {
            "day": {"enum": ["Friday", "Sunday"], "type": "string"},
            "seats": {"type": "integer"},
            "name": {"type": "string"},
        },
        "required": ["day", "seats"],
    },
)
CANCEL = ToolDefinition.from_schema("cancel", "Cancel a table.", {"properties": {}})
LIBRARY = Library([BOOK, CANCEL]).bind(
    {"book": lambda **_: "booked", "cancel": lambda: "cancelled"}
)
REQUEST = "A table for four on Friday, please."

# Gold that stands nowhere else: no word of a template, a schema or a request looks like this.
SECRETS = st.integers(10**6, 10**9).map(lambda number: f"zq{number}")
GOLD = st.recursive(
    SECRETS | st.integers(10**12, 10**13),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2)
        | st.dictionaries(SECRETS, inner, min_size=1, max_size=2)
    ),
    max_leaves=3,
)
CALLS = st.lists(
    st.builds(
        ToolCall,
        call_id=st.uuids().map(str),
        name=st.sampled_from(["book", "book", "boook", "cancel"]),
        arguments=st.fixed_dictionaries(
            {},
            optional={
                "day": st.sampled_from(["Friday", "Fryday", 5]),
                "seats": st.sampled_from([4, "4", "four"]),
                "date": st.just("Friday"),
            },
        ),
        malformed=st.sampled_from([None, None, None, "{day: Friday"]),
    ),
    max_size=3,
)


@st.composite
def judged(draw: st.DrawFn) -> tuple[Episode, Verdict]:
    """A real run of drawn calls, and a verdict whose every text is gold."""
    calls = draw(CALLS)
    model = ScriptedModel([[call] for call in calls] + ["Done."])
    episode = (
        Agent(model, library=LIBRARY, tool_policy=ToolPolicy(retries=9)).run_sync(REQUEST).episode
    )
    ids = st.sampled_from([call.call_id for call in calls] + [""])
    evidence = st.builds(
        Evidence,
        kind=st.sampled_from(get_args(EvidenceKind)).filter(lambda kind: "error" not in kind),
        message=SECRETS,
        turn=st.none() | st.integers(0, len(episode.turns) - 1),
        call_id=ids,
        tool=SECRETS,
        parameter=SECRETS,
        expected=GOLD,
        actual=GOLD,
    )
    found = draw(st.lists(evidence, max_size=4))
    return episode, Verdict(passed=False, evidence=tuple(found), details={"gold": draw(SECRETS)})


def texts(value: Any) -> list[str]:
    """Every text and number inside a JSON value."""
    if isinstance(value, dict):
        return [text for part in [*value, *value.values()] for text in texts(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in texts(part)]
    return [str(value)]


@given(judged())
def test_no_hint_holds_gold(drawn):
    """Whatever a verifier knows, a hint says only what schema, request and call show."""
    episode, verdict = drawn
    diagnosis = diagnose(episode, LIBRARY, verdict)
    gold = [
        text
        for item in verdict.evidence
        for text in texts(
            [item.message, item.tool, item.parameter, item.expected, item.actual, verdict.details]
        )
    ]
    hints = " ".join(turn.hint for turn in diagnosis.turns)
    assert not [text for text in gold if text in hints]
    assert all(turn.hint for turn in diagnosis.turns if turn.label not in NOT_FAILURES)


def test_the_expected_tool_is_named_in_the_record_and_not_in_the_hint():
    """A report may say which call is missing; a hint that did would give the answer away."""
    run = Agent(ScriptedModel(["Done."]), library=LIBRARY).run_sync(REQUEST)
    missing = Evidence(kind="missing_call", message="book was not called", tool="book")
    verdict = Verdict(passed=False, evidence=(missing,))
    [turn] = diagnose(run.episode, LIBRARY, verdict).turns
    assert (turn.label, turn.tool) == ("missing_tool_call", "book")
    assert "book" not in turn.hint


def test_a_pending_failure_brings_no_gold_along():
    """What is carried from turn to turn of a conversation holds a digest of the arguments only."""
    names = {one.name for one in fields(Recovery)}
    assert names == {
        "turn",
        "call_id",
        "tool",
        "kind",
        "outcome",
        "ended",
        "episode",
        "arguments",
    }
