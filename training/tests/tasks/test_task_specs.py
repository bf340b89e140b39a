"""Tasks from a configuration: split without leakage, and told where no policy can pass them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import (
    Benchmark,
    ExactCalls,
    GoldCall,
    NumberAnswer,
    Task,
    TextAnswer,
    UserTurn,
    with_tools as environment_of,
)
from agentkit.messages import UserMessage
from agentkit.tools.definition import Origin, ToolDefinition
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training, out_of_reach
from agentkit_training.tasks.splits import Shares, TaskSplits, components, leakage, split

TOOLS = '''
from agentkit import tool


@tool
def double(x: int) -> int:
    """Twice a number."""
    return 2 * x
'''


@pytest.fixture
def own_tasks(tmp_path):
    """A file of twenty tasks, one of them broken, and the tools that they use."""
    (tmp_path / "tools.py").write_text(TOOLS)
    lines = [
        {"id": str(n), "request": f"Double {n}.", "expects": {"number": 2 * n}} for n in range(20)
    ]
    lines.append({"id": "broken", "request": "Double what?", "expects": {"numbr": 1}})
    file = tmp_path / "own.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def test_families_make_as_many_tasks_as_are_asked_for():
    """Sizes are of whole parts, spread over the categories, beyond the families' defaults."""
    spec = TaskSpec(source="hidden-constraints", train=600, validation=22, test=33)
    parts = load_tasks_for_training(spec)
    assert parts.sizes == {"train": 600, "validation": 22, "test": 33}
    assert {task.category for task in parts.test.tasks} == {*spec.kinds}
    assert load_tasks_for_training(spec).train.tasks == parts.train.tasks
    assert load_tasks_for_training(spec).digests == parts.digests
    few = load_tasks_for_training(TaskSpec(source="arithmetic", train=200, test=7))
    assert few.sizes == {"train": 200, "validation": 30, "test": 7}


def test_digests_tell_whether_two_runs_had_the_same_tasks():
    """Another world, seed or size is another digest; the part that stays the same keeps its own."""
    parts, swapped, smaller = (
        load_tasks_for_training(TaskSpec(source="hidden-constraints", world=world, test=test))
        for world, test in (("first", 22), ("swapped", 22), ("first", 11))
    )
    assert len({*parts.digests.values(), *swapped.digests.values()}) == 6
    assert smaller.digests["train"] == parts.digests["train"]
    assert smaller.digests["test"] != parts.digests["test"]


def test_a_file_of_ones_own_is_divided(own_tasks):
    """Tools come from a Python file; rows that are no tasks are left out with the reason."""
    environment = str(own_tasks.parent / "tools.py")
    parts = load_tasks_for_training(TaskSpec(source=str(own_tasks), environment=environment))
    assert parts.sizes == {"train": 14, "validation": 2, "test": 4}
    assert parts.train.tasks[0].offered == ("double",)
    assert parts.train.environment is not None
    assert "numbr" in parts.train.left_out[0].reason
    assert leakage(parts.train, parts.test, functions="free").is_clean
    all_train = Shares(train=1, validation=0, test=0)
    alone = load_tasks_for_training(TaskSpec(source=str(own_tasks), shares=all_train))
    assert alone.sizes == {"train": 20, "validation": 0, "test": 0}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (TaskSpec(source="bfcI"), r"no tasks 'bfcI'; name one of hidden-constraints, .*\.jsonl"),
        (TaskSpec(source="arithmetic", world="swapped"), "no option world; it is for hidden-cons"),
        (TaskSpec(source="bfcl", test_file="x"), "no option test_file; it is for gsm8k and a file"),
        (TaskSpec(source="arithmetic", train=-1), "train is -1"),
        (TaskSpec(source="gsm8k"), r"say in data where the folder of its train\.jsonl"),
    ],
)
def test_wishes_that_make_no_sense_are_told(spec, message):
    """Each message names the value, and what there is instead."""
    with pytest.raises(UsageError, match=message):
        load_tasks_for_training(spec)


