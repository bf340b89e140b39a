"""A gold call that fails in the world of its task is not taught."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import tool
from agentkit.errors import ModelRetry, ToolFailed
from agentkit.evaluation import (
    Benchmark,
    ExactCalls,
    FinalState,
    GoldCall,
    NumberAnswer,
    Task,
    TextAnswer,
    with_tools as environment_of,
)
from agentkit_training import tiny_policy
from agentkit_training.fine_tuning.teaching import taught_examples
from agentkit_training.tasks.loading import TaskSpec

LITRES = {"fern": 1.5, "cactus": 0.1}


@tool
def water_need(plant: str, days: int) -> dict[str, float | str]:
    """How much water a plant needs, in litres.

    Args:
        plant: Its name.
        days: For how long.
    """
    if plant == "weed":
        raise ToolFailed("weeds are not watered")
    if plant == "seed":
        raise ModelRetry("ask for the plant that it becomes")
    if plant == "stone":
        return {"error": "a stone drinks nothing"}
    if plant not in LITRES:
        raise ValueError(f"no plant is named {plant}")
    return {"litres": LITRES[plant] * days}


def call(plant, days=3):
    return GoldCall(name="water_need", arguments={"plant": plant, "days": days})


def garden(**expected):
    """Tasks by their ids, each with what it expects."""
    tasks = tuple(
        Task(task_id=name, category="", request="Water?", offered=("water_need",), expects=expects)
        for name, expects in expected.items()
    )
    return Benchmark(
        name="garden",
        tasks=tasks,
        definitions=(water_need.definition,),
        environment=environment_of([water_need]),
    )


def taught(benchmark, *, template="chatml", **more):
    """The ids of the tasks that are taught, and why the others are not."""
    policy = tiny_policy(context_tokens=2048, chat_template=template)
    spec = TaskSpec(source="garden.jsonl")
    found = asyncio.run(taught_examples(policy, benchmark, spec, **more))
    return [one.task_id for one in found.rows], {one.where: one.reason for one in found.left_out}


def test_a_call_that_raises_is_left_out_with_its_error():
    """The reason names the call and what the tool raised; other tasks are taught."""
    rows, left_out = taught(
        garden(fern=(ExactCalls(calls=(call("fern"),)),), rose=(ExactCalls(calls=(call("rose"),)),))
    )
    assert rows == ["fern"]
    assert left_out == {
        "rose": (
            'a gold call fails: water_need(plant="rose", days=3): '
            "ValueError: no plant is named rose"
        )
    }


def test_a_call_on_the_way_to_a_state_is_named_as_well():
    """Where gold calls lead to a state, the one that raises is told, not the fault it makes."""
    expects = (FinalState(calls=(call("fern"), call("rose"))),)
    rows, left_out = taught(garden(fern=(ExactCalls(calls=(call("fern"),)),), both=expects))
    assert rows == ["fern"]
    assert left_out["both"].startswith('a gold call fails: water_need(plant="rose"')


@pytest.mark.parametrize("plant", ["weed", "seed"])
def test_a_refusal_is_taught_where_the_task_expects_more_than_calls(plant):
    """What a tool refuses on purpose belongs to a solution that words or a state confirm."""
    calls = ExactCalls(calls=(call(plant),))
    rows, left_out = taught(
        garden(
            told=(calls, TextAnswer(text="I can not say.")),
            alone=(calls,),
            state=(FinalState(calls=(call(plant),)),),
        )
    )
    assert rows == ["told", "state"]
    assert left_out["alone"].startswith(f'a gold call fails: water_need(plant="{plant}", days=3)')


def test_an_answer_that_no_result_holds_is_taught():
    """Answers may be worked out from results, so that only their author knows them."""
    expects = (ExactCalls(calls=(call("fern"),)), NumberAnswer(value="99"))
    assert taught(garden(sum=expects)) == (["sum"], {})
