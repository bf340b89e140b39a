"""BFCL and GSM8K for training: held-out parts share nothing; solutions become trajectories."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.errors import DatasetError
from agentkit.fetch import cache_directory
from agentkit_bench.bfcl import RELEASE
from agentkit_training.fine_tuning.solutions import gold_trajectories
from agentkit_training.tasks.arithmetic import gsm8k_tasks, solution_episodes
from agentkit_training.tasks.bfcl import bfcl_multi_turn_tasks, bfcl_tasks, conversation_of
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training
from agentkit_training.tasks.splits import Shares, leakage

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "plugins" / "agentkit-bench" / "tests"
CORPORA = ROOT.parent / "shared" / "data"
SIMULATORS = {"FilingCabinet": "cabinet", "Counter": "counter"}


def bfcl_rows(folder, category, rows):
    """Write questions of BFCL's form: id, question, name of the function."""
    (folder / "possible_answer").mkdir(parents=True, exist_ok=True)
    questions, answers = [], []
    for at, (question, name) in enumerate(rows):
        row_id = f"{category}_{at}"
        parameters = {"type": "dict", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
        function = {"name": name, "description": f"Do {name}.", "parameters": parameters}
        said = [[{"role": "user", "content": question}]]
        questions.append({"id": row_id, "question": said, "function": [function]})
        answers.append({"id": row_id, "ground_truth": [{name: {"x": [at]}}]})
    for where, records in ((folder, questions), (folder / "possible_answer", answers)):
        text = "".join(f"{json.dumps(record)}\n" for record in records)
        (where / f"BFCL_v4_{category}.json").write_text(text)


@pytest.fixture
def bfcl_sample(tmp_path):
    """Ten held-out questions, and forty of another category: some share a question or a name."""
    bfcl_rows(tmp_path, "simple_python", [(f"Held {n}?", f"held_{n}") for n in range(10)])
    others = [(f"Other {n}?", f"other_{n // 2}") for n in range(36)]
    leaks = [("held 3", "new_a"), ("Held 4?", "new_b"), ("Quite new?", "held_5")]
    bfcl_rows(tmp_path, "multiple", [*others, *leaks])
    return tmp_path


def test_what_shares_something_with_held_out_questions_is_not_trained_on(bfcl_sample):
    """A question that differs in writing alone and a function name alone are enough to drop."""
    parts = bfcl_tasks(bfcl_sample, shares=Shares(train=3, validation=1))
    assert parts.sizes == {"train": 28, "validation": 8, "test": 10}
    assert leakage(parts.train, parts.test).is_clean
    assert leakage(parts.validation, parts.train).is_clean
    dropped = [one.where for one in parts.train.left_out]
    assert dropped == ["multiple_36", "multiple_37", "multiple_38"]
    assert all(task.category == "simple_python" for task in parts.test.tasks)


def test_impossible_wishes_are_told_with_what_there_is(bfcl_sample, tmp_path):
    """Categories that are not there, nothing left to train on."""
    with pytest.raises(DatasetError, match=r"no task of 'simple'.*multiple, simple_python"):
        bfcl_tasks(bfcl_sample, held_out="simple")
    bfcl_rows(tmp_path / "same", "simple_python", [("A?", "a")])
    bfcl_rows(tmp_path / "same", "multiple", [("A?", "b")])
    with pytest.raises(DatasetError, match="all 1 share something with the held-out"):
        bfcl_tasks(tmp_path / "same")


def test_nothing_is_fetched_unasked(monkeypatch, tmp_path):
    """Without files and without leave to fetch them, the error says both ways out."""
    monkeypatch.setenv("AGENTKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DatasetError, match=r"not in .*fetch=True"):
        bfcl_tasks()
    with pytest.raises(DatasetError, match=r"not in .*fetch=True"):
        bfcl_multi_turn_tasks()


def test_variants_of_a_conversation_stay_together():
    """The four categories ask the same conversations; our split tears none of them apart."""
    folder = SAMPLES / "bfcl_multi_turn" / "sample"
    halves = Shares(train=1, validation=0, test=1)
    parts = bfcl_multi_turn_tasks(folder, simulators=SIMULATORS, shares=halves)
    sides = [{conversation_of(task) for task in part.tasks} for _, part in parts]
    assert sides[0]
    assert sides[2]
    assert not sides[0] & sides[2]
    assert parts.train.environment is not None


def test_nested_calls_are_a_source_with_gold_trajectories(tmp_path, monkeypatch):
    """Questions of NESTFUL are divided, and recorded ones have the gold calls one by one."""
    shares = Shares(train=1, validation=0, test=0)
    spec = TaskSpec(source="nestful", data=str(SAMPLES / "sample_nestful"), shares=shares)
    train = load_tasks_for_training(spec).train
    solved = gold_trajectories(spec, train).trajectories
    assert solved.keys() <= {task.task_id for task in train.tasks}
    assert all(episode.calls for episode in solved.values())
    assert max(len(episode.calls) for episode in solved.values()) > 1
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path))
    with pytest.raises(DatasetError, match="NESTFUL is not in"):
        load_tasks_for_training(replace(spec, data=""))