@pytest.mark.parametrize(
    "spec",
    [{"source": "absent/tasks.jsonl"}, {"source": "gsm8k", "data": "absent/data"}],
    ids=["source", "data"],
)
def test_a_path_that_leads_nowhere_is_told_with_where_it_began(spec, tmp_path, monkeypatch):
    """Configurations are often started from another folder than they were written for."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match=f"does not exist in {tmp_path}; paths are those from"):
        load_tasks_for_training(TaskSpec(**spec))


def benchmark_of(pairs, name="made"):
    """A benchmark out of pairs of a question and the names that it offers."""
    tasks = tuple(
        Task(task_id=str(at), category="", request=question, offered=tuple(names))
        for at, (question, names) in enumerate(pairs)
    )
    return Benchmark(name=name, tasks=tasks)


PAIRS = st.lists(
    st.tuples(
        st.integers(0, 30).map("Question {}?".format) | st.just("?!"),  # which says nothing
        st.lists(st.sampled_from([f"tool_{n}" for n in range(25)]), max_size=2),
    ),
    max_size=40,
)


@given(pairs=PAIRS, seed=st.integers(0, 99))
def test_no_question_and_no_function_stands_in_two_parts(pairs, seed):
    """Whatever is divided, the parts share nothing and hold every task once."""
    whole = benchmark_of(pairs)
    try:
        parts = split(whole, seed=seed)
    except UsageError:
        assert len(components(whole)) < 3
        return
    benchmarks = [part for _, part in parts]
    for one in benchmarks:
        for other in benchmarks:
            assert one is other or leakage(one, other).is_clean
    assert sorted(task.task_id for part in benchmarks for task in part.tasks) == sorted(
        task.task_id for task in whole.tasks
    )


@given(sizes=st.lists(st.integers(1, 4), min_size=40, max_size=60))
@settings(max_examples=25)
def test_small_groups_come_close_to_the_shares(sizes):
    """Where groups are small, each part has about what it was to get."""
    pairs = [
        (f"Question {n}.{m}?", [f"tool_{n}"]) for n, size in enumerate(sizes) for m in range(size)
    ]
    parts = split(benchmark_of(pairs))
    for name, share in zip(("train", "validation", "test"), (0.7, 0.1, 0.2), strict=True):
        assert abs(parts.sizes[name] - share * len(pairs)) <= 4


def test_questions_are_compared_without_case_and_punctuation():
    """Two writings of one question are one question, and the whole conversation counts."""
    one = benchmark_of([("What is  the AREA?", [])])
    assert leakage(one, benchmark_of([("what is the area", [])])).questions == ("what is the area",)
    longer = replace(
        one, tasks=(replace(one.tasks[0], follow_ups=(UserTurn(request="And its edge?"),)),)
    )
    assert leakage(one, longer).is_clean
    later = replace(one, tasks=(replace(one.tasks[0], history=(UserMessage(text="Hello."),)),))
    assert leakage(one, later).is_clean


def test_functions_are_compared_by_their_upstream_names():
    """A function that a catalogue had to rename is the same function."""
    renamed = ToolDefinition(name="get__2", origin=Origin(original_name="get"))
    one = benchmark_of([("One?", ["get"])])
    other = replace(benchmark_of([("Another?", ["get__2"])]), definitions=(renamed,))
    assert leakage(one, other).functions == ("get",)
    assert leakage(one, other, functions="free").is_clean
    assert str(leakage(one, other)) == (
        "1 tasks share something: 0 questions, 1 function names (get)"
    )


def test_tasks_that_all_hang_together_can_not_be_divided():
    """The message says what holds them together and what can be done."""
    whole = benchmark_of([(f"Question {n}?", ["add", f"tool_{n}"]) for n in range(20)])
    with pytest.raises(UsageError, match=r"held together by add.*functions='free'"):
        split(whole)
    assert split(whole, functions="free").sizes == {"train": 14, "validation": 2, "test": 4}


def test_samples_are_spread_over_categories():
    """A smaller part has tasks of each category, the same ones for the same seed."""
    tasks = tuple(
        Task(task_id=f"{c}{n}", category=c, request=f"{c} {n}?", offered=())
        for c in "ab"
        for n in range(50)
    )
    parts = split(Benchmark(name="two", tasks=tasks)).sampled(train=10, test=0, seed=1)
    assert sorted(task.category for task in parts.train.tasks) == ["a"] * 5 + ["b"] * 5
    assert parts.sizes == {"train": 10, "validation": 10, "test": 0}


CALLS = ExactCalls(calls=(GoldCall(name="look", arguments={}),))
WORDS = TextAnswer(text="here", match="contains")

WORLD = environment_of([])


def splits(*expects, environment=WORLD):
    """Parts with a test task for each of these expectations."""
    none = Benchmark(name="own", tasks=(), definitions=(), environment=environment)
    tasks = tuple(
        Task(task_id=str(at), category="", request="?", offered=(), expects=one)
        for at, one in enumerate(expects)
    )
    return TaskSplits(train=none, validation=none, test=replace(none, tasks=tasks))


@pytest.mark.parametrize("words", [WORDS, NumberAnswer(value="3")], ids=["text", "number"])
def test_calls_and_words_need_two_turns(words):
    """With one turn they are told, by the part that they are in; with two they are not."""
    parts = splits((CALLS, words), (CALLS,))
    assert "1 of 2 in test; give asking.max_steps 2 or more" in out_of_reach(parts, 1)
    assert out_of_reach(parts, 2) == ""
    assert out_of_reach(parts, None) == ""


def test_without_an_environment_there_is_one_turn():
    """Where nothing runs the tools a policy has one turn, unless more are asked for."""
    parts = splits((CALLS, WORDS), environment=None)
    assert "1 of 1 in test" in out_of_reach(parts, None)
    assert out_of_reach(parts, 2) == ""
