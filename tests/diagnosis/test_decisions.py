"""Which label a turn and an episode have, whatever the record holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.agent.types import Limits
from agentkit.diagnosis import PRECEDENCE, FailureProfile, describe_failure, diagnose, dominant
from agentkit.diagnosis.labels import OUTSIDE, blamed_argument, label_of_failure
from agentkit.episodes import (
    Diagnosis,
    Episode,
    Evidence,
    EvidenceKind,
    FailureLabel,
    Fault,
    Recovery,
    RecoveryOutcome,
    StopReason,
    Turn,
    Verdict,
)
from agentkit.messages import AssistantMessage, FailureKind, ToolCall, ToolFailure, ToolResult

PAGE = Path(__file__).resolve().parents[2] / "docs" / "diagnosis.md"
PASSED = Verdict(passed=True, score=1.0)


@dataclass(frozen=True, kw_only=True)
class House:
    """What the cases are made with.

    Attributes:
        run: Runs a script.
        call: Makes a call.
        failed: Makes a verdict.
        library: The tools.
    """

    run: Callable[..., Episode]
    call: Callable[..., ToolCall]
    failed: Callable[..., Verdict]
    library: Library

    def said(self, episode: Episode, verdict: Verdict | None = None, **more: Any) -> Diagnosis:
        """The diagnosis of an episode."""
        return diagnose(episode, self.library, verdict, **more)

    def judged(self, *answers: Any, kind: str = "", **parts: Any) -> Diagnosis:
        """The diagnosis of a run that failed with one finding."""
        return self.said(self.run(*answers), self.failed(kind, **parts))

    def looked(self) -> list[ToolCall]:
        """A turn that looks at a lamp."""
        return [self.call("lamp_state", "c1", room="kitchen")]

    def switched(self) -> list[ToolCall]:
        """A turn that switches a lamp."""
        return [self.call("set_lamp", "c2", room="kitchen", state="on")]


@pytest.fixture
def house(run, call, failed, library) -> House:
    return House(run=run, call=call, failed=failed, library=library)


def executable(house: House, name: str, **arguments: Any) -> Diagnosis:
    """A call, an answer, and a verifier that is content."""
    return house.said(
        house.run([house.call(name, **arguments)], "done", contracts="always"), PASSED
    )


def without_result(house: House) -> Diagnosis:
    turn = Turn(message=AssistantMessage(tool_calls=(house.call("set_lamp", room="hall"),)))
    return house.said(Episode(episode_id="e", request="?", turns=(turn,)))


def broken_off(house: House, reason: str, kind: str) -> Diagnosis:
    episode = replace(house.run(house.looked(), "done"), stop_reason=reason)
    return house.said(episode, house.failed(kind))


def unfit(house: House, *answers: str, verdict: Verdict | None = PASSED) -> Diagnosis:
    schema = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
    return house.said(house.run(*answers, output_type=schema), verdict)


Case = Callable[[House], tuple[Diagnosis, int]]

TURNS: dict[str, Case] = {
    "the arguments are not a JSON object": lambda h: (
        h.said(
            h.run([ToolCall(call_id="c1", name="set_lamp", malformed="{room: kitchen")], "done"),
            PASSED,
        ),
        0,
    ),
    "the tool is not offered": lambda h: (executable(h, "switch_lamp"), 0),
    "a call stayed text, since no parser read it": lambda h: (
        h.judged(h.looked(), '<tool_call>{"name": "set_lamp", "arguments": {"room"</tool_call>'),
        1,
    ),
    "the arguments break the schema": lambda h: (executable(h, "set_lamp", room="kitchen"), 0),
    "the arguments of a call without a result break the schema": lambda h: (without_result(h), 0),
    "a precondition does not hold": lambda h: (executable(h, "offer_credit", months=12), 0),
    "the tool asks for another try (`ModelRetry`)": lambda h: (
        executable(h, "lamp_state", room="attic"),
        0,
    ),
    "the tool raises `ValueError`": lambda h: (executable(h, "raising", kind="value"), 0),
    "the error of the tool quotes a text of the call": lambda h: (
        executable(h, "raising", kind="key", text="Bergen"),
        0,
    ),
    "the tool returns an object that holds only an `error`, which quotes a text of the call": (
        lambda h: (executable(h, "reporting", path="notes.txt"), 0)
    ),
    "the tool raises anything else": lambda h: (executable(h, "raising", kind="runtime"), 0),
    "a postcondition does not hold": lambda h: (executable(h, "count_rooms"), 0),
    "the tool gives up (`ToolFailed`)": lambda h: (executable(h, "raising", kind="final"), 0),
    "the tool does not finish in time": lambda h: (executable(h, "hanging"), 0),
    "the result cannot be shown": lambda h: (executable(h, "unshowable"), 0),
    "a person refuses the call": lambda h: (
        h.said(h.run([h.call("sell_house")], "done", approve=lambda *_: False), PASSED),
        0,
    ),
    "the run may make no further call": lambda h: (
        h.said(h.run(h.looked(), h.switched(), "done", limits=Limits(max_calls=1)), PASSED),
        1,
    ),
    "the answer breaks the output schema and is sent back": lambda h: (
        unfit(h, "on", '{"on": true}'),
        0,
    ),
    "the answer never matches the output schema": lambda h: (unfit(h, "on", "yes", "it is"), 2),
    "the verifier finds an argument missing": lambda h: (
        h.judged(h.looked(), h.switched(), "done", kind="missing_argument", call_id="c2"),
        1,
    ),
    "the verifier finds an argument too many": lambda h: (
        h.judged(h.looked(), h.switched(), "done", kind="unexpected_argument", call_id="c2"),
        1,
    ),
    "the verifier finds a value of a wrong type": lambda h: (
        h.judged(h.looked(), h.switched(), "done", kind="wrong_type", call_id="c2"),
        1,
    ),
    "the verifier finds a wrong value": lambda h: (
        h.judged(h.looked(), h.switched(), "done", kind="wrong_value", call_id="c2"),
        1,
    ),
    "the verifier finds a call of a wrong tool": lambda h: (
        h.judged(h.looked(), h.switched(), "done", kind="wrong_tool", call_id="c1"),
        0,
    ),
    "the verifier finds a call that should not be there": lambda h: (
        h.judged(h.looked(), h.switched(), "done", kind="unexpected_call", call_id="c1"),
        0,
    ),
    "the verifier finds that a call was not made": lambda h: (
        h.judged(h.looked(), "done", kind="missing_call", tool="set_lamp"),
        1,
    ),
    "the state differs": lambda h: (
        h.judged(h.switched(), h.looked(), "done", kind="state_differs"),
        1,
    ),
    "the state differs, and a writing call changed nothing (`states`)": lambda h: (
        h.said(
            h.run(h.switched(), h.looked(), "done"),
            h.failed("state_differs"),
            states=({}, {}, {"x": 1}, {"x": 1}),
        ),
        0,
    ),
    "the state differs, and it is known when it changed last (`states`)": lambda h: (
        h.said(
            h.run(h.switched(), h.looked(), "done"),
            h.failed("state_differs"),
            states=({}, {"x": 1}, {"x": 1}, {"x": 1}),
        ),
        0,
    ),
    "the state differs, and no call ran": lambda h: (h.judged("done", kind="state_differs"), 0),
    "a result differs, and its tool ran": lambda h: (
        h.judged(h.looked(), h.switched(), "done", kind="response_differs", tool="lamp_state"),
        0,
    ),
    "a result differs, and its tool never ran": lambda h: (
        h.judged(h.looked(), "done", kind="response_differs", tool="set_lamp"),
        1,
    ),
    "the answer is wrong": lambda h: (h.judged(h.looked(), "on", kind="wrong_answer"), 1),
    "there is no answer": lambda h: (h.judged(h.looked(), "", kind="missing_answer"), 1),
    "a test of the answer fails": lambda h: (h.judged("pass", kind="test_failed"), 0),
    "a criterion is not met": lambda h: (h.judged("rude", kind="criterion_failed"), 0),
    "the same call is made again and fails again": lambda h: (
        h.judged(
            [h.call("raising", "c1", kind="runtime")],
            [h.call("raising", "c2", kind="runtime")],
            "done",
        ),
        1,
    ),
    "another call of the tool fails again": lambda h: (
        h.judged(
            [h.call("raising", "c1", kind="runtime")],
            [h.call("raising", "c2", kind="runtime", text="x")],
            "done",
        ),
        1,
    ),
    "a failed call that might be tried again is given up": lambda h: (
        h.judged([h.call("raising", kind="runtime")], "done"),
        1,
    ),
    "a failed call is given up as the model was told": lambda h: (
        h.judged([h.call("raising", kind="final")], "done", kind="wrong_value", call_id="?"),
        0,
    ),
    "the model neither says nor calls anything": lambda h: (h.judged(""), 0),
    "the verifier does not say what is wrong": lambda h: (h.judged(h.looked(), "on"), 1),
    "the steps run out": lambda h: (
        h.said(h.run(h.looked(), h.switched(), limits=Limits(max_steps=2)), h.failed()),
        1,
    ),
    "the model breaks down, and a call is missing": lambda h: (
        broken_off(h, "error", "missing_call"),
        1,
    ),
    "the run is cancelled, and the answer is missing": lambda h: (
        broken_off(h, "cancelled", "missing_answer"),
        1,
    ),
}

EPISODES: dict[str, Callable[[House], Diagnosis]] = {
    "passed": lambda h: h.said(h.run(h.looked(), "off"), PASSED),
    "passed after a call that failed and was mended": lambda h: h.said(
        h.run([h.call("lamp_state", "c0", room="attic")], h.looked(), "off"), PASSED
    ),
    "passed without a call, though tools were offered": lambda h: h.said(h.run("No."), PASSED),
    "failed": lambda h: h.judged(
        [h.call("lamp_state", "c0", room="attic")], h.looked(), "on", kind="wrong_answer"
    ),
    "failed, since the model broke down": lambda h: broken_off(h, "error", "missing_answer"),
    "nobody judged it, and nothing failed": lambda h: h.said(h.run(h.looked(), "off")),
    "nobody judged it, and a call failed for good": lambda h: h.said(
        h.run([h.call("lamp_state", "c0", room="attic")], "I do not know.")
    ),
    "nobody judged it, and the failed call was mended": lambda h: h.said(
        h.run([h.call("lamp_state", "c0", room="attic")], h.looked(), "off")
    ),
    "nobody judged it, and an answer that was sent back was mended": lambda h: unfit(
        h, "on", '{"on": true}', verdict=None
    ),
    "nobody judged it, and the answer never matched the output schema": lambda h: unfit(
        h, "on", "yes", "it is", verdict=None
    ),
    "the reference is broken": lambda h: h.said(
        h.run([h.call("lamp_state", "c0", room="attic")], "off"),
        Verdict(passed=False, fault="gold_error"),
    ),
    "the verifier is broken": lambda h: h.said(
        h.run("off"), Verdict(passed=False, fault="checker_error")
    ),
}


def rows(heading: str) -> Iterator[tuple[str, list[str]]]:
    """The rows of the tables whose first column has that heading: the first cell, and the labels."""
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == heading:
            inside = True
        elif inside and not cells[0].startswith("---"):
            yield cells[0], re.findall(r"`(\w+)`", cells[1])


def test_every_row_has_a_case_and_every_case_a_row():
    """The page and this file name the same decisions."""
    assert [row for row, _ in rows("evidence")] == list(TURNS)
    assert [row for row, _ in rows("episode")] == list(EPISODES)


@pytest.mark.parametrize("row", TURNS)
def test_the_turn_is_labelled_as_the_page_says(row, house):
    """The turn that the row is about has the labels of the row, the dominant one first."""
    diagnosis, index = TURNS[row](house)
    turn = diagnosis.turns[index]
    labels = dict(rows("evidence"))[row]
    if labels:
        assert turn.labels[: len(labels)] == tuple(labels)
        assert turn.label == labels[0]
        assert turn.hint
        assert turn.evidence
    else:
        assert turn.label in {"pass", "unjudged"}
        assert not turn.hint


@pytest.mark.parametrize("row", EPISODES)
def test_the_episode_is_labelled_as_the_page_says(row, house):
    """The episode has the label of the row; a row in words means the dominant label of its turns."""
    expected = dict(rows("episode"))[row]
    assert EPISODES[row](house).label == (expected or ["argument_mismatch"])[0]


def test_evidence_of_a_broken_gold_excludes_also_without_a_fault(house):
    """A verdict that holds a gold error among its findings says nothing about the agent."""
    found = Evidence(kind="gold_error", message="gold names an absent tool")
    verdict = Verdict(passed=False, evidence=(found,))
    assert house.said(house.run("off"), verdict).label == "gold_error"


def test_the_order_is_that_of_the_paper():
    """SEAL's table 5, with the labels that it does not place in between and behind."""
    table_5 = [
        "invalid_tool_call",
        "argument_mismatch",
        "state_mismatch",
        "recovery_failure",
        "missing_tool_call",
        "response_mismatch",
    ]
    assert [label for label in PRECEDENCE if label in table_5] == table_5
    assert set(PRECEDENCE) | OUTSIDE == set(get_args(FailureLabel))
    assert not set(PRECEDENCE) & OUTSIDE


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_what_the_model_is_told_fits_the_label(kind):
    """A call that is labelled is to be made differently; one that is not is never just repeated."""
    failure = ToolFailure(kind=kind, rule="Rule.")
    words, way_out = describe_failure("book", failure).splitlines()
    assert "book" in words
    assert "Rule." in words
    invites = way_out.startswith(("Send the call again", "Use only", "Correct", "Change the"))
    assert invites == (label_of_failure(failure) is not None)


