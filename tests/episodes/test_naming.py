"""Episodes whose tools were offered under other names than the library has."""

from __future__ import annotations

import json

import pytest

from agentkit.episodes import (
    Attribution,
    Diagnosis,
    Episode,
    Evidence,
    GoalTrace,
    Recovery,
    RefineTrace,
    RetrievalTrace,
    Turn,
    TurnDiagnosis,
    Verdict,
)
from agentkit.episodes.labels import in_library_names
from agentkit.evaluation.doctor.catalogue import usage_of
from agentkit.evolution.learning import uses_of
from agentkit.evolution.trajectories import trajectories_of
from agentkit.messages import AssistantMessage, ToolCall, ToolResult

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
