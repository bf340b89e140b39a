"""Held-out tasks with two libraries."""

from __future__ import annotations

from dataclasses import replace

from agentkit import Library, ToolDefinition, open_store
from agentkit.evaluation import Benchmark, ExactCalls, GoldCall, Task
from agentkit.evaluation.held_out import HeldOut
from agentkit.evaluation.settings import EvaluationSettings
from agentkit.messages import ToolCall
from agentkit.models.base import ModelSettings
from agentkit.testing import FunctionModel


def tool(name, summary=""):
    """A tool that takes a place."""
    schema = {"type": "object", "properties": {"place": {"type": "string"}}}
    return ToolDefinition.from_schema(name, summary, schema)


TIDE = tool("tide")
BETTER = tool("tide", "Harbours in capitals.")
TASKS = tuple(
    Task(
        task_id=f"t{number}",
        category="tides",
        request="When is high water at Aker?",
        offered=("tide",),
        expects=(ExactCalls(calls=(GoldCall(name="tide", arguments={"place": "AKER"}),)),),
    )
    for number in range(4)
)
OTHER = Task(task_id="other", category="weather", request="Rain?", offered=("weather",))


class Reader:
    """A model that does what the text says, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0
        self.model = FunctionModel(self._answer, name="reader")

    def _answer(self, request):
        self.asked += 1
        place = "AKER" if "capitals" in request.tools[0].text else "Aker"
        return [ToolCall(call_id="1", name="tide", arguments={"place": place})]


def held_out(reader, **changes):
    """The four tasks about tides and one about something else."""
    benchmark = Benchmark(name="tides", tasks=(*TASKS, OTHER), definitions=(TIDE, tool("weather")))
    made = HeldOut(benchmark=benchmark, model=reader.model, store=open_store("memory:"))
    return replace(made, **changes)


async def test_each_task_that_offers_the_tool_has_a_pair():
    """Tasks about other tools are not asked, and each pair holds both scores."""
    pairs = await held_out(Reader())("tide", Library([TIDE]), Library([BETTER]))
    assert {pair.task for pair in pairs} == {"t0", "t1", "t2", "t3"}
    assert {(pair.control, pair.candidate) for pair in pairs} == {(0.0, 1.0)}


async def test_what_is_known_is_not_asked_again():
    """A library of the same content has its answers, whatever its version."""
    reader = Reader()
    compare = held_out(reader)
    await compare("tide", Library([TIDE]), Library([BETTER]))
    assert reader.asked == 8
    again = await compare("tide", Library([TIDE], version=3), Library([BETTER], version=4))
    assert (reader.asked, len(again)) == (8, 4)


async def test_tasks_that_were_learned_from_meanwhile_are_left_out():
    """Their answers from an earlier round are there, and count no more."""
    reader = Reader()
    compare = held_out(reader)
    await compare("tide", Library([TIDE]), Library([BETTER]))
    later = replace(compare, learned_from={"t0", "t1"})
    pairs = await later("tide", Library([TIDE]), Library([BETTER]))
    assert {pair.task for pair in pairs} == {"t2", "t3"}
    assert reader.asked == 8


async def test_another_way_of_asking_is_another_run():
    """Answers to other settings are neither used nor in the way."""
    reader = Reader()
    compare = held_out(reader)
    await compare("tide", Library([TIDE]), Library([BETTER]))
    warm = EvaluationSettings(settings=ModelSettings(temperature=1.0))
    pairs = await replace(compare, settings=warm)("tide", Library([TIDE]), Library([BETTER]))
    assert (reader.asked, len(pairs)) == (16, 4)


async def test_a_tool_without_tasks_has_no_pairs():
    """Nothing is asked where no held-out task offers the tool."""
    reader = Reader()
    assert await held_out(reader)("lamp", Library([TIDE]), Library([BETTER])) == ()
    assert reader.asked == 0
