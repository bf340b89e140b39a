"""Files of tasks: read, written, checked; and the example with the shop."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import (
    AllowedCalls,
    AnyCall,
    ExactCalls,
    FinalState,
    GoldCall,
    NoCall,
    NumberAnswer,
    Rubric,
    Task,
    TextAnswer,
    UserTurn,
    dump_tasks,
    load_tasks,
)
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.metrics import AllowedCall
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

ADD = {"name": "add", "arguments": {"a": 2, "b": 2}}
GOLD = GoldCall(name="add", arguments={"a": 2, "b": 2})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"calls": [ADD]}, ExactCalls(calls=(GOLD,))),
        (
            {"allowed": [{"name": "add", "arguments": {"a": [2], "b": [2, ""]}}]},
            AllowedCalls(calls=(AllowedCall(name="add", allowed={"a": [2], "b": [2, ""]}),)),
        ),
        ({"any_call": True}, AnyCall()),
        ({"no_call": True}, NoCall()),
        ({"number": 72}, NumberAnswer(value="72")),
        ({"number": "1,072.50"}, NumberAnswer(value="1,072.50")),
        (
            {"number": {"value": 0.1, "tolerance": 0.01}},
            NumberAnswer(value="0.1", tolerance=0.01),
        ),
        ({"text": "Paris"}, TextAnswer(text="Paris")),
        ({"contains": "Paris"}, TextAnswer(text="Paris", match="contains")),
        ({"state": {"open": False}}, FinalState(state={"open": False})),
        ({"actions": [ADD]}, FinalState(calls=(GOLD,))),
        ({"actions": []}, FinalState()),
        (
            {"actions": {"calls": [ADD], "responses": True}},
            FinalState(calls=(GOLD,), responses=True),
        ),
        ({"rubric": {"polite": "It is polite."}}, Rubric(criteria={"polite": "It is polite."})),
    ],
)
def test_every_expectation_has_a_form(write, tools, row, tmp_path, written, meant):
    """Each way of judging is one key, and is written back so that it means the same."""
    benchmark = load_tasks(write(row(expects=written)), tools=tools)
    assert [str(one) for one in benchmark.left_out] == []
    assert benchmark.tasks[0].expects == (meant,)
    dump_tasks(benchmark.tasks, tmp_path / "again.jsonl")
    assert load_tasks(tmp_path / "again.jsonl", tools=tools).tasks == benchmark.tasks


def test_several_expectations_all_hold(write, row, tmp_path):
    """Keys beside each other, texts in a list, and objects in a list are expected together."""
    together = {"contains": ["a", "b"], "no_call": True}
    listed = [{"contains": "a"}, {"contains": "b"}, {"no_call": True}]
    rows = (row(expects=together), row(id="u", expects=listed))
    first, second = load_tasks(write(*rows)).tasks
    a, b = (TextAnswer(text=text, match="contains") for text in "ab")
    assert first.expects == second.expects == (a, b, NoCall())
    dump_tasks([first], tmp_path / "again.jsonl")
    assert load_tasks(tmp_path / "again.jsonl").tasks == (first,)


def test_a_whole_conversation(write, tools, tmp_path):
    """History, instructions, start, tools by turn and follow-ups are all kept."""
    record = {
        "id": "talk",
        "category": "long",
        "instructions": "Be brief.",
        "start": {"open": True},
        "history": [
            {"role": "system", "text": "Hello."},
            {"role": "user", "text": "2 + 2?"},
            {"role": "assistant", "tool_calls": [{"call_id": "c", **ADD}]},
            {"role": "tool", "call_id": "c", "name": "add", "text": "4"},
        ],
        "request": "And 1 more?",
        "tools": ["add"],
        "follow_ups": [
            {"request": "Fine."},
            {"request": "A table?", "tools": ["book_table"], "expects": {"any_call": True}},
        ],
    }
    path = write(record)
    (task,) = load_tasks(path, tools=tools).tasks
    call = ToolCall(call_id="c", name="add", arguments={"a": 2, "b": 2})
    assert task == Task(
        task_id="talk",
        category="long",
        request="And 1 more?",
        offered=("add",),
        history=(
            SystemMessage(text="Hello."),
            UserMessage(text="2 + 2?"),
            AssistantMessage(tool_calls=(call,)),
            ToolMessage(call_id="c", name="add", text="4"),
        ),
        follow_ups=(
            UserTurn(request="Fine."),
            UserTurn(request="A table?", expects=(AnyCall(),), offers=("book_table",)),
        ),
        instructions="Be brief.",
        start={"open": True},
    )
    dump_tasks([task], tmp_path / "again.jsonl")
    assert load_tasks(tmp_path / "again.jsonl", tools=tools).tasks == (task,)


def test_tasks_that_name_no_tools_offer_all(write, tools, row):
    """Left out, ``tools`` means all there are; an empty list means none."""
    all_of_them, none = load_tasks(write(row(), row(id="u", tools=[])), tools=tools).tasks
    assert all_of_them.offered == ("add", "book_table")
    assert none.offered == ()


def test_bound_tools_are_run_and_unbound_ones_only_judged(write, tools, row):
    """With a tool that runs there is an environment; with definitions alone there is none."""
    path = write(row())
    with_functions = load_tasks(path, tools=tools)
    assert with_functions.environment is not None
    assert with_functions.environment(with_functions.tasks[0]).state() == {}
    assert load_tasks(path, tools=tools[1:]).environment is None
    assert load_tasks(path).environment is None


def test_defaults_hold_for_the_tasks_below(write, row):
    """What tasks have in common is said once; a task's own field goes before."""
    rows = (
        row(),
        {"defaults": {"instructions": "Be brief.", "category": "sums", "tools": []}},
        row(id="u"),
        row(id="v", category="odd"),
        {"defaults": {"instructions": "Be polite."}},
        row(id="w"),
    )
    tasks = load_tasks(write(*rows)).tasks
    assert [(task.instructions, task.category) for task in tasks] == [
        ("", "tasks"),
        ("Be brief.", "sums"),
        ("Be brief.", "odd"),
        ("Be polite.", "tasks"),
    ]


