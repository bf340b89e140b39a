"""Trajectories out of episodes, and the flows of data in them."""

from __future__ import annotations

import pytest

from agentkit import Episode
from agentkit.episodes import Turn, Verdict
from agentkit.evolution.trajectories import (
    Flow,
    Given,
    Step,
    Trajectory,
    find_flows,
    is_success,
    trajectories_of,
)
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult

# --- Where arguments came from, found by comparing values over several episodes ------------------


def calls_of(trajectory_id, calls, *, request=""):
    """A trajectory from names, arguments and results of calls, before its flows are found."""
    steps = tuple(
        Step(tool=name, sources={k: Given(value=v) for k, v in arguments.items()}, result=result)
        for name, arguments, result in calls
    )
    return Trajectory(trajectory_id=trajectory_id, steps=steps, request=request)


def booking(number, *, result=None, argument=None, request="Book it."):
    """One episode: a search, and a booking with something of its result."""
    found = result or {"hotels": [{"id": f"H-{number}00", "stars": 4}], "page": 1}
    used = argument or {"hotel": f"H-{number}00", "nights": 1}
    calls = [("search", {"city": "Oslo"}, found), ("book", used, {"ok": True})]
    return calls_of(f"e{number}", calls, request=request)


def source(trajectories, name):
    """Where the first booking's argument came from."""
    return find_flows(trajectories).trajectories[0].steps[1].sources[name]


def test_a_value_held_by_an_earlier_result_is_a_flow():
    """The same place of the result explains the argument in several episodes."""
    flow = find_flows([booking(1), booking(2)])
    assert flow.trajectories[0].steps[1].sources["hotel"] == Flow(step=0, path=("hotels", 0, "id"))
    (route,) = flow.routes
    assert (route.support, route.confidence) == (2, 1.0)
    assert route.route.producer == "search"


@pytest.mark.parametrize("request_text", ["Book H-100 and h-200 in Oslo", "H-100, H-200"])
def test_what_the_request_says_is_no_flow(request_text):
    """A value that the user gave needs no other explanation."""
    told = [booking(1, request=request_text), booking(2, request=request_text)]
    assert source(told, "hotel") == Given(value="H-100")


@pytest.mark.parametrize(
    ("held", "used", "cast"),
    [
        ({"at": 59.9, "n": 0}, "59.9", "str"),
        ({"at": 59.9}, 59.9, ""),
        ({"at": "2632"}, 2632, "int"),
        ({"at": "-7.25"}, -7.25, "float"),
        ({"at": [1, {"b": 2}]}, [1, {"b": 2}], ""),
    ],
)
def test_casts_and_containers(held, used, cast):
    """Numbers passed on as text, text passed on as numbers, and whole lists are found."""
    same = [booking(n, result=held, argument={"hotel": used}) for n in (1, 2)]
    assert source(same, "hotel") == Flow(step=0, path=("at",), cast=cast)


# --- Which episodes count, and what of them ------------------------------------------------------


def episode(number=1, *, statuses=("ok",), output="done", **fields):
    """An episode with one call for each status."""
    calls = tuple(
        ToolCall(call_id=f"c{at}", name=f"tool{at}", arguments={"q": f"text {at}"})
        for at in range(len(statuses))
    )
    results = tuple(
        ToolResult(
            call_id=call.call_id,
            name=call.name,
            status=status,
            value={"id": f"id-{at}"} if status == "ok" else None,
            failure=None
            if status in {"ok", "deferred"}
            else ToolFailure(kind="tool_failed", rule="no"),
        )
        for at, (call, status) in enumerate(zip(calls, statuses, strict=True))
    )
    turn = Turn(message=AssistantMessage(tool_calls=calls), results=results)
    fields = {"request": "Do it.", "output": output, **fields}
    return Episode(episode_id=f"e{number}", turns=(turn,), **fields)


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (episode(), True),
        (episode(stop_reason="step_limit"), False),
        (episode(statuses=("failed", "ok")), False),
        (episode(statuses=("denied",)), False),
        (episode(statuses=("deferred",), stop_reason="deferred"), False),
        (episode(verdict=Verdict(passed=True), statuses=("failed", "ok")), True),
        (episode(verdict=Verdict(passed=False)), False),
    ],
)
def test_what_counts_as_success(made, counts):
    """A verdict decides; without one, an episode has to finish without a failed call."""
    assert is_success(made) is counts
    assert bool(trajectories_of([made]).trajectories) is counts


def test_only_calls_that_worked_are_steps():
    """Failed, denied and waiting calls are left out, wherever they stand."""
    made = episode(statuses=("failed", "ok", "denied", "ok"), verdict=Verdict(passed=True))
    (found,) = trajectories_of([made]).trajectories
    assert [step.tool for step in found.steps] == ["tool1", "tool3"]
    assert found.arguments(1) == {"q": "text 3"}


@pytest.mark.parametrize(
    ("output", "answered"),
    [
        ("The code is ID-1.", {1}),
        ({"codes": ["id-0", "id-1"]}, {0, 1}),
        ("done", set()),
        (None, set()),
    ],
)
def test_results_that_the_answer_shows(output, answered):
    """Something specific of a result in the answer marks the result as needed."""
    made = episode(statuses=("ok", "ok"), output=output)
    (found,) = trajectories_of([made]).trajectories
    assert found.answered == answered
