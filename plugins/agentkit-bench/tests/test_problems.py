"""GSM8K and HumanEval as benchmarks, from upstream's files and from re-shaped ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agentkit.errors import DatasetError
from agentkit.evaluation import NumberAnswer
from agentkit_bench import gsm8k_benchmark, humaneval_benchmark
from agentkit_bench.python_tests import PythonTests

SAMPLE = Path(__file__).parent / "sample_gsm8k" / "sample.jsonl"
CHECK = "def check(candidate):\n    assert candidate() == 1\n"
ONE = {"task_id": "HumanEval/0", "prompt": "def one():\n", "entry_point": "one", "test": CHECK}


def test_a_word_problem_asks_for_its_number():
    """The number after #### is what the answer has to end in; the file names the category."""
    benchmark = gsm8k_benchmark(SAMPLE)
    first, second = benchmark.tasks[:2]
    assert (first.task_id, first.category, first.offered) == ("gsm8k:sample:1", "sample", ())
    assert first.request.startswith("A gardener plants 6 rows")
    assert first.expects == (NumberAnswer(value="60"),)
    assert second.expects == (NumberAnswer(value="2,450"),)
    assert "####" in first.instructions
    assert benchmark.environment is None


def test_reshaped_problems_keep_their_ids(tmp_path):
    """A folder with problems.jsonl.gz is read, and its rows say their own category."""
    rows = [
        {"id": "gsm8k:test:0", "query": "2 + 2?", "gold": "4", "category": "test", "tools": []},
        {"id": "gsm8k:test:0", "query": "2 + 3?", "gold": "5", "category": "test"},
        {"id": "gsm8k:test:1", "query": " ", "gold": "5", "category": "test"},
        {"id": "gsm8k:test:2", "query": "2 + 3?", "gold": "five", "category": "test"},
        {"id": "gsm8k:test:3", "query": "2 + 3?"},
        {"question": "2 + 3?", "answer": "5"},
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    (tmp_path / "problems.jsonl.gz").write_bytes(gzip.compress(content))
    benchmark = gsm8k_benchmark(tmp_path)
    assert [(task.task_id, task.category) for task in benchmark.tasks] == [("gsm8k:test:0", "test")]
    assert [str(one).partition(", ")[2][:44] for one in benchmark.left_out] == [
        "line 2: the id 'gsm8k:test:0' is there twice",
        "line 3: the question is empty",
        "line 4: the answer.number: expected a number",
        "line 5: gold: is missing",
        "line 6: answer: has no #### before the number"[:44],
    ]


def test_a_function_to_write_comes_with_its_tests(write):
    """The prompt is shown as code; prompt, tests and entry point are what it is judged by."""
    benchmark = humaneval_benchmark(write(ONE))
    (task,) = benchmark.tasks
    assert (task.task_id, task.category) == ("HumanEval/0", "humaneval")
    assert task.request == "```python\ndef one():\n```"
    assert task.expects == (PythonTests(prompt="def one():\n", tests=CHECK, entry_point="one"),)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"entry_point": "two"}, "the prompt begins no function 'two'"),
        ({"test": "assert True"}, "test: defines no function check"),
        ({"prompt": 1}, "prompt: should be a valid string"),
    ],
)
def test_a_function_that_can_not_be_tested_is_left_out(write, change, reason):
    """A broken row is told; the others are asked."""
    benchmark = humaneval_benchmark(write(ONE, {**ONE, "task_id": "HumanEval/1", **change}))
    assert len(benchmark.tasks) == 1
    assert reason in str(benchmark.left_out[0])


@pytest.mark.parametrize("load", [gsm8k_benchmark, humaneval_benchmark])
def test_other_files_are_refused(load, write, tmp_path):
    """A folder without a known file, an absent file and one without a problem raise."""
    with pytest.raises(DatasetError, match="holds none of"):
        load(tmp_path)
    with pytest.raises(DatasetError, match="does not exist"):
        load(tmp_path / "x.jsonl")
    with pytest.raises(DatasetError, match=r"holds no problem of .*; x\.jsonl, line 1: "):
        load(write({"a": 1}, name="x.jsonl"))


@pytest.mark.corpora
def test_the_whole_of_gsm8k_loads(word_problems):
    """All 8,792 problems can be asked."""
    categories = [task.category for task in word_problems.tasks]
    assert (categories.count("train"), categories.count("test")) == (7473, 1319)
    assert word_problems.left_out == ()
