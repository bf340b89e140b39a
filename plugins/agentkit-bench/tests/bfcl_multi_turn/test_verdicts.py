"""Verdicts on conversations: ours, in an evaluation, and upstream's."""

from __future__ import annotations

import json
import random

import pytest

from agentkit import open_store
from agentkit.evaluation import FinalState, Task
from agentkit.evaluation.runner import evaluate
from agentkit.messages import ToolCall, UserMessage
from agentkit.testing import FunctionModel
from agentkit_bench.bfcl_multi_turn import find_files, load_bfcl_multi_turn, parse_gold


async def test_gold_calls_pass(play, task_of, calls):
    """What the gold answer does is right; a turn without gold calls is not judged."""
    filed = calls(("file_paper", {"title": "Plan"}), ("list_papers", {}))
    moved = calls(("move_paper", {"title": "Plan", "drawer": "archive"}))
    played = await play(task_of("multi_turn_base_0"), [filed], [moved], [])
    assert [verdict and verdict.passed for verdict in played.verdicts] == [True, True, None]


async def test_another_way_to_the_same_state_passes(play, task_of, calls):
    """Neither order nor number of calls counts, as long as the results are among them."""
    steps = [
        calls(("list_papers", {})),
        calls(("file_paper", {"title": "Plan", "text": "wrong"})),
        calls(("file_paper", {"title": "Plan", "text": ""})),
        calls(("list_papers", {})),
    ]
    played = await play(task_of("multi_turn_base_0"), steps, [], [])
    assert played.verdicts[0].passed


async def test_a_different_state_fails(play, task_of, calls):
    """The finding says where the world differs."""
    filed = calls(("file_paper", {"title": "Plan", "text": "x"}), ("list_papers", {}))
    verdict = (await play(task_of("multi_turn_base_0"), [filed], [], [])).verdicts[0]
    assert not verdict.passed
    (finding,) = verdict.evidence
    assert (finding.kind, finding.parameter) == (
        "state_differs",
        "FilingCabinet.drawers.desk.papers.Plan",
    )


async def test_a_result_that_was_not_obtained_fails(play, task_of, calls):
    """The state is right, but nobody looked."""
    filed = calls(("file_paper", {"title": "Plan"}))
    verdict = (await play(task_of("multi_turn_base_0"), [filed], [], [])).verdicts[0]
    assert [finding.kind for finding in verdict.evidence] == ["response_differs"]


async def test_results_of_earlier_turns_count(play, task_of, calls):
    """What was read before need not be read again, if this turn calls anything at all."""
    task = task_of("multi_turn_miss_param_0")
    read = calls(("read_paper", {"title": "Lease"}))
    again = await play(task, [read], [calls(("list_papers", {}))])
    assert again.verdicts[1].passed
    silent = await play(task, [read], [])
    assert [finding.kind for finding in silent.verdicts[1].evidence] == ["missing_call"]


async def test_the_last_turn_is_judged_at_the_step_limit(play, task_of, calls):
    """Upstream judges what was done when the steps ran out, if no user turn is left."""
    gold = calls(("divide", {"a": 7, "b": 2}), ("stamp", {"number": 3}))
    played = await play(task_of("multi_turn_base_1"), [gold, gold], max_steps=1)
    assert played.episodes[0].stop_reason == "step_limit"
    assert played.verdicts[0].passed


def gold_model(benchmark):
    """A model that makes the gold calls of each user turn in one step, then says so."""
    tasks = {task.request: task for task in benchmark.tasks}

    def answer(request):
        said = [m.text for m in request.messages if isinstance(m, UserMessage)]
        if not isinstance(request.messages[-1], UserMessage):
            return "Done."
        expects = tasks[said[0]].turns[len(said) - 1].expects
        gold = [call for one in expects if isinstance(one, FinalState) for call in one.calls]
        return [
            ToolCall(call_id=f"{len(said)}-{at}", name=call.name, arguments=call.arguments)
            for at, call in enumerate(gold)
        ] or "Hm."

    return FunctionModel(answer)


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_gold_answers_pass_every_task(sample, concurrency):
    """Each user turn is an episode; where gold calls are expected, it passed."""
    store = open_store("memory:")
    model = gold_model(sample)
    outcome = await evaluate(sample, model=model, store=store, run="gold", concurrency=concurrency)
    assert outcome.finished == len(sample.tasks)
    kept = {(e.metadata["task"], int(e.metadata["user_turn"])): e for e in store.select()}
    expected = {
        (t.task_id, at): bool(u.expects) for t in sample.tasks for at, u in enumerate(t.turns)
    }
    assert {key: e.verdict is not None for key, e in kept.items()} == expected
    assert all(e.verdict.passed for e in kept.values() if e.verdict is not None)


@pytest.fixture(scope="module")
def upstream(upstream_folder, mpmath):
    """The real benchmark, where its simulators can be run."""
    return load_bfcl_multi_turn(upstream_folder)


def rows(path):
    """The lines of a file, by id."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return {row["id"]: row for row in map(json.loads, filter(None, lines))}


@pytest.mark.corpora
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


@pytest.mark.corpora
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


@pytest.mark.corpora
async def test_verdicts_are_those_of_the_package(upstream_package, mpmath, agreement):
    """On gold and on altered gold the package's own checker finds what our verifiers find."""
    benchmark = load_bfcl_multi_turn(upstream_package)
    altering = agreement.Altering(benchmark.tasks, random.Random(5))
    trials = [
        trial
        for task in altering.dice.sample(benchmark.tasks, 12)
        for trial in altering.trials(task)
    ]
    theirs = agreement.Theirs(upstream_package)
    outcomes = [one async for one in agreement.compared(benchmark, theirs, trials)]
    assert len(outcomes) > 90
    assert 0 < sum(not one.theirs for one in outcomes) < len(outcomes)
    assert [one for one in outcomes if not one.is_same("direct")] == []
    assert all(one.executor for one in outcomes if not one.is_same("agent"))
