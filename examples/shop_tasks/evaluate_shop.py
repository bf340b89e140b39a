"""Tasks of one's own: a file of tasks, a world in Python, and an agent that is judged on them.

The tasks are in shop_tasks.jsonl, the shop that the tools act on is in shop.py. A script stands in
for the model and makes two mistakes, and one that is content with everything for the model that
judges by rubrics. With real ones the same is, on the command line,

    agentkit eval shop_tasks.jsonl --environment shop.py --model openai:gpt-4o-mini \
        --judge anthropic:claude-haiku-4-5

Run it: python examples/shop_tasks/evaluate_shop.py
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from agentkit import open_store
from agentkit.evaluation import evaluate, load_benchmark
from agentkit.messages import AssistantMessage, ToolCall, UserMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import FunctionModel

HERE = Path(__file__).parent


def call(name: str, **arguments: object) -> list[ToolCall]:
    """An answer that is one call."""
    return [ToolCall(call_id=f"{name}-1", name=name, arguments=arguments)]


LOOK = {f"A-{number}": call("get_order", order_id=f"A-{number}") for number in range(101, 105)}

ANSWERS: dict[str, Sequence[str | Sequence[ToolCall]]] = {
    "Where is my desk lamp": [LOOK["A-101"], "It has been shipped to Mill Lane 3, Aker."],
    "all my orders together": [
        call("find_orders", email="ada@example.org"),
        [*LOOK["A-101"], *LOOK["A-102"]],
        "Together you paid 96.50 euro.",
    ],
    "How many days": ["You have 30 days from delivery."],
    "cancel order A-102": [
        LOOK["A-102"],
        call("cancel_order", order_id="A-102", reason="changed_mind"),
        "Order A-102 is cancelled.",
    ],
    "cancel the desk lamp": [
        LOOK["A-101"],
        "I am sorry, order A-101 was shipped already, so it cannot be cancelled.",
    ],
    "still in its box": [
        LOOK["A-103"],
        call("refund_order", order_id="A-103", amount_eur=39),
        "You get 39.00 euro back.",
    ],
    "I tried the kettle": [  # a mistake: it was opened, so 85 percent are paid back
        LOOK["A-103"],
        call("refund_order", order_id="A-103", amount_eur=39),
        "You get 39.00 euro back.",
    ],
    "Refund my toasters": [
        LOOK["A-104"],
        "They came more than 30 days ago, so I cannot refund them.",
    ],
    "Send order A-103": [  # a mistake: it is the order of somebody else
        call("change_address", order_id="A-103", address="Mill Lane 3, Aker"),
        "Done.",
    ],
    "another address?": [LOOK["A-102"], "Yes, it has not left yet. Where to?"],
    "Harbour Street 7": [
        call("change_address", order_id="A-102", address="Harbour Street 7, Moss"),
        "It goes to Harbour Street 7, Moss.",
    ],
    "What does it cost": ["It costs 42.00 euro."],
}


def clerk(request: ModelRequest) -> str | Sequence[ToolCall]:
    """The next prepared answer to what the user said last."""
    said = [at for at, one in enumerate(request.messages) if isinstance(one, UserMessage)]
    text, since = request.messages[said[-1]].text, request.messages[said[-1] :]
    steps = next(steps for words, steps in ANSWERS.items() if words in text)
    return steps[sum(isinstance(one, AssistantMessage) for one in since)]


def judge(request: ModelRequest) -> str:
    """Finds every criterion met."""
    criteria = (request.output_schema or {})["properties"]
    finding = {"reason": "So it is.", "judgement": "met"}
    return json.dumps(dict.fromkeys(criteria, finding))


async def main() -> None:
    """Ask every task once and print what was wrong."""
    benchmark = load_benchmark(str(HERE / "shop_tasks.jsonl"), environment=str(HERE / "shop.py"))
    store = open_store("memory:")
    await evaluate(
        benchmark,
        model=FunctionModel(clerk, name="clerk"),
        judge=FunctionModel(judge, name="judge"),
        store=store,
        run="clerk",
    )
    verdicts = [(episode.metadata["task"], episode.verdict) for episode in store.select()]
    print(
        f"{sum(v is not None and v.passed for _, v in verdicts)} of {len(verdicts)} turns are right"
    )
    for task, verdict in verdicts:
        for found in verdict.evidence if verdict else ():
            print(f"{task}: {found}")


if __name__ == "__main__":
    asyncio.run(main())
