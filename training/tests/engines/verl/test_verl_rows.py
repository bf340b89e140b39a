"""Tasks as rows: what verl shows, and what a worker finds the task by."""

from __future__ import annotations

import dataclasses
import json

import pytest
from datasets import load_dataset

from agentkit.evaluation import Task
from agentkit.messages import AssistantMessage, UserMessage
from agentkit_training.engines.verl.workspace import RowInfo, verl_rows, write_rows
from agentkit_training.errors import TrainingError


def test_a_row_holds_the_conversation_up_to_the_request(shop):
    """System messages come first and as one, then what was said before, then the request."""
    history = (UserMessage(text="Hi"), AssistantMessage(text="Hello."))
    task = dataclasses.replace(shop.tasks[0], history=history, instructions="Sell.")
    (row,) = verl_rows(
        dataclasses.replace(shop, tasks=(task,)), part="train", instructions="Be short."
    )
    assert [(one.role, one.content) for one in row.prompt] == [
        ("system", "Be short.\n\nSell."),
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "What does apple cost?"),
    ]


def test_what_a_task_expects_travels_as_json(shop):
    """The ground truth is the task's own record of what is right, follow-ups included."""
    row = next(verl_rows(shop, part="train"))
    assert row.reward_model.style == "rule"
    expected = json.loads(row.reward_model.ground_truth)
    assert expected["expects"]["calls"] == [{"name": "get_price", "arguments": {"item": "apple"}}]


def test_rows_come_back_from_parquet_as_they_were_written(shop, tmp_path):
    """``datasets`` reads the columns that verl asks for, and each row still names its task."""
    rows = list(verl_rows(shop, part="validation", library_version=3))
    write_rows(rows, tmp_path / "rows.parquet")
    read = load_dataset(
        "parquet", data_files=str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path / "cache")
    )["train"]
    assert [dict(one) for one in read] == [one.to_json() for one in rows]
    assert RowInfo.read(read[1]["extra_info"]) == RowInfo(
        index=1, part="validation", task_id=shop.tasks[1].task_id, library_version=3
    )


def test_tasks_without_anything_said_before_make_one_message():
    """A task that is a request alone is a prompt of one user message."""
    from agentkit.evaluation import Benchmark

    task = Task(task_id="t", category="c", request="Now?", offered=())
    (row,) = verl_rows(Benchmark(name="b", tasks=(task,)), part="test")
    assert [one.role for one in row.prompt] == ["user"]


def test_rows_of_somebody_else_are_told_apart():
    """A row that names no task of ours says so, and what to give verl instead."""
    with pytest.raises(TrainingError, match=r"does not name a task.*export_verl"):
        RowInfo.read({"index": 3, "split": "train"})
