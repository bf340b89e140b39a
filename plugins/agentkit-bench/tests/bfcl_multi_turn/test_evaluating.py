"""The whole way: a benchmark is asked, answered with its gold calls, judged and kept."""

from __future__ import annotations

import pytest

from agentkit import open_store
from agentkit.evaluation import FinalState
from agentkit.evaluation.runner import evaluate
from agentkit.messages import ToolCall, UserMessage
from agentkit.testing import FunctionModel


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
