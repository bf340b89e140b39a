"""Which episodes count, and what of them."""

from __future__ import annotations

import pytest

from agentkit import Episode
from agentkit.episodes import Turn, Verdict
from agentkit.evolution.trajectories import is_success, trajectories_of
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult


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