@pytest.mark.parametrize(
    ("rule", "value", "is_blamed"),
    [
        ("KeyError: 'Bergen'", "Bergen", True),
        ("no station in Bergen", "Bergen", True),
        ("Bergenfield is closed", "Bergen", False),
        ("could not get the file", "get", False),
        ("KeyError: 'get'", "get", True),
        ("the value is no", "no", False),
        ("cat: notes.txt: no such file", "notes.txt", True),
        ("RuntimeError: the socket is closed", "Bergen", False),
    ],
)
def test_an_error_blames_an_argument_when_it_quotes_it(rule, value, is_blamed):
    """Whole words count; common words only in quotation marks; short ones never."""
    failure = ToolFailure(kind="tool_error", rule=rule, cause="KeyError")
    found = blamed_argument(failure, {"days": 3, "city": value})
    assert found == ("city" if is_blamed else None)


BOOK = ToolDefinition.from_schema(
    "book",
    "Book a day.",
    {"properties": {"day": {"type": "string"}, "seats": {"type": "integer"}}, "required": ["day"]},
)
BROKEN = ToolDefinition.from_schema("broken", "A schema that no validator takes.", {})
LIBRARY = Library([BOOK, BROKEN])

NAMES = st.sampled_from(["book", "broken", "boook", "", "\uff42ook", "{", "\ud800", "a" * 300])
IDS = st.sampled_from(["1", "2", "3", ""])
VALUES = st.sampled_from(
    [None, True, 0, -3, 10**40, 1.5, float("nan"), float("inf"), "", "day", "\ud800", [], [[1]], {}]
)
ARGUMENTS = st.dictionaries(st.sampled_from(["day", "seats", "x", ""]), VALUES, max_size=2)
CALLS = st.builds(
    ToolCall,
    call_id=IDS,
    name=NAMES,
    arguments=ARGUMENTS,
    malformed=st.sampled_from([None, None, "", "{day"]),
)
FAILURES = st.builds(
    ToolFailure,
    kind=st.sampled_from(get_args(FailureKind)),
    rule=st.sampled_from(["", "no 'day'", "{x}"]),
    path=st.sampled_from(["", "day", "day[0].x", "{", ".", "["]),
    retryable=st.booleans(),
    cause=st.none() | st.sampled_from(["required", "ValueError", "postcondition", "?"]),
)
RESULTS = st.builds(
    ToolResult,
    call_id=IDS,
    name=NAMES,
    status=st.sampled_from(["ok", "failed", "denied", "deferred"]),
    value=VALUES | st.just({"error": "no 'day'"}),
    failure=st.none() | FAILURES,
)
ANY_TURNS = st.builds(
    Turn,
    message=st.builds(
        AssistantMessage,
        text=st.sampled_from(["", "It is done.", "{", "[book(day=1", "<tool_call>", '{"name":']),
        tool_calls=st.lists(CALLS, max_size=3).map(tuple),
    ),
    results=st.lists(RESULTS, max_size=3).map(tuple),
    correction=st.sampled_from(["", "not JSON"]),
)
ANY_EPISODES = st.builds(
    Episode,
    episode_id=st.sampled_from(["e", "f"]),
    request=st.just("?"),
    turns=st.lists(ANY_TURNS, max_size=4).map(tuple),
    stop_reason=st.sampled_from(get_args(StopReason)),
    started_at=st.sampled_from(["", "2026-11-21T10:00:00+00:00", "9999-12-31T23:59:59", "soon"]),
    resumes=st.none() | st.just("d"),
)
EVIDENCE = st.builds(
    Evidence,
    kind=st.sampled_from(get_args(EvidenceKind)),
    message=st.just("gold"),
    turn=st.none() | st.integers(-3, 6),
    call_id=IDS,
    tool=NAMES,
    parameter=st.sampled_from(["", "day", "{x}"]),
    expected=VALUES,
)
VERDICTS = st.none() | st.builds(
    Verdict,
    passed=st.booleans(),
    evidence=st.lists(EVIDENCE, max_size=4).map(tuple),
    fault=st.none() | st.sampled_from(get_args(Fault)),
)
PENDING = st.lists(
    st.builds(
        Recovery,
        turn=st.integers(0, 9),
        call_id=IDS,
        tool=NAMES,
        kind=st.sampled_from(get_args(FailureKind)),
        outcome=st.sampled_from(get_args(RecoveryOutcome)),
        episode=st.sampled_from(["d", "e"]),
    ),
    max_size=2,
)


