"""The record of a run: written, read, judged later, with the names that tools were offered under."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.records import records

from agentkit import Episode, File
from agentkit.episodes import (
    Attribution,
    Diagnosis,
    Evidence,
    GoalTrace,
    Recovery,
    RefineTrace,
    RetrievalTrace,
    Turn,
    TurnDiagnosis,
    Verdict,
)
from agentkit.episodes.files import decode_episode, encode_episode
from agentkit.episodes.labels import in_library_names, is_late_verdict, with_late_verdicts
from agentkit.errors import EpisodeFormatError
from agentkit.evaluation.doctor.catalogue import usage_of
from agentkit.evolution.learning import uses_of
from agentkit.evolution.trajectories import trajectories_of
from agentkit.media import Media
from agentkit.messages import (
    AssistantMessage,
    ToolCall,
    ToolFailure,
    ToolResult,
)

TEXT = st.text(st.characters(), max_size=8)  # half surrogate pairs included
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
LEAVES = {
    str: TEXT,
    Any: DATA,
    int: st.integers(0, 9),
    bool: st.booleans(),
    float: st.floats(min_value=0, max_value=1e6),
    Media: st.builds(File, data=st.binary(max_size=4).map(b"%PDF-".__add__), name=TEXT),
}


@given(records(Episode, LEAVES))
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


def test_a_turn_is_what_a_model_said():
    """A message of somebody else in its place is refused."""
    turns = (Turn(message=AssistantMessage()),)
    told = Episode(episode_id="e", request="?", turns=turns).to_json()
    told["turns"][0]["message"]["role"] = "user"
    with pytest.raises(EpisodeFormatError, match="the role 'user'"):
        Episode.from_json(told)


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
    failure = ToolFailure(kind="timeout", rule="It was late.")
    late = ToolResult(call_id="c", name="add", status="failed", failure=failure)
    turn = Turn(message=AssistantMessage(text="4"), results=(late,))
    diagnosis = Diagnosis(label="pass", turns=(TurnDiagnosis(turn=0, label="pass"),))
    verdict = Verdict(passed=True, score=1.0)
    episode = Episode(
        episode_id="e", request="?", turns=(turn,), verdict=verdict, diagnosis=diagnosis
    )
    record = episode.to_json()
    assert "library_names" not in record
    assert set(record["turns"][0]) == {"message", "results", "usage", "seconds", "model_seconds"}
    told = {"kind": "timeout", "rule": "It was late.", "retryable": True}
    assert record["turns"][0]["results"][0]["failure"] == told
    assert record["verdict"] == {"passed": True, "score": 1.0, "evidence": []}
    assert record["diagnosis"]["turns"] == [{"turn": 0, "label": "pass"}]


EPISODE = Episode(
    episode_id="e",
    request="Hi",
    turns=(Turn(message=AssistantMessage(text="Hello")),),
    verdict=Verdict(passed=True, score=1.0),
    diagnosis=Diagnosis(label="pass"),
)


def said(record_id, *, passed=False, of="e", fault=None, **labels):
    """A verdict beside an episode."""
    return Episode(
        episode_id=record_id,
        request="Hi",
        verdict=Verdict(passed=passed, score=float(passed), fault=fault),
        metadata={"view_of": of, **labels},
    )


def test_the_latest_verdict_counts():
    """Of two that came later the later one does, in whatever order they are given."""
    records = [said("2", passed=True), EPISODE, said("1")]
    for given_in in (records, records[::-1]):
        (found,) = with_late_verdicts(given_in)
        assert (found.verdict, found.turns) == (records[0].verdict, EPISODE.turns)


def test_a_diagnosis_of_the_other_outcome_is_left_out():
    """One that explains what is still so is kept."""
    (turned,) = with_late_verdicts([EPISODE, said("1", passed=False)])
    (same,) = with_late_verdicts([EPISODE, said("1", passed=True)])
    assert (turned.diagnosis, same.diagnosis) == (None, EPISODE.diagnosis)


def test_a_verdict_with_a_fault_takes_nothings_place():
    """A verifier that broke tonight does not wipe out what a person said before."""
    records = [EPISODE, said("1", passed=False), said("2", fault="gold_error")]
    assert with_late_verdicts(records)[0].verdict == records[1].verdict
    assert with_late_verdicts([EPISODE, records[2]])[0].verdict == EPISODE.verdict
    unjudged = replace(EPISODE, verdict=None)
    assert with_late_verdicts([unjudged, records[2]])[0].verdict == records[2].verdict


def test_sides_of_shadow_runs_are_no_verdicts():
    """What was said of calls that nobody ran says nothing of the answer."""
    view = replace(
        EPISODE, episode_id="v", verdict=Verdict(passed=False), metadata={"view_of": "e"}
    )
    shadow = said("s", shadow_of="v")
    of_view = said("t", of="v")
    assert not is_late_verdict(view)
    assert not is_late_verdict(shadow)
    assert with_late_verdicts([EPISODE, view, shadow, of_view]) == (EPISODE,)


def test_a_verdict_on_a_verdict_is_about_the_episode():
    """It is followed to what it is about; a circle leads nowhere."""
    (found,) = with_late_verdicts([EPISODE, said("1", passed=True), said("2", of="1")])
    assert not found.verdict.passed
    assert with_late_verdicts([said("1", of="2"), said("2", of="1"), EPISODE]) == (EPISODE,)


CALL = ToolCall(call_id="1", name="search", arguments={"q": "tea"})
OTHER = ToolCall(call_id="2", name="book", arguments={"seats": 2})
WRONG = Evidence(kind="wrong_tool", message="search", tool="book", expected="search", actual="book")
TRACE = RetrievalTrace(
    query="tea",
    shortlist=("search", "book"),
    offered=("search",),
    goals=(GoalTrace(intent="tea", ranked=("book", "search")),),
    cards=("search",),
)


def episode(**changes):
    """An episode that mentions both tools in every part that can."""
    results = tuple(
        ToolResult(call_id=one.call_id, name=one.name, status="ok", value=7, text="search")
        for one in (CALL, OTHER)
    )
    turn = Turn(
        message=AssistantMessage(text="I search.", tool_calls=(CALL, OTHER)),
        results=results,
        retrieval=TRACE,
        searches=(TRACE,),
        refine=RefineTrace(mode="adaptive", proposals=((CALL,),), chosen=0, converged=True),
    )
    about = Attribution(label="argument_mismatch", tool="search", parameter="q", call_id="1")
    diagnosis = Diagnosis(
        label="argument_mismatch",
        turns=(
            TurnDiagnosis(
                turn=0,
                label="argument_mismatch",
                tool="search",
                evidence=(WRONG,),
                attributions=(about,),
            ),
        ),
        recoveries=(
            Recovery(turn=0, call_id="1", tool="search", kind="timeout", outcome="abandoned"),
        ),
    )
    given = {
        "episode_id": "e1",
        "request": "Search for tea.",
        "turns": (turn,),
        "verdict": Verdict(passed=True, evidence=(WRONG,)),
        "diagnosis": diagnosis,
        "library_names": {"search": "search__2"},
    }
    return Episode(**(given | changes))


def test_every_name_becomes_that_of_the_library():
    """Calls, results, searches, verdict and diagnosis are renamed; texts and other tools are not."""
    renamed = in_library_names(episode())
    text = json.dumps(renamed.to_json())
    assert (
        text.count('"search"') == 4
    )  # the texts of two results, and evidence's message, kept twice
    was = json.dumps(episode(library_names={}).to_json())
    spelled = was.replace('"search"', '"search__2"')
    for word in ("text", "message"):
        spelled = spelled.replace(f'"{word}": "search__2"', f'"{word}": "search"')
    kept = json.loads(spelled) | {"format": 2}
    assert json.loads(text) == kept


def test_names_that_change_places_are_not_mixed_up():
    """Each name is looked up once, so an exchange is an exchange."""
    swapped = episode(library_names={"search": "book", "book": "search"})
    assert [call.name for call in in_library_names(swapped).calls] == ["book", "search"]


@pytest.mark.parametrize(
    "named",
    [
        lambda one: {use.tool for use in uses_of([one])},
        lambda one: {
            step.tool for path in trajectories_of([one]).trajectories for step in path.steps
        },
        lambda one: set(usage_of([one]).called),
    ],
    ids=["learning", "mining", "doctor"],
)
def test_readers_of_episodes_know_the_tool(named):
    """Whoever counts or learns by tool finds the library's name, for both records of a tool."""
    assert named(episode()) == {"search__2", "book"}
    assert named(episode(library_names={})) == {"search", "book"}
