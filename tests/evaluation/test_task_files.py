"""Tasks in files: what is read, what is left out and why, and what is written."""

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
        ({"number": {"value": 0.1, "tolerance": 0.01}}, NumberAnswer(value="0.1", tolerance=0.01)),
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
        ({"allowed": [{"name": "add", "arguments": {"a": 2}}]}, "expects.allowed.0.arguments"),
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
