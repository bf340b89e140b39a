"""One door to all tasks: what a configuration may say, and what it is told when it can not."""

from __future__ import annotations

import json

import pytest

from agentkit.errors import DatasetError, UsageError
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training
from agentkit_training.tasks.splits import Shares, leakage

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
