"""Word problems and functions to write, and benchmarks that are loaded by name."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.episodes import episode_of

from agentkit.episodes import Episode
from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import GoldCall, NumberAnswer, load_benchmark
from agentkit.evaluation.verifiers.making import Scene, verifier_for
from agentkit.testing import primitive_library
from agentkit_bench import (
    gsm8k_benchmark,
    gsm8k_episodes,
    humaneval_benchmark,
    load_gsm8k,
    replay_solution,
)
from agentkit_bench.gsm8k import Calculation, WordProblem
from agentkit_bench.nestful import load_nestful
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


GSM8K = Path(__file__).parent / "sample_gsm8k" / "sample.jsonl"
LIBRARY = primitive_library()


@pytest.fixture
def sample():
    """The sample, loaded."""
    return load_gsm8k(GSM8K)


def calls_of(replay):
    """Each call as text, with its result."""
    return [
        f"{call.name}({', '.join(map(str, call.arguments.values()))}) = {result.value}"
        for call, result in zip(replay.calls, replay.results, strict=True)
    ]


def test_calculations_are_read_in_order(sample):
    """A problem keeps its question, its calculations as written, and its answer."""
    problem = sample[1]
    assert problem.problem_id == "sample:2"
    assert problem.question.startswith("A ferry")
    assert [str(calculation) for calculation in problem.calculations] == [
        "<<20*12.50=250.00>>",
        "<<1100*2=2200>>",
        "<<250+2200=2450>>",
    ]
    assert problem.answer == "2,450"


def test_each_operator_is_a_call_and_a_stated_number_a_result(sample):
    """Brackets nest calls; a later operand that was stated before is what came out then."""
    assert calls_of(replay_solution(sample[2], LIBRARY)) == [
        "div(20, 100) = 0.2",
        "add(2, 2) = 4",
        "mul(4, 3) = 12",
        "add(3, 12) = 15",
        "add(1, 0.2) = 1.2",
        "mul(15, 1.2) = 18.0",
    ]
    replay = replay_solution(sample[3], LIBRARY)
    assert calls_of(replay)[-2:] == ["add(8, 8) = 16", "mul(16, 2) = 32"]
    steps = ("0.1+0.2", "0.3"), ("0.3*10", "3")
    calculations = tuple(Calculation(expression=one, stated=stated) for one, stated in steps)
    problem = WordProblem(problem_id="x", question="?", calculations=calculations, answer="3")
    assert replay_solution(problem, LIBRARY).calls[1].arguments["a"] == 0.1 + 0.2 != 0.3


def test_each_way_to_fail_has_its_outcome(sample):
    """What tools alone can not reproduce is told apart, with the place and the reason."""
    replays = [replay_solution(problem, LIBRARY) for problem in sample]
    assert [(replay.outcome, replay.detail) for replay in replays[4:8]] == [
        ("no_calculation", "the solution is in words alone"),
        ("incomplete", "the last result is 320, the answer 300"),
        ("disagrees", "<<7*8=54>>: the tools give 56"),
        (
            "tool_failed",
            "<<5/0=0>>: 5 cannot be divided by zero; give another b, or leave the step out",
        ),
    ]
    unreadable = [replay.detail for replay in replays[8:] if replay.outcome == "unreadable"]
    assert [detail.split(": ")[0] for detail in unreadable] == [
        "<<3**2=9>>",
        "<<5 bags*2=10>>",
        "<<3/2=one and a half>>",
    ]
    assert "no tool stands for" in unreadable[0]


def test_reproduced_solutions_become_episodes(sample):
    """An episode has one call a turn, then the answer; it passed, and it survives JSON."""
    episodes = list(gsm8k_episodes(sample, LIBRARY))
    assert [episode.episode_id for episode in episodes] == [
        f"gsm8k:sample:{number}" for number in (1, 2, 3, 4)
    ]
    first = episodes[0]
    assert [len(turn.message.tool_calls) for turn in first.turns] == [1, 1, 1, 0]
    assert [result.value for result in first.results] == [90, 30.0, 60.0]
    assert first.output == first.turns[-1].message.text == "60"
    assert first.verdict.passed is True
    assert first.library_digest == LIBRARY.digest
    assert Episode.from_json(json.loads(json.dumps(first.to_json()))) == first


@pytest.mark.parametrize(
    ("line", "symptom"),
    [
        ('{"question": "Why?"}', "line 2: .*answer"),
        ('{"question": "Why?", "answer": "Because."}', "line 2: .*####"),
        ('{"question": "Why?", "answer": "So.\\n#### many"}', "line 2: .*many"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, line, symptom):
    """The message names the file, the line and what is wrong there."""
    path = tmp_path / "other.jsonl"
    path.write_text(f"{SAMPLE.read_text().splitlines()[0]}\n{line}\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=symptom) as caught:
        load_gsm8k(path)
    assert "other.jsonl" in str(caught.value)


@pytest.mark.corpora
def test_most_of_the_corpus_is_reproduced(corpus, tmp_path):
    """Every calculation of the test split holds; only steps done in words are out of reach."""
    path = tmp_path / "test.jsonl"
    with gzip.open(corpus("gsm8k") / "problems.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["category"] == "test"]
    records = [{"question": row["query"], "answer": row["solution"]} for row in rows]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    replays = [replay_solution(problem, LIBRARY) for problem in load_gsm8k(path)]
    assert Counter(replay.outcome for replay in replays) == {
        "reproduced": 1202,
        "incomplete": 86,
        "no_calculation": 31,
    }
    assert sum(len(replay.calls) for replay in replays) == 4856


SAMPLES = Path(__file__).parent


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
    ],
)
def test_what_does_not_go_together_is_refused(name, options, reason):
    """The message says what to leave out or to add."""
    with pytest.raises(UsageError, match=reason):
        load_benchmark(name, **options)


EACH = 10


def rows(folder):
    """The rows of a file of problems, by id."""
    with gzip.open(folder / "problems.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {row["id"]: row for row in map(json.loads, lines)}


def said(text):
    """An episode that ends in words."""
    return Episode(episode_id="gold", request="", output=text)


def called(calls, answer=None):
    """An episode with one call a turn, each answered where ``answer`` is given."""
    outcomes = [(one.name, one.arguments, answer and answer(one)) for one in calls]
    made = episode_of(*outcomes, output="Done.")
    planned = tuple(replace(turn, results=()) for turn in made.turns)
    return made if answer else replace(made, turns=planned)


def scenes_of(benchmark):
    """What there is to judge a task with: the tools that it offers."""
    tools = {definition.name: definition for definition in benchmark.definitions}
    return lambda task: Scene(definitions=tuple(tools[name] for name in task.offered))


async def failed(tasks, episode_of, scene_of=lambda _: Scene()):
    """Ids of the tasks whose gold answer does not pass."""
    found = []
    for task in tasks:
        (expected,) = task.expects
        verdict = await verifier_for(expected, scene_of(task)).verify(episode_of(task))
        found += [] if verdict.passed else [(task.task_id, verdict)]
    return found


@pytest.mark.corpora
async def test_solutions_of_gsm8k(corpus, word_problems, every):
    """Solutions of the test split end in the number that is expected."""
    solutions = rows(corpus("gsm8k"))
    test = [task for task in word_problems.tasks if task.category == "test"]
    tasks = every(EACH, test)
    assert len(tasks) in {132, 1319}
    assert await failed(tasks, lambda task: said(solutions[task.task_id]["solution"])) == []


@pytest.mark.corpora
async def test_plans_of_nestful(planned, every):
    """Gold sequences that are asked for flow as themselves."""
    episodes = {task.task_id: called(task.expects[0].calls) for task in planned.tasks}
    tasks = every(EACH, planned.tasks)
    scenes = scenes_of(planned)
    assert await failed(tasks, lambda task: episodes[task.task_id], scenes) == []


@pytest.mark.corpora
async def test_recorded_runs_of_nestful(corpus, executed, every):
    """Recorded runs, replayed in their worlds with the values of the records, are right."""
    questions = load_nestful(corpus("nestful")).questions
    recorded = {one.trajectory.trajectory_id: one.trajectory for one in questions}

    def run(task):
        world = {tool.name: tool for tool in executed.environment(task).tools()}
        trajectory = recorded[task.task_id]
        calls = [
            GoldCall(name=step.tool, arguments=trajectory.arguments(at))
            for at, step in enumerate(trajectory.steps)
        ]
        return called(calls, lambda call: world[call.name](**call.arguments))

    assert await failed(every(EACH, executed.tasks), run, scenes_of(executed)) == []
