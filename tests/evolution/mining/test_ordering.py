"""Calls are only put together when nothing has to happen between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.evolution.mining import MiningConfig, mine
from agentkit.evolution.patterns import SearchLimits
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit.tools.definition import Effects


def step(tool, **sources):
    """A call; its result is told apart by the arguments."""
    return Step(tool=tool, sources=sources, result={"id": f"{tool} {sources}"})


def corpus(between, copies=6):
    """Trajectories of two linked calls with another call in between."""
    made = []
    for number in range(copies):
        steps = [
            step("search", q=Given(value=f"q{number}")),
            step(between, note=Given(value=f"n{number}")),
            step("book", ref=Flow(step=0, path=("id",))),
        ]
        made.append(Trajectory(trajectory_id=f"e{number}", steps=tuple(steps)))
    return made


@pytest.fixture
def tools(travel_tools):
    """Tools of which two read, one writes and one does not say."""
    base = travel_tools["search_airport"]
    effects = {
        "search": Effects.of(["reads"]),
        "look": Effects.of(["reads"]),
        "book": Effects.of(["destructive"]),
        "pay": Effects.of(["writes"]),
        "mystery": Effects(),
    }
    return {
        name: replace(base, name=name, signature=replace(base.signature, effects=one))
        for name, one in effects.items()
    }


def test_a_reading_call_in_between_may_move(tools):
    """Two calls go together across one that changes nothing."""
    (composite,) = mine(corpus("look"), tools).composites
    assert [one.tool for one in composite.lifting.pattern.steps] == ["search", "book"]


@pytest.mark.parametrize("between", ["pay", "mystery"])
def test_a_changing_call_in_between_keeps_its_place(tools, between):
    """Calls that change something, or may, are not moved across."""
    assert mine(corpus(between), tools).composites == ()


def test_a_call_that_uses_one_and_feeds_the_other_is_in_the_way(tools):
    """When the way between two calls leads through a third, the two alone are no group."""
    made = []
    for number in range(6):
        steps = (
            step("search", q=Given(value=f"q{number}")),
            step("look", q=Flow(step=0, path=("id",))),
            step("look", q=Flow(step=1, path=("id",)), r=Flow(step=0, path=("id",))),
        )
        made.append(Trajectory(trajectory_id=f"e{number}", steps=steps))
    rules = MiningConfig(search=SearchLimits(max_calls=2), rounds=1)
    found = mine(made, tools, rules).composites
    assert all(
        {name for name, _ in one.lifting.pattern.steps[1].arguments} != {"q", "r"}
        or one.lifting.pattern.steps[0].tool == "look"
        for one in found
    )


def test_an_argument_made_of_a_result_is_no_parameter(tools):
    """A sentence with a result in it can not be known before: the calls stay apart."""
    made = []
    for number in range(6):
        steps = (
            step("search", q=Given(value=f"q{number}")),
            step(
                "look",
                id=Flow(step=0, path=("id",)),
                text=Given(value=f"about {number}", uses=(0,)),
            ),
        )
        made.append(Trajectory(trajectory_id=f"e{number}", steps=steps))
    assert mine(made, tools).composites == ()
