"""What became of a failed call, and calls that stayed text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.diagnosis import diagnose, diagnose_conversation
from agentkit.diagnosis.findings import unread_call
from agentkit.episodes import Verdict
from agentkit.messages import AssistantMessage

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


def test_another_call_of_the_tool_that_works_is_a_recovery(outcomes, attic, call):
    """Recovered at the turn whose call succeeded, whatever was called in between."""
    aside = call("set_lamp", "c2", room="hall", state="on")
    found = outcomes([attic("c1")], [aside], [attic("c3", "hall")], "on")
    assert found == [("c1", "recovered", 2)]


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


def two_user_turns(run, first, second, verdicts):
    asked = run(*first)
    told = run(*second)
    return [
        replace(episode, episode_id=name, verdict=verdict)
        for name, episode, verdict in zip(("e1", "e2"), (asked, told), verdicts, strict=True)
    ]


def test_a_failure_is_made_good_after_the_user_has_spoken(run, library, attic):
    """An abandoned call of one episode is recovered in the next one, under its own name."""
    episodes = two_user_turns(
        run,
        ([attic("c1")], "Which room?"),
        ([attic("c1", "hall")], "on"),
        (FAILED, Verdict(passed=True)),
    )
    first, second = diagnose_conversation(episodes, library)
    assert first.pending == first.recoveries
    [carried] = second.recoveries
    assert (carried.episode, carried.turn, carried.outcome, carried.ended) == (
        "e1",
        0,
        "recovered",
        0,
    )
    assert not second.pending


def test_a_failure_that_comes_back_after_the_user_has_spoken_is_a_recovery_failure(
    run, library, attic
):
    """The turn of the later episode that repeats the call is labelled, beside its own failure."""
    episodes = two_user_turns(run, ([attic("c1")], "Hm."), ([attic("c9")], "Hm."), (FAILED, FAILED))
    _, second = diagnose_conversation(episodes, library)
    assert second.turns[0].labels == ("argument_mismatch", "recovery_failure")
    assert [one.outcome for one in second.recoveries] == ["repeated", "abandoned"]


def test_a_failure_that_the_user_leaves_stays_pending(run, library, attic, call):
    """An episode about something else neither settles a failure nor is blamed for it."""
    aside = [call("set_lamp", "c2", room="hall", state="on")]
    episodes = two_user_turns(
        run, ([attic("c1")], "Hm."), (aside, "Done."), (FAILED, Verdict(passed=True))
    )
    first, second = diagnose_conversation(episodes, library)
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
