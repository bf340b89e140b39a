"""A row that is no task is reported with its line and reason, counted, and stops no other."""

from __future__ import annotations

import pytest

from agentkit.evaluation import load_tasks

HISTORY = [{"role": "tool", "call_id": "x", "name": "add", "text": "4"}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "t", "request": "?"', "not JSON: Expecting ',' delimiter"),
        ("[1, 2]", "expected a JSON object, got a list"),
        ("7", "expected a JSON object, got 7"),
        (b'{"id": "\xff"}', "not JSON: 'utf-8' codec"),
        ('{"id": "t", "request": "\\ud800", "expects": {"no_call": true}}', "half of a surrogate"),
        ('{"id": "t", "id": "u", "request": "?"}', "'id' is given twice in one object"),
        ('{"id": "t", "request": "?", "expects": {"number": NaN}}', "not JSON: Out of range float"),
        (
            '{"id": "t", "request": "?", "expects": {"number": 1e999}}',
            "not JSON: Out of range float",
        ),
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
        ({"start": []}, "start: should be"),
        (
            {"history": [{"role": "robot", "text": ""}]},
            "history.0.role: should be one of system, user",
        ),
        ({"history": [{"role": "user", "content": "?"}]}, "history.0.content: there is no such"),
        ({"history": HISTORY}, "history.0.call_id: 'x' is not a call before it"),
        ({"history": [{"role": "user", "name": "add"}]}, "history.0.name: there is no such field"),
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
        (None, "expects: is missing; a task that expects nothing cannot be judged"),
        ({}, "expects: nothing is expected; use some of calls, allowed"),
        ("72", 'expected an object such as {"number": 72}'),
        ({"numbr": 72}, "expects.numbr: there is no such expectation; there are calls"),
        ({"calls": []}, 'expects.calls is empty; where no call is right, write {"no_call": true}'),
        ({"calls": {"name": "add"}}, "expects.calls: should be a valid array"),
        ({"calls": [{"nam": "add"}]}, "expects.calls.0.nam"),
        ({"calls": [{"name": "add", "arguments": [2]}]}, "expects.calls.0.arguments"),
        (
            {"allowed": [{"name": "add", "arguments": {"a": 2}}]},
            "expects.allowed.0.arguments",
        ),
        ({"allowed": [{"name": "add", "arguments": {"a": []}}]}, "arguments.a is empty; list the"),
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
        ({"calls": [{"name": "add"}]}, "missing required argument `a`"),
        ({"calls": [{"name": "add", "arguments": {"a": "x"}}]}, "`a` must be an integer"),
        ({"calls": [{"name": "add", "arguments": {"a": 1, "bb": 1}}]}, "did you mean 'b'?"),
        ({"actions": [{"name": "add", "arguments": {"a": 1.5}}]}, "`a` must be an integer"),
        ({"allowed": [{"name": "add", "arguments": {"a": ["x"]}}]}, "no other allowed value"),
        ({"allowed": [{"name": "add", "arguments": {"a": [""]}}]}, "'a' has no allowed value"),
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
    ],
    ids=str,
)
def test_gold_that_a_valid_call_meets(write, row, tools, expects):
    """A value that coerces, and one good value among several are no faults."""
    assert load_tasks(write(row(expects=expects)), tools=tools).left_out == ()


def test_gold_has_to_be_offered(write, row, tools):
    """A gold call to a tool that the turn does not offer cannot be made; a later turn may."""
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
