"""The real benchmark: its questions, its simulators, and its own checker beside ours."""

from __future__ import annotations

import importlib.util
import inspect
import json
import random
import sys
from pathlib import Path

import pytest

from agentkit.evaluation import FinalState, Task
from agentkit_bench.bfcl_multi_turn import find_files, load_bfcl_multi_turn, parse_gold

pytestmark = pytest.mark.corpora


@pytest.fixture(scope="module")
def upstream(upstream_folder, mpmath):
    """The real benchmark, where its simulators can be run."""
    return load_bfcl_multi_turn(upstream_folder)


@pytest.fixture
def agreement(project_root: Path):
    """The script that compares verdicts, as a module."""
    path = project_root / "tests" / "benchmarks" / "bfcl_multi_turn_agreement.py"
    spec = importlib.util.spec_from_file_location("bfcl_multi_turn_agreement", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    yield spec.loader.exec_module(module) or module
    del sys.modules[spec.name]


def rows(path):
    """The lines of a file, by id."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return {row["id"]: row for row in map(json.loads, filter(None, lines))}


def test_all_questions_load(upstream):
    """800 questions with 128 tools; five have gold that no agent could follow."""
    assert upstream.name == "BFCL v4 multi-turn 2026.3.23"
    assert len(upstream.definitions) == 128
    assert len(upstream.tasks) == 795
    assert {one.where for one in upstream.left_out} == {
        "multi_turn_base_173",
        "multi_turn_long_context_173",
        "multi_turn_miss_func_173",
        "multi_turn_miss_func_49",
        "multi_turn_miss_param_173",
    }
    judged = [turn for task in upstream.tasks for turn in task.turns if turn.expects]
    assert all(any(turn.expects for turn in task.turns) for task in upstream.tasks)
    assert sum(len(turn.expects[1].calls) for turn in judged) == 4600


def test_every_gold_sequence_runs(upstream, upstream_folder):
    """None of the gold calls of the 800 questions raises, and each state is JSON."""
    tools = {definition.name: definition for definition in upstream.definitions}
    files, ran = find_files(upstream_folder), 0
    for path in sorted(files.data.glob("BFCL_v4_multi_turn_*.json")):
        questions, answers = rows(path), rows(files.data / "possible_answer" / path.name)
        for task_id, question in questions.items():
            world = upstream.environment(
                Task(
                    task_id=task_id,
                    category="",
                    request="",
                    offered=(),
                    start={
                        "classes": question["involved_classes"],
                        "scenarios": question["initial_config"],
                        "long_context": "long_context" in task_id,
                    },
                )
            )
            for text in (text for turn in answers[task_id]["ground_truth"] for text in turn):
                call = parse_gold(text, tools)
                assert isinstance(world.call(call.name, call.arguments), str | dict)
                ran += 1
            json.dumps(world.state(), allow_nan=False)
    assert ran == 4625


def test_the_definitions_fit_the_simulators(upstream, upstream_folder):
    """Every public method has a definition, and gold arguments without names mean the same."""
    worlds = upstream.environment
    order = {}
    for name, simulator in worlds.simulators.items():
        simulated = getattr(worlds.modules.load(simulator.module), name)
        methods = dict(inspect.getmembers(simulated, inspect.isfunction))
        public = {method for method in methods if not method.startswith("_")}
        assert public == {definition.name for definition in simulator.definitions}
        for definition in simulator.definitions:
            in_code = [*inspect.signature(methods[definition.name]).parameters][1:]
            if in_code != list(definition.signature.properties):
                order[definition.name] = in_code
    assert list(order) == ["purchase_insurance"]
    files = find_files(upstream_folder)
    gold = "".join(path.read_text() for path in files.data.glob("possible_answer/*multi_turn*"))
    assert gold.count("purchase_insurance(") == gold.count("purchase_insurance(access_token=")


def test_no_module_of_the_package_is_imported(upstream):
    """The simulators run, and Python has never heard of the package."""
    before = {name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"}
    for task in upstream.tasks[:200:20]:
        upstream.environment(task)
    after = {name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"}
    assert after == before


async def test_verdicts_are_those_of_the_package(upstream_package, mpmath, agreement):
    """On gold and on altered gold the package's own checker finds what our verifiers find."""
    benchmark = load_bfcl_multi_turn(upstream_package)
    altering = agreement.Altering(benchmark=benchmark, dice=random.Random(5))
    trials = [
        trial
        for task in altering.dice.sample(benchmark.tasks, 12)
        for trial in altering.trials(task, 1)
    ]
    theirs = agreement.Theirs.of(upstream_package)
    outcomes = [one async for one in agreement.compared(benchmark, theirs, trials)]
    assert len(outcomes) > 90
    assert 0 < sum(not one.theirs for one in outcomes) < len(outcomes)
    assert [one for one in outcomes if not one.is_same("direct")] == []
    assert all(one.executor for one in outcomes if not one.is_same("agent"))


def test_gold_of_upstream_is_a_final_state(upstream):
    """Every judged user turn expects a state and results."""
    judged = [turn.expects for task in upstream.tasks for turn in task.turns if turn.expects]
    assert all(isinstance(expects[1], FinalState) and expects[1].responses for expects in judged)
