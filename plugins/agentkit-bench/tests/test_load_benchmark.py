"""Benchmarks by name, rows that are broken, and gold that passes gold."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agentkit.episodes import Episode, Turn
from agentkit.errors import UsageError
from agentkit.evaluation import load_benchmark
from agentkit.evaluation.verifiers.making import Scene, verifier_for
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit_bench.nestful import load_nestful

SAMPLES = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "folder", "tasks"),
    [
        ("bfcl", "sample_bfcl", 12),
        ("nestful", "sample_nestful", 6),
        ("nestful-executed", "sample_nestful", 6),
        ("gsm8k", "sample_gsm8k/sample.jsonl", 10),
    ],
)
def test_a_name_loads_its_data(name, folder, tasks):
    """Data from a path is read without any download."""
    assert len(load_benchmark(name, data=SAMPLES / folder).tasks) >= min(tasks, 4)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("bcfl", {}, "there is no benchmark 'bcfl'; name one of bfcl, bfcl-multi-turn"),
        ("gsm8k", {}, "GSM8K is in no package, so its data has to be given: test.jsonl"),
        ("humaneval", {"environment": lambda _: None}, "humaneval has its own tools; leave out"),
    ],
)
def test_what_does_not_go_together_is_refused(name, options, reason):
    """The message says what to leave out or to add."""
    with pytest.raises(UsageError, match=reason):
        load_benchmark(name, **options)


EACH = 10


def rows(folder):
    """The rows of a file of problems, by id."""
    with gzip.open(folder / "problems.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {row["id"]: row for row in map(json.loads, lines)}


def said(text):
    """An episode that ends in words."""
    return Episode(episode_id="gold", request="", output=text)


def called(calls, answer=None):
    """An episode with one call a turn, each answered where ``answer`` is given."""
    turns = []
    for at, call in enumerate(calls):
        made = ToolCall(call_id=str(at), name=call.name, arguments=call.arguments)
        results = ()
        if answer is not None:
            value = answer(made)
            results = (ToolResult(call_id=str(at), name=call.name, status="ok", value=value),)
        turns.append(Turn(message=AssistantMessage(tool_calls=(made,)), results=results))
    return Episode(episode_id="gold", request="", turns=tuple(turns), output="Done.")


def scenes_of(benchmark):
    """What there is to judge a task with: the tools that it offers."""
    tools = {definition.name: definition for definition in benchmark.definitions}
    return lambda task: Scene(definitions=tuple(tools[name] for name in task.offered))


async def failed(tasks, episode_of, scene_of=lambda _: Scene()):
    """Ids of the tasks whose gold answer does not pass."""
    found = []
    for task in tasks:
        (expected,) = task.expects
        verdict = await verifier_for(expected, scene_of(task)).verify(episode_of(task))
        found += [] if verdict.passed else [(task.task_id, verdict)]
    return found


@pytest.mark.corpora
async def test_solutions_of_gsm8k(corpus, word_problems, every):
    """Solutions of the test split end in the number that is expected."""
    solutions = rows(corpus("gsm8k"))
    test = [task for task in word_problems.tasks if task.category == "test"]
    tasks = every(EACH, test)
    assert len(tasks) in {132, 1319}
    assert await failed(tasks, lambda task: said(solutions[task.task_id]["solution"])) == []


@pytest.mark.corpora
async def test_plans_of_nestful(planned, every):
    """Gold sequences that are asked for flow as themselves."""
    episodes = {task.task_id: called(task.expects[0].calls) for task in planned.tasks}
    tasks = every(EACH, planned.tasks)
    scenes = scenes_of(planned)
    assert await failed(tasks, lambda task: episodes[task.task_id], scenes) == []


@pytest.mark.corpora
async def test_recorded_runs_of_nestful(corpus, executed, every):
    """Recorded runs, replayed in their worlds with the values of the records, are right."""
    questions = load_nestful(corpus("nestful")).questions
    recorded = {one.trajectory.trajectory_id: one.trajectory for one in questions}

    def run(task):
        world = {tool.name: tool for tool in executed.environment(task).tools()}
        trajectory = recorded[task.task_id]
        calls = [
            ToolCall(call_id="", name=step.tool, arguments=trajectory.arguments(at))
            for at, step in enumerate(trajectory.steps)
        ]
        return called(calls, lambda call: world[call.name](**call.arguments))

    assert await failed(every(EACH, executed.tasks), run, scenes_of(executed)) == []
