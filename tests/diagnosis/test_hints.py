"""What a model is told of a failure, without gold, and what became of a failed call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from agentkit import Agent, Library, ToolDefinition
from agentkit.agent import ToolPolicy
from agentkit.diagnosis import diagnose
from agentkit.diagnosis.findings import unread_call
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import Episode, Evidence, EvidenceKind, Verdict
from agentkit.messages import AssistantMessage, ToolCall
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


FAILED = Verdict(passed=False)


@pytest.fixture
def attic(call):
    """A call that the tool refuses, under an id of one's choice."""
    return lambda call_id, room="attic": call("lamp_state", call_id, room=room)


@pytest.fixture
def outcomes(run, library):
    """Runs a script and gives outcome and settling turn of each failed call."""

    def of(*answers, **options):
        diagnosis = diagnose(run(*answers, **options), library, FAILED)
        return [(one.call_id, one.outcome, one.ended) for one in diagnosis.recoveries]

    return of


def test_the_same_call_again_is_a_repetition(outcomes, call):
    """Repeated, also where the same arguments are written another way."""
    found = outcomes(
        [call("offer_credit", "c1", months=12)],
        [call("offer_credit", "c2", months="12")],
        "done",
        contracts="always",
    )
    assert found == [("c1", "repeated", 1), ("c2", "abandoned", None)]


def test_another_call_of_the_tool_that_fails_fails_again(outcomes, attic):
    """A chain of failures is followed link by link."""
    found = outcomes([attic("c1")], [attic("c2", "cellar")], [attic("c3", "hall")], "on")
    assert found == [("c1", "failed_again", 1), ("c2", "recovered", 2)]


def test_a_name_put_right_is_a_recovery(outcomes, call):
    """After a name that no tool has, a call of the tool that was meant recovers."""
    wrong, right = call("lamp_stat", "c1", room="hall"), call("lamp_state", "c2", room="hall")
    assert outcomes([wrong], [right], "on") == [("c1", "recovered", 1)]


def test_repeating_what_was_refused_for_good_is_a_recovery_failure(run, library, call):
    """To give up after a final failure is right; to call again is not."""
    refused = [call("raising", "c1", kind="final")], [call("raising", "c2", kind="final")]
    diagnosis = diagnose(run(*refused, "done"), library, FAILED)
    assert [turn.label for turn in diagnosis.turns] == ["pass", "recovery_failure", "pass"]


@pytest.fixture
def both(run, library):
    """The diagnoses of two user turns of one conversation, each a script and its verdict."""

    def of(*turns):
        told, pending = [], ()
        for name, (script, verdict) in zip(("e1", "e2"), turns, strict=True):
            episode = replace(run(*script), episode_id=name, verdict=verdict)
            told.append(diagnose(episode, library, verdict, pending=pending))
            pending = told[-1].pending
        return told

    return of


def test_a_failure_is_made_good_after_the_user_has_spoken(both, attic):
    """An abandoned call of one episode is recovered in the next one, under its own name."""
    mended = [attic("c1", "hall")], "on"
    first, second = both((([attic("c1")], "Which?"), FAILED), (mended, Verdict(passed=True)))
    assert first.pending == first.recoveries
    [carried] = second.recoveries
    assert (carried.episode, carried.turn) == ("e1", 0)
    assert (carried.outcome, carried.ended) == ("recovered", 0)
    assert not second.pending


def test_a_failure_that_comes_back_after_the_user_has_spoken_is_a_recovery_failure(both, attic):
    """The turn of the later episode that repeats the call is labelled, beside its own failure."""
    _, second = both((([attic("c1")], "Hm."), FAILED), (([attic("c9")], "Hm."), FAILED))
    assert second.turns[0].labels == ("argument_mismatch", "recovery_failure")
    assert [one.outcome for one in second.recoveries] == ["repeated", "abandoned"]


def test_a_failure_that_the_user_leaves_stays_pending(both, attic, call):
    """An episode about something else neither settles a failure nor is blamed for it."""
    aside = [call("set_lamp", "c2", room="hall", state="on")]
    passed = Verdict(passed=True)
    first, second = both((([attic("c1")], "Hm."), FAILED), ((aside, "Done."), passed))
    assert second.pending == first.pending
    assert [turn.label for turn in second.turns] == ["pass", "pass"]


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ('[set_lamp(room="hall", state="on")]', "set_lamp"),
        ('set_lamp(room="hall", state="on")', "set_lamp"),
        ('{"name": "set_lamp", "arguments": {"room": "hall"}}', "set_lamp"),
        ('```json\n{"name": "set_lamp", "arguments": {"room": "hall"}}\n```', "set_lamp"),
        ('[set_lamp(room="hall", state=', "set_lamp"),
        ('<tool_call>{"name": "set_lamp", "arguments": {"room": "hall"}}', "set_lamp"),
        ("<tool_call>{set_lamp: hall}</tool_call>", ""),
        ('[TOOL_CALLS] [{"name": "dim", "arguments": {}}]', ""),
        ('<|python_tag|>dim.call(room="hall")', ""),
        ('I will: {"tool_calls": [{"id": 1', ""),
    ],
)
def test_a_call_that_stayed_text_is_found(text, tool, library):
    """Nothing but a call of an offered tool, or the marks of a call, with the tool if it is one."""
    found = unread_call(AssistantMessage(text=text), library)
    assert found is not None
    assert found[1] == tool
    assert text.startswith(found[0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The lamp is on.",
        'To switch it on you would call set_lamp(room="hall", state="on"), but I may not.',
        "Rooms: [kitchen, hall] (both dark)",
        "[]",
        '{"room": "hall", "on": true}',
        '{"name": "Ada", "age": 36}',
        "def double(x):\n    return multiply(x, 2)",
        "dim(level=3)",
        "set_lamp" * 1000,
        '[set_lamp(room="hall")]' + " really" * 1000,
    ],
)
def test_an_answer_is_not_taken_for_a_call(text, library):
    """Prose that quotes a call, data, code, and calls of what is not offered are answers."""
    assert unread_call(AssistantMessage(text=text), library) is None


def test_text_beside_calls_is_not_looked_at(call, library):
    """Where the parser found calls, it has read the message."""
    message = AssistantMessage(text="<tool_call>", tool_calls=(call("set_lamp"),))
    assert unread_call(message, library) is None
