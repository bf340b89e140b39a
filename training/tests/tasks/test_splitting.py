"""Splitting a benchmark without leakage."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, Task, UserTurn
from agentkit.messages import UserMessage
from agentkit.tools.definition import Origin, ToolDefinition
from agentkit_training.tasks.splits import (
    components,
    leakage,
    split,
)


def benchmark_of(pairs, name="made"):
    """A benchmark out of pairs of a question and the names that it offers."""
    tasks = tuple(
        Task(task_id=str(at), category="", request=question, offered=tuple(names))
        for at, (question, names) in enumerate(pairs)
    )
    return Benchmark(name=name, tasks=tasks)


PAIRS = st.lists(
    st.tuples(
        st.integers(0, 30).map("Question {}?".format),
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
