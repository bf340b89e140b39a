"""NESTFUL's questions as plans, and call by call on recorded responses."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from agentkit import open_store
from agentkit.evaluation import DataFlow
from agentkit.evaluation.runner import evaluate
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import FunctionModel
from agentkit.tools.validation import validate_arguments
from agentkit_bench import nestful_benchmark

SAMPLE = Path(__file__).parent / "sample_nestful"


def by_id(benchmark, task_id):
    """One task."""
    return next(task for task in benchmark.tasks if task.task_id == task_id)


def test_a_plan_is_judged_by_its_flow_of_data():
    """The gold calls keep upstream's references; the tools that are offered take them."""
    benchmark = nestful_benchmark(SAMPLE)
    task = by_id(benchmark, "nestful:complexfuncbench:0")
    (gold,) = task.expects
    assert isinstance(gold, DataFlow)
    assert gold.calls[2].arguments["from_id"] == "$var1.id$"
    assert "$var1.name$" in task.instructions
    assert benchmark.environment is None
    tools = {definition.name: definition for definition in benchmark.definitions}
    for task in benchmark.tasks:
        for call in task.expects[0].calls:
            assert validate_arguments(tools[call.name], call.arguments) == ()


def test_a_plan_is_told_what_tools_return():
    """Fields that a reference may name are in the tool's text."""
    benchmark = nestful_benchmark(SAMPLE)
    texts = {definition.name: definition.text for definition in benchmark.definitions}
    assert all("Returns: " in text for text in texts.values())
    assert "where.lat" in texts["Find_Place"]


def test_executed_questions_have_recorded_responses():
    """Only ComplexFuncBench recorded any; what they return is seen call by call."""
    benchmark = nestful_benchmark(SAMPLE, asking="executed")
    assert {task.category for task in benchmark.tasks} == {"complexfuncbench"}
    task = by_id(benchmark, "nestful:complexfuncbench:0")
    find = {tool.name: tool for tool in benchmark.environment(task).tools()}["Find_Place"]
    assert find(query="Aker")[0]["id"] == "AK01"
    left = {one.where: one.reason for one in benchmark.left_out}
    assert left["nestful:glaive:0"] == "what its calls return was not recorded"


def test_other_tools_are_offered_beside_those_of_the_gold():
    """Questions offer as many tools as are asked for, and the order tells nothing."""
    few, many = nestful_benchmark(SAMPLE, offered=1), nestful_benchmark(SAMPLE, offered=8)
    for task in few.tasks:
        assert set(task.offered) == {call.name for call in task.expects[0].calls}
    for task in many.tasks:
        assert {call.name for call in task.expects[0].calls} <= set(task.offered)
    assert [task.offered for task in many.tasks] == [
        task.offered for task in nestful_benchmark(SAMPLE, offered=8).tasks
    ]


@pytest.fixture
def changed(tmp_path):
    """A copy of the sample in which one question was changed."""

    def folder(change):
        copy = tmp_path / "nestful"
        shutil.copytree(SAMPLE, copy)
        path = copy / "complexfuncbench" / "complexfuncbench-data.json"
        rows = json.loads(path.read_text())
        change(rows[0]["output"])
        path.write_text(json.dumps(rows))
        return copy

    return folder


def test_a_record_that_is_cut_short_is_left_out_where_it_matters(changed):
    """A question whose later call needs what is missing can be planned, and not executed."""

    def clip(calls):
        calls[0]["response"] = {"_clipped_chars": 9000, "_head": '[{"na'}

    folder = changed(clip)
    executed = nestful_benchmark(folder, asking="executed")
    left = {one.where: one.reason for one in executed.left_out}
    assert "cut short, and a later call needs" in left["nestful:complexfuncbench:0"]
    assert by_id(nestful_benchmark(folder), "nestful:complexfuncbench:0")


