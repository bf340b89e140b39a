"""The example of a whole set of tasks: right answers pass, and each mistake is found."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentkit import open_store
from agentkit.evaluation import load_benchmark
from agentkit.evaluation.runner import evaluate
from agentkit.messages import AssistantMessage, ToolCall, UserMessage
from agentkit.testing import FunctionModel


def step(name, **arguments):
    """One call."""
    return [ToolCall(call_id="1", name=name, arguments=arguments)]


RIGHT = {
    "status": [[step("get_order", order_id="A-101"), "It was SHIPPED."]],
    "price": [[step("find_orders", email="ada@example.org"), "In all 96.50 euro."]],
    "policy": [["Within 30 days."]],
    "cancel": [[step("cancel_order", order_id="A-102", reason="changed_mind"), "Done."]],
    "cancel-late": [["It was shipped already, I can not."]],
    "refund": [[step("refund_order", order_id="A-103", amount_eur=39), "Done."]],
    "refund-opened": [[step("refund_order", order_id="A-103", amount_eur=33.15), "You get 33.15."]],
    "refund-late": [["No, that was more than 30 days ago."]],
    "stranger": [["I can not tell you about that order."]],
    "two-wishes": [
        ["Yes."],
        [step("change_address", order_id="A-102", address="Harbour Street 7, Moss"), "Done."],
        ["42 euro."],
    ],
}
WRONG = {
    "status": [[step("get_order", order_id="A-101"), "It is on its way."]],
    "price": [["54.50 euro."]],
    "policy": [[step("find_orders", email="ada@example.org"), "30 days."]],
    "cancel": [[step("cancel_order", order_id="A-101", reason="changed_mind"), "Done."]],
    "cancel-late": [[step("cancel_order", order_id="A-101", reason="too_slow"), "Done."]],
    "refund": [["I will see to it."]],
    "refund-opened": [[step("refund_order", order_id="A-103", amount_eur=39), "You get 39."]],
    "refund-late": [[step("refund_order", order_id="A-104", amount_eur=80), "Done."]],
    "stranger": [[step("change_address", order_id="A-103", address="Mill Lane 3"), "Done."]],
    "two-wishes": [["Yes."], ["Done."], ["42 euro."]],
}


def content(request):
    """A judge that finds every criterion met."""
    finding = {"reason": "Yes.", "judgement": "met"}
    return json.dumps(dict.fromkeys(request.output_schema["properties"], finding))


@pytest.fixture
def answered(shop):
    """Runs the whole set on prepared answers; gives the verdicts of every task's turns."""
    path = str(shop / "shop_tasks.jsonl")
    benchmark = load_benchmark(path, environment=str(shop / "shop.py"))
    assert [str(one) for one in benchmark.left_out] == []

    async def run(answers):
        scripts = {
            turn.request: steps
            for task in benchmark.tasks
            for turn, steps in zip(task.turns, answers[task.task_id], strict=True)
        }

        def clerk(request):
            said = max(at for at, m in enumerate(request.messages) if isinstance(m, UserMessage))
            later = request.messages[said:]
            done = sum(isinstance(message, AssistantMessage) for message in later)
            return scripts[request.messages[said].text][done]

        store = open_store("memory:")
        judge = FunctionModel(content, name="judge")
        await evaluate(benchmark, model=FunctionModel(clerk), judge=judge, store=store, run="r")
        found = {task.task_id: [] for task in benchmark.tasks}
        for episode in store.select():
            found[episode.metadata["task"]].append(episode.verdict)
        return found

    return run


async def test_right_answers_pass(answered):
    """Each task passes for an answer that keeps the policy, conversations included."""
    found = await answered(RIGHT)
    failed = {task: v for task, verdicts in found.items() for v in verdicts if not v.passed}
    assert failed == {}
    assert len(found["two-wishes"]) == 3


@pytest.mark.parametrize("task", sorted(RIGHT))
async def test_each_mistake_is_found(answered, task):
    """A wrong answer to one task fails that task and no other."""
    found = await answered({**RIGHT, task: WRONG[task]})
    failed = {task for task, verdicts in found.items() if not all(v.passed for v in verdicts)}
    assert failed == {task}


async def test_worlds_do_not_mix(shop):
    """What one attempt changes, the next attempt at the same task does not see."""
    path = str(shop / "shop_tasks.jsonl")
    benchmark = load_benchmark(path, environment=str(shop / "shop.py"))
    task = next(task for task in benchmark.tasks if task.task_id == "cancel")
    first, second = (benchmark.environment(replace(task, task_id=name)) for name in "ab")
    cancel = {tool.name: tool for tool in first.tools()}["cancel_order"]
    cancel(order_id="A-102", reason="changed_mind")
    assert first.state() != second.state()