def test_tasks_below_broken_defaults_are_left_out(write, row):
    """Without the rules that they were written for, tasks would ask something else."""
    rows = ({"defaults": {"instruction": "Be brief."}}, row(), {"defaults": {}}, row(id="u"))
    benchmark = load_tasks(write(*rows))
    assert [task.task_id for task in benchmark.tasks] == ["u"]
    first, second = map(str, benchmark.left_out)
    assert first.startswith("tasks.jsonl, line 1: defaults.instruction: there is no such field")
    assert second == "tasks.jsonl, line 2: the defaults above it are not readable"


def test_the_file_may_be_packed_and_have_a_mark(tmp_path, write, row):
    """A ``.gz`` is unpacked, a byte order mark and Windows line ends do not matter."""
    text = b"\xef\xbb\xbf" + write(row()).read_bytes().replace(b"\n", b"\r\n")
    path = tmp_path / "mine.jsonl.gz"
    path.write_bytes(gzip.compress(text))
    benchmark = load_tasks(path)
    assert (benchmark.name, len(benchmark.tasks), benchmark.left_out) == ("mine", 1, ())


@pytest.mark.parametrize("content", [b"", b"\n  \n"])
def test_an_empty_file_says_what_to_write(tmp_path, content):
    """A file without a row raises, with a row to begin with."""
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r'is empty; write one task a line, such as \{"id"'):
        load_tasks(path)


def test_what_is_no_json_is_not_written(tmp_path):
    """A task with NaN raises, and the file of before stays as it was."""
    path = tmp_path / "kept.jsonl"
    path.write_text("before")
    task = Task(task_id="t", category="c", request="?", offered=(), start={"x": float("nan")})
    with pytest.raises(UsageError, match="task 't' cannot be written as JSON"):
        dump_tasks([task], path)
    assert path.read_text() == "before"


NAMES = ("ask", "tell", "écrire")
ANY = {"type": "object", "additionalProperties": True}
TOOLS = [Tool(definition=ToolDefinition.from_schema(name, "", ANY)) for name in NAMES]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
words = texts.filter(lambda text: text.strip())
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
rows = st.one_of(
    st.binary(max_size=40),
    values.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {"id": values, "request": values},
        optional={
            "expects": st.dictionaries(
                st.sampled_from(
                    ["calls", "allowed", "number", "state", "actions", "rubric", "text"]
                ),
                values | st.lists(st.fixed_dictionaries({"name": values, "arguments": values})),
                max_size=2,
            )
            | values,
            "tools": values,
            "history": values,
            "follow_ups": values,
            "defaults": values,
        },
    ).map(lambda value: json.dumps(value).encode()),
)


@given(st.lists(rows, max_size=4))
def test_no_bytes_stop_a_reader(given_rows):
    """Every row is a task or is counted with a reason; only a file without rows raises."""
    content = b"\n".join(given_rows)
    wanted = sum(bool(line.strip()) for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.jsonl"
        path.write_bytes(content)
        try:
            benchmark = load_tasks(path, tools=TOOLS)
        except DatasetError:
            assert wanted == 0
            return
    defaults = wanted - len(benchmark.tasks) - len(benchmark.left_out)
    assert 0 <= defaults <= content.count(b'"defaults"')
    assert all(one.reason and one.where for one in benchmark.left_out)
