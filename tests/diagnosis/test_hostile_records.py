"""Any episode and any verdict give a diagnosis: no record makes ``diagnose`` raise."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.diagnosis import FailureProfile, diagnose, dominant
from agentkit.diagnosis.labels import OUTSIDE
from agentkit.episodes import (
    Diagnosis,
    Episode,
    Evidence,
    EvidenceKind,
    Fault,
    Recovery,
    RecoveryOutcome,
    StopReason,
    Turn,
    Verdict,
)
from agentkit.messages import AssistantMessage, FailureKind, ToolCall, ToolFailure, ToolResult

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
TURNS = st.builds(
    Turn,
    message=st.builds(
        AssistantMessage,
        text=st.sampled_from(["", "It is done.", "{", "[book(day=1", "<tool_call>", '{"name":']),
        tool_calls=st.lists(CALLS, max_size=3).map(tuple),
    ),
    results=st.lists(RESULTS, max_size=3).map(tuple),
    correction=st.sampled_from(["", "not JSON"]),
)
EPISODES = st.builds(
    Episode,
    episode_id=st.sampled_from(["e", "f"]),
    request=st.just("?"),
    turns=st.lists(TURNS, max_size=4).map(tuple),
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


@given(EPISODES, VERDICTS, PENDING)
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


@given(EPISODES, VERDICTS)
def test_a_verdict_with_a_fault_never_reaches_a_profile(episode, verdict):
    """Gold and checker errors are counted nowhere, whatever failed executably beside them."""
    diagnosis = diagnose(episode, LIBRARY, verdict)
    profile = FailureProfile()
    assert profile.observe(episode, diagnosis) == (not diagnosis.is_excluded)
    if verdict is not None and verdict.fault is not None:
        assert diagnosis.is_excluded
        assert profile.is_empty
