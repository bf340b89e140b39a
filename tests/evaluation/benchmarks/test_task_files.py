"""Files of tasks: read, written, checked; and the example with the shop."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agentkit import open_store
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
    load_benchmark,
    load_tasks,
)
from agentkit.evaluation.runner import evaluate
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from agentkit.metrics import AllowedCall
from agentkit.testing import FunctionModel
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
    with pytest.raises(UsageError, match="task 't' can not be written as JSON"):
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
objects = st.dictionaries(words, values, max_size=3)
filled = st.dictionaries(words, values, min_size=1, max_size=3)
gold = st.builds(GoldCall, name=st.sampled_from(NAMES), arguments=objects)
golds = st.lists(gold, min_size=1, max_size=3).map(tuple)
some_values = st.lists(values, min_size=1, max_size=2)
allowed = st.builds(
    AllowedCall,
    name=st.sampled_from(NAMES),
    allowed=st.dictionaries(words, some_values, max_size=2),
)
expectations = st.one_of(
    st.builds(ExactCalls, calls=golds),
    st.builds(AllowedCalls, calls=st.lists(allowed, min_size=1, max_size=2).map(tuple)),
    st.just(AnyCall()),
    st.just(NoCall()),
    st.builds(NumberAnswer, value=numbers.map(str), tolerance=st.floats(0, 1, exclude_max=True)),
    st.builds(TextAnswer, text=words, match=st.sampled_from(["equal", "contains"])),
    st.builds(FinalState, state=filled),
    st.builds(
        FinalState,
        state=st.none() | objects,
        calls=st.lists(gold, max_size=2).map(tuple),
        responses=st.just(True),
    ),
    st.builds(Rubric, criteria=st.dictionaries(words, words, min_size=1, max_size=2)),
)
expected = st.lists(expectations, min_size=1, max_size=3).map(tuple)
turns = st.builds(UserTurn, request=words, expects=st.just(()) | expected)
messages = (
    st.builds(SystemMessage, text=texts)
    | st.builds(UserMessage, text=texts)
    | st.builds(AssistantMessage, text=texts)
)
tasks = st.builds(
    Task,
    task_id=words,
    category=words,
    request=words,
    offered=st.just(NAMES),
    history=st.lists(messages, max_size=2).map(tuple),
    expects=expected,
    follow_ups=st.lists(turns, max_size=2).map(tuple),
    instructions=texts | st.just(""),
    start=objects,
)


@given(st.lists(tasks, min_size=1, max_size=3, unique_by=lambda task: task.task_id))
def test_tasks_survive_being_written(given_tasks):
    """What is written is read back as equal tasks, whatever they expect."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.jsonl"
        dump_tasks(given_tasks, path)
        benchmark = load_tasks(path, tools=TOOLS)
    assert [str(one) for one in benchmark.left_out] == []
    assert benchmark.tasks == tuple(given_tasks)


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


def step(name, **arguments):
    """One call."""
    return [ToolCall(call_id="1", name=name, arguments=arguments)]


RIGHT = {
    "status": [[step("get_order", order_id="A-101"), "It was SHIPPED."]],
    "price": [[step("find_orders", email="ada@example.org"), "In all 96.50 euro."]],
    "policy": [["Within 30 days."]],
    "cancel": [[step("cancel_order", order_id="A-102", reason="changed_mind"), "Done."]],
    "cancel-late": [["It was shipped already, I can not."]],
    "refund": [[step("refund_order", order_id="A-103", amount_eur=39), "Done."]],
    "refund-opened": [[step("refund_order", order_id="A-103", amount_eur=33.15), "You get 33.15."]],
    "refund-late": [["No, that was more than 30 days ago."]],
    "stranger": [["I can not tell you about that order."]],
    "two-wishes": [
        ["Yes."],
        [step("change_address", order_id="A-102", address="Harbour Street 7, Moss"), "Done."],
        ["42 euro."],
    ],
}
WRONG = {
    "status": [[step("get_order", order_id="A-101"), "It is on its way."]],
    "price": [["54.50 euro."]],
    "policy": [[step("find_orders", email="ada@example.org"), "30 days."]],
    "cancel": [[step("cancel_order", order_id="A-101", reason="changed_mind"), "Done."]],
    "cancel-late": [[step("cancel_order", order_id="A-101", reason="too_slow"), "Done."]],
    "refund": [["I will see to it."]],
    "refund-opened": [[step("refund_order", order_id="A-103", amount_eur=39), "You get 39."]],
    "refund-late": [[step("refund_order", order_id="A-104", amount_eur=80), "Done."]],
    "stranger": [[step("change_address", order_id="A-103", address="Mill Lane 3"), "Done."]],
    "two-wishes": [["Yes."], ["Done."], ["42 euro."]],
}


def content(request):
    """A judge that finds every criterion met."""
    finding = {"reason": "Yes.", "judgement": "met"}
    return json.dumps(dict.fromkeys(request.output_schema["properties"], finding))


@pytest.fixture
def answered(shop):
    """Runs the whole set on prepared answers; gives the verdicts of every task's turns."""
    path = str(shop / "shop_tasks.jsonl")
    benchmark = load_benchmark(path, environment=str(shop / "shop.py"))
    assert [str(one) for one in benchmark.left_out] == []

    async def run(answers):
        scripts = {
            turn.request: steps
            for task in benchmark.tasks
            for turn, steps in zip(task.turns, answers[task.task_id], strict=True)
        }

        def clerk(request):
            said = max(at for at, m in enumerate(request.messages) if isinstance(m, UserMessage))
            later = request.messages[said:]
            done = sum(isinstance(message, AssistantMessage) for message in later)
            return scripts[request.messages[said].text][done]

        store = open_store("memory:")
        judge = FunctionModel(content, name="judge")
        await evaluate(benchmark, model=FunctionModel(clerk), judge=judge, store=store, run="r")
        found = {task.task_id: [] for task in benchmark.tasks}
        for episode in store.select():
            found[episode.metadata["task"]].append(episode.verdict)
        return found

    return run


async def test_right_answers_pass(answered):
    """Each task passes for an answer that keeps the policy, conversations included."""
    found = await answered(RIGHT)
    failed = {task: v for task, verdicts in found.items() for v in verdicts if not v.passed}
    assert failed == {}
    assert len(found["two-wishes"]) == 3


@pytest.mark.parametrize("task", sorted(RIGHT))
async def test_each_mistake_is_found(answered, task):
    """A wrong answer to one task fails that task and no other."""
    found = await answered({**RIGHT, task: WRONG[task]})
    failed = {task for task, verdicts in found.items() if not all(v.passed for v in verdicts)}
    assert failed == {task}
