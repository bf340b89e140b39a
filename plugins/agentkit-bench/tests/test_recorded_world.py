"""A world of recorded responses."""

from __future__ import annotations

import pytest

from agentkit import ModelRetry, ToolDefinition
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit_bench import RecordedWorld

LOOK = ToolDefinition.from_schema(
    "look",
    "Look something up.",
    {
        "type": "object",
        "properties": {"at": {"type": "integer"}, "unit": {"type": "string", "default": "km"}},
    },
)
IDLE = ToolDefinition.from_schema("idle", "Do nothing.", {"type": "object", "properties": {}})
TRAJECTORY = Trajectory(
    trajectory_id="t",
    steps=(
        Step(tool="look", sources={"at": Given(value=1)}, result={"next": 2}),
        Step(tool="look", sources={"at": Flow(step=0, path=("next",))}, result="first"),
        Step(tool="look", sources={"at": Given(value=2)}, result="second"),
    ),
)


@pytest.fixture
def world():
    """Two tools, of which one was recorded."""
    return RecordedWorld(TRAJECTORY, [LOOK, IDLE])


@pytest.fixture
def look(world):
    """The recorded tool."""
    return next(tool for tool in world.tools() if tool.name == "look")


def test_a_recorded_call_is_answered(world, look):
    """Equal arguments get the recorded response, in whatever order, and the state tells."""
    assert look(at=2, unit="km") == "first"
    assert look(at=1) == {"next": 2}
    assert world.state() == {"made": {"1 look": True, "2 look": True}}


def test_a_call_that_was_recorded_twice_is_answered_in_order(world, look):
    """The first record, then the second, which stays the answer."""
    assert [look(at=2) for _ in range(3)] == ["first", "second", "second"]
    assert world.state() == {"made": {"2 look": True, "3 look": True}}


def test_another_call_may_be_tried_again(world, look):
    """What was not recorded is told so without a hint at what was."""
    idle = next(tool for tool in world.tools() if tool.name == "idle")
    for call in (lambda: look(at=3), look, idle):
        with pytest.raises(ModelRetry, match="no answer to these arguments"):
            call()
    assert world.state() == {"made": {}}