@given(ANY_EPISODES, VERDICTS, PENDING)
def test_any_record_gives_a_diagnosis_that_holds_together(episode, verdict, pending):
    """One entry a turn; labels ranked; failures have hints; the same again; readable from JSON."""
    diagnosis = diagnose(episode, LIBRARY, verdict, pending=pending)

    assert [turn.turn for turn in diagnosis.turns] == list(range(len(episode.turns)))
    for turn in diagnosis.turns:
        assert turn.label == turn.labels[0] == dominant(turn.labels)
        assert bool(turn.hint) == bool(turn.evidence) == bool(turn.attributions)
    assert diagnosis.is_excluded == (diagnosis.label in OUTSIDE)
    assert (diagnosis.label == "unjudged") <= (verdict is None or not verdict.passed)
    again = diagnose(episode, LIBRARY, verdict, pending=pending)
    assert json.dumps(again.to_json()) == json.dumps(diagnosis.to_json())
    record = json.loads(json.dumps(diagnosis.to_json(), allow_nan=True))
    assert json.dumps(Diagnosis.from_json(record).to_json()) == json.dumps(diagnosis.to_json())
    profile = FailureProfile()
    profile.observe(episode, diagnosis)
    shares = profile.label_distribution()
    assert not shares or sum(shares.values()) == pytest.approx(1.0)


@given(ANY_EPISODES, VERDICTS)
def test_a_verdict_with_a_fault_never_reaches_a_profile(episode, verdict):
    """Gold and checker errors are counted nowhere, whatever failed executably beside them."""
    diagnosis = diagnose(episode, LIBRARY, verdict)
    profile = FailureProfile()
    assert profile.observe(episode, diagnosis) == (not diagnosis.is_excluded)
    if verdict is not None and verdict.fault is not None:
        assert diagnosis.is_excluded
        assert profile.is_empty
