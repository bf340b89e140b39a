"""What holds for all tasks: they survive being written, and no bytes stop a reader."""

from __future__ import annotations

import json
import string
import tempfile
from pathlib import Path

from hypothesis import given, settings, strategies as st

from agentkit.errors import DatasetError
from agentkit.evaluation import (
    AllowedCalls,
    AnyCall,
    DataFlow,
    ExactCalls,
    FinalState,
    GoldCall,
    NoCall,
    NumberAnswer,
    PythonTests,
    Rubric,
    Task,
    TextAnswer,
    UserTurn,
    dump_tasks,
    load_tasks,
)
from agentkit.messages import AssistantMessage, SystemMessage, UserMessage
from agentkit.metrics import AllowedCall
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

NAMES = ("ask", "tell", "écrire")
ANY = {"type": "object", "additionalProperties": True}
TOOLS = [Tool(definition=ToolDefinition.from_schema(name, "", ANY)) for name in NAMES]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
words = texts.filter(lambda text: text.strip() and "$" not in text)
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
    st.builds(DataFlow, calls=golds, answer=values),
    st.builds(
        AllowedCalls,
        calls=st.lists(allowed, min_size=1, max_size=2).map(tuple),
        language=st.sampled_from(["python", "java", "javascript"]),
    ),
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
    st.builds(
        PythonTests,
        prompt=texts | st.just(""),
        tests=texts,
        entry_point=st.text(string.ascii_letters, min_size=1, max_size=5),
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


@settings(max_examples=40, deadline=None)
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
                    ["calls", "allowed", "flow", "number", "state", "actions", "rubric", "text"]
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


@settings(max_examples=100, deadline=None)
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
