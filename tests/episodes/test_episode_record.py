"""An episode goes to JSON and back without loss, whatever is in it."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from agentkit import Episode
from agentkit.episodes import (
    Diagnosis,
    Evidence,
    EvidenceKind,
    FailureLabel,
    Fault,
    GoalTrace,
    Recovery,
    RecoveryOutcome,
    RefineTrace,
    RetrievalTrace,
    StageReport,
    Turn,
    TurnDiagnosis,
    Verdict,
)
from agentkit.episodes.files import decode_episode, encode_episode
from agentkit.errors import EpisodeFormatError
from agentkit.messages import (
    AssistantMessage,
    FailureKind,
    ToolCall,
    ToolFailure,
    ToolResult,
    Usage,
)

TEXT = st.text(st.characters(), max_size=8)  # half surrogate pairs included
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(TEXT, DATA, max_size=2)
NUMBERS = st.floats(min_value=0, max_value=1e6)
USAGE = st.builds(
    Usage,
    requests=st.integers(0, 9),
    prompt_tokens=st.integers(0, 9),
    cached_tokens=st.integers(0, 9),
    completion_tokens=st.integers(0, 9),
    cost_usd=st.none() | NUMBERS,
)
CALLS = st.lists(
    st.builds(ToolCall, call_id=TEXT, name=TEXT, arguments=OBJECTS, malformed=st.none() | TEXT),
    max_size=2,
).map(tuple)
FAILURES = st.builds(
    ToolFailure,
    kind=st.sampled_from(["timeout", "denied", "unknown_tool"]),
    rule=TEXT,
    path=TEXT,
    schema_excerpt=st.none() | OBJECTS,
    nearest=st.lists(TEXT, max_size=2).map(tuple),
    retryable=st.booleans(),
    cause=st.none() | TEXT,
)
RESULTS = st.lists(
    st.builds(
        ToolResult,
        call_id=TEXT,
        name=TEXT,
        status=st.sampled_from(["ok", "failed", "denied", "deferred"]),
        value=DATA,
        text=TEXT,
        failure=st.none() | FAILURES,
        attempts=st.integers(1, 3),
        seconds=NUMBERS,
    ),
    max_size=2,
).map(tuple)
NAMES = st.lists(TEXT, max_size=2).map(tuple)
STAGES = st.builds(
    StageReport,
    stage=TEXT,
    survivors=st.integers(0, 9),
    tokens=st.integers(0, 9),
    seconds=NUMBERS,
    goal=TEXT,
)
RETRIEVAL = st.builds(
    RetrievalTrace,
    query=TEXT,
    shortlist=NAMES,
    offered=NAMES,
    stages=st.lists(STAGES, max_size=2).map(tuple),
    notes=NAMES,
    goals=st.lists(st.builds(GoalTrace, intent=TEXT, ranked=NAMES), max_size=2).map(tuple),
    unmatched=NAMES,
)
REFINE = st.builds(
    RefineTrace,
    mode=st.sampled_from(["vanilla", "adaptive"]),
    proposals=st.lists(CALLS, min_size=1, max_size=2).map(tuple),
    chosen=st.integers(0, 1),
    converged=st.booleans(),
    usage=USAGE,
)
TURNS = st.lists(
    st.builds(
        Turn,
        message=st.builds(AssistantMessage, text=TEXT, tool_calls=CALLS),
        results=RESULTS,
        usage=USAGE,
        retrieval=st.none() | RETRIEVAL,
        refine=st.none() | REFINE,
        seconds=NUMBERS,
        model_seconds=NUMBERS,
    ),
    max_size=2,
).map(tuple)
EVIDENCE = st.builds(
    Evidence,
    kind=st.sampled_from(get_args(EvidenceKind)),
    message=TEXT,
    turn=st.none() | st.integers(0, 9),
    call_id=TEXT,
    tool=TEXT,
    parameter=TEXT,
    expected=DATA,
    actual=DATA,
)
VERDICTS = st.builds(
    Verdict,
    passed=st.booleans(),
    score=NUMBERS,
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    verifier=TEXT,
    fault=st.none() | st.sampled_from(get_args(Fault)),
    metrics=st.dictionaries(TEXT, NUMBERS, max_size=2),
    details=OBJECTS,
)
LABELS = st.sampled_from(get_args(FailureLabel))
DIAGNOSES = st.builds(
    Diagnosis,
    label=LABELS,
    turns=st.lists(
        st.builds(
            TurnDiagnosis,
            turn=st.integers(0, 9),
            label=LABELS,
            labels=st.lists(LABELS, max_size=2).map(tuple),
            tool=TEXT,
            parameter=TEXT,
            evidence=st.lists(EVIDENCE, max_size=1).map(tuple),
            hint=TEXT,
        ),
        max_size=2,
    ).map(tuple),
    recoveries=st.lists(
        st.builds(
            Recovery,
            turn=st.integers(0, 9),
            call_id=TEXT,
            tool=TEXT,
            kind=st.sampled_from(get_args(FailureKind)),
            outcome=st.sampled_from(get_args(RecoveryOutcome)),
            ended=st.none() | st.integers(0, 9),
        ),
        max_size=2,
    ).map(tuple),
)
EPISODES = st.builds(
    Episode,
    episode_id=TEXT,
    request=TEXT,
    turns=TURNS,
    stop_reason=st.sampled_from(["finished", "error", "cancelled"]),
    output=DATA,
    model=TEXT,
    library_version=st.integers(0, 9),
    session_id=st.none() | TEXT,
    usage=USAGE,
    started_at=TEXT,
    seconds=NUMBERS,
    error=st.none() | TEXT,
    verdict=st.none() | VERDICTS,
    diagnosis=st.none() | DIAGNOSES,
    metadata=st.dictionaries(TEXT, TEXT, max_size=2),
)


@given(EPISODES)
def test_an_episode_survives_a_line_of_json(episode):
    """Encoding and decoding any episode gives an equal one, in one line of plain ASCII."""
    line = encode_episode(episode)
    assert line.isascii()
    assert "\n" not in line
    assert decode_episode(line) == episode


def test_an_older_verdict_is_read_with_everything_it_held():
    """A verdict of an earlier release, with bare sentences and its own keys, loses nothing."""
    held = {"passed": True, "right_tools": True, "evidence": ["close"]}
    verdict = Episode.from_json({**Episode(episode_id="e", request="?").to_json(), "verdict": held})
    assert verdict.verdict == Verdict(
        passed=True,
        score=1.0,
        evidence=(Evidence(kind="other", message="close"),),
        details={"right_tools": True},
    )


@pytest.mark.parametrize("missing", ["usage", "turns", "episode_id", "request"])
def test_a_record_that_lacks_a_part_is_refused(missing):
    """A record without a part that every episode has raises instead of guessing."""
    record = Episode(episode_id="e", request="?").to_json()
    del record[missing]
    with pytest.raises(EpisodeFormatError):
        Episode.from_json(json.loads(json.dumps(record)))


def test_an_older_record_stays_readable():
    """A record of the first format, as it was written then, can be read."""
    record = {
        "format": 1, "episode_id": "e", "session_id": None, "request": "hi", "stop_reason": "finished",
        "output": "hello", "model": "m", "library_version": 3, "library_digest": "", "history_length": 0,
        "usage": {"requests": 1, "prompt_tokens": 2, "cached_tokens": 0, "completion_tokens": 1, "cost_usd": None},
        "started_at": "2026-03-02T10:00:00+00:00", "seconds": 0.1, "error": None, "verdict": None,
        "diagnosis": None, "metadata": {}, "turns": [{
            "message": {"role": "assistant", "text": "hello"}, "results": [],
            "usage": {"requests": 1, "prompt_tokens": 2, "cached_tokens": 0, "completion_tokens": 1, "cost_usd": None},
            "seconds": 0.1, "model_seconds": 0.1,
        }],
    }  # fmt: skip
    episode = Episode.from_json(record)
    assert (episode.output, episode.library_version, episode.turns[0].message.text) == (
        "hello",
        3,
        "hello",
    )


def test_parts_that_hold_nothing_are_not_written():
    """A plain episode is a short line: no names, traces, corrections, labels or hints of nothing."""
    turn = Turn(message=AssistantMessage(text="4"))
    diagnosis = Diagnosis(label="pass", turns=(TurnDiagnosis(turn=0, label="pass"),))
    verdict = Verdict(passed=True, score=1.0)
    episode = Episode(
        episode_id="e", request="?", turns=(turn,), verdict=verdict, diagnosis=diagnosis
    )
    record = episode.to_json()
    assert "library_names" not in record
    assert set(record["turns"][0]) == {"message", "results", "usage", "seconds", "model_seconds"}
    assert record["verdict"] == {"passed": True, "score": 1.0, "evidence": []}
    assert record["diagnosis"]["turns"] == [{"turn": 0, "label": "pass"}]