def test_gold_that_breaks_a_schema_is_left_out(changed):
    """A gold call that its tool refuses can not be made, so nobody is asked for it."""

    def spoil(calls):
        calls[2]["arguments"]["class"] = "balloon"

    benchmark = nestful_benchmark(changed(spoil))
    left = {one.where: one.reason for one in benchmark.left_out}
    assert "`class` must be one of 'deck', 'cabin'" in left["nestful:complexfuncbench:0"]


def test_gold_of_an_absent_tool_is_left_out(changed):
    """A question whose gold calls a tool that is not defined stops no other."""

    def rename(calls):
        calls[2]["name"] = "Find_Boats"

    folder = changed(rename)
    for asking in ("planned", "executed"):
        benchmark = nestful_benchmark(folder, asking=asking)
        left = {one.where: one.reason for one in benchmark.left_out}
        assert "there is no tool 'Find_Boats'" in left["nestful:complexfuncbench:0"]


def knowing(request):
    """A model that looks both places up, makes a mistake, corrects it and answers."""
    text = request.messages[-1].text
    done = [one for one in request.messages if isinstance(one, AssistantMessage)]
    if "Aker to Moss" not in request.messages[0].text:
        return "I do not know."
    right = {"from_id": "AK01", "to_id": "MO02", "day": "2026-05-01"}
    if not done:
        return [
            ToolCall(call_id=place, name="Find_Place", arguments={"query": place})
            for place in ("Aker", "Moss")
        ]
    if len(done) == 1:
        assert "MO02" in text
        wrong = {**right, "to_id": "MO03"}
        return [ToolCall(call_id="a", name="Find_Boats(Day)", arguments=wrong)]
    if len(done) == 2:
        assert "there is no answer to these arguments" in text
        assert "MO02" not in text
        return [ToolCall(call_id="b", name="Find_Boats(Day)", arguments=right)]
    return "B-0 goes from Aker to Moss."


async def test_a_model_that_recovers_passes():
    """All gold calls made is a pass, calls that were refused do not count; no call is a failure."""
    benchmark = nestful_benchmark(SAMPLE, asking="executed")
    store = open_store("memory:")
    await evaluate(benchmark, model=FunctionModel(knowing), store=store, run="r")
    verdicts = {one.metadata["task"]: one.verdict for one in store.select()}
    right = verdicts.pop("nestful:complexfuncbench:0")
    assert right.passed
    assert right.metrics == dict.fromkeys(
        ("full_match", "partial_match", "function_f1", "parameter_f1"), 1.0
    )
    assert not any(verdict.passed for verdict in verdicts.values())
    (missing, *_) = next(iter(verdicts.values())).evidence
    assert missing.message == "Find_Place was not called"


async def test_a_gold_plan_passes():
    """The gold calls as one message are right; without a reference they are not."""
    benchmark = nestful_benchmark(SAMPLE)
    gold = {task.request: task.expects[0].calls for task in benchmark.tasks}

    def planning(request):
        calls = gold[request.messages[-1].text]
        if "Aker to Moss" in request.messages[-1].text:
            calls = calls[2:]
        return [
            ToolCall(call_id=str(at), name=call.name, arguments=call.arguments)
            for at, call in enumerate(calls)
        ]

    store = open_store("memory:")
    await evaluate(benchmark, model=FunctionModel(planning), store=store, run="r")
    episodes = {one.metadata["task"]: one for one in store.select()}
    wrong = episodes.pop("nestful:complexfuncbench:0").verdict
    assert not wrong.passed
    assert wrong.metrics["partial_match"] == 0.0
    assert wrong.metrics["function_f1"] == 0.5
    assert all(one.verdict.passed for one in episodes.values())
    assert {one.stop_reason for one in episodes.values()} == {"deferred"}


@pytest.mark.corpora
def test_the_whole_of_nestful_loads(planned, executed):
    """What can be asked of each source, in either way, is as in the documents."""
    assert Counter(task.category for task in planned.tasks) == {
        "complexfuncbench": 998,
        "glaive": 140,
        "executable": 81,
        "sgd": 43,
    }
    assert len(planned.left_out) == 38
    assert Counter(task.category for task in executed.tasks) == {"complexfuncbench": 803}
    assert len(executed.left_out) == 497