def gsm8k_lines(file, numbers):
    """Write problems of GSM8K's form whose solutions take two calculations."""
    lines = [
        {
            "question": f"Ann has {n} bags with 3 apples and 2 more. How many?",
            "answer": f"{n}*3=<<{n}*3={n * 3}>>{n * 3}, and <<{n * 3}+2={n * 3 + 2}>>.\n#### {n * 3 + 2}",
        }
        for n in numbers
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def test_solutions_become_calls_of_primitives(tmp_path):
    """The training part's solutions, and no others, are trajectories of two calls each."""
    file = gsm8k_lines(tmp_path / "train.jsonl", range(2, 22))
    parts = gsm8k_tasks(file)
    assert parts.sizes == {"train": 14, "validation": 2, "test": 4}
    assert set(parts.train.tasks[0].offered) == {"add", "sub", "mul", "div", "floor_div"}
    episodes = list(solution_episodes(file, parts.train))
    assert {one.request for one in episodes} == {task.request for task in parts.train.tasks}
    assert [call.name for call in episodes[0].calls] == ["mul", "add"]
    other = gsm8k_lines(tmp_path / "other.jsonl", range(50, 55))
    with pytest.raises(DatasetError, match="no problem of GSM8K with tools comes from"):
        list(solution_episodes(other, parts.train))


def test_a_test_file_that_shares_problems_is_refused(tmp_path):
    """Two files are kept apart; a problem in both is an error that names it."""
    train = gsm8k_lines(tmp_path / "train.jsonl", range(2, 22))
    parts = gsm8k_tasks(train, gsm8k_lines(tmp_path / "test.jsonl", range(30, 35)))
    assert parts.sizes["test"] == 5
    assert parts.sizes["train"] + parts.sizes["validation"] == 20
    with pytest.raises(DatasetError, match="not apart: 2 tasks share something"):
        gsm8k_tasks(train, gsm8k_lines(tmp_path / "test.jsonl", range(20, 30)))


@pytest.mark.corpora
def test_held_out_simple_python_shares_nothing_with_the_pool():
    """On the release, too: what naive training would have leaked is dropped and counted."""
    if not (cache_directory() / f"bfcl-{RELEASE}").is_dir():
        pytest.skip("BFCL has not been fetched (agentkit eval bfcl)")
    parts = bfcl_tasks()
    assert leakage(parts.train, parts.test).is_clean
    assert leakage(parts.validation, parts.test).is_clean
    assert parts.sizes["test"] == 400
    assert parts.sizes["train"] >= 1000
    assert len(parts.train.left_out) > 200


@pytest.mark.corpora
def test_most_solutions_of_gsm8k_are_reproduced_by_primitives(tmp_path):
    """Of the training problems' solutions, nine in ten run on the primitive library."""
    source = CORPORA / "gsm8k" / "problems.jsonl.gz"
    if not source.is_file():
        pytest.skip("GSM8K is not beside the checkout")
    with gzip.open(source, "rt") as stream:
        rows = [row for row in map(json.loads, stream) if row["id"].startswith("gsm8k:train")]
    file = tmp_path / "train.jsonl"
    lines = [{"question": row["query"], "answer": row["solution"]} for row in rows[:500]]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    parts = gsm8k_tasks(file)
    episodes = list(solution_episodes(file, parts.train))
    assert len(episodes) >= 0.9 * parts.sizes["train"]
    calls = Counter(call.name for one in episodes for call in one.calls)
    assert calls["mul"] > calls["floor_div"]
