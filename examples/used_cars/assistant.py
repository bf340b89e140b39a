"""A sales assistant for used cars: an agent embedded in a chat, with real tools.

    python examples/used_cars/assistant.py                                # a scripted model
    python examples/used_cars/assistant.py --model openai:gpt-4o-mini     # a hosted one
    python examples/used_cars/assistant.py --model local:smollm2-135m     # one in this process

The 135M model shows the wiring, not the job: it repeats its first call until the step limit.
The conversation is a session: each message is one run, and its episodes lie in the database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from inventory import Inventory
from tools import sales_tools

from agentkit import Agent
from agentkit.episodes import Turn
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ChatModel, ModelRequest
from agentkit.testing import FunctionModel

INSTRUCTIONS = (
    "You sell used cars. Be brief and honest. Look cars, policies and loans up with the tools; "
    "never invent a price, a promise or a rate."
)

CUSTOMER = [
    "I am looking for an estate up to 20,000 euro.",
    "What would C-101 cost me a month with 4,000 down, over 50 months?",
    "Can I bring it back if I do not like it?",
    "I want ten percent off.",
]


def build_agent(model: ChatModel | str, folder: Path) -> Agent:
    """The assistant over an inventory and an episode store in ``folder``."""
    return Agent(
        model,
        tools=sales_tools(Inventory(folder / "cars.db")),
        store=f"sqlite:///{folder / 'agent.db'}",
        instructions=INSTRUCTIONS,
        name="used-cars",
    )


async def converse(agent: Agent, messages: Iterable[str]) -> None:
    """Show one conversation, with what happens behind each answer."""
    for message in messages:
        print(f"\ncustomer   {message}")
        result = await agent.run(message, session_id="demo")
        _show_calls(result.episode.turns)
        if result.stop_reason == "deferred":
            answers = {call.call_id: "Anna: I can do five percent." for call in result.deferred}
            print("           … a person takes over")
            result = await agent.resume(result, values=answers)
        print(f"assistant  {result.text}")


def _show_calls(turns: Sequence[Turn]) -> None:
    for turn in turns:
        for call, outcome in zip(turn.message.tool_calls, turn.results, strict=True):
            arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
            print(f"           → {call.name}({arguments})")
            said = outcome.failure.rule if outcome.failure else outcome.text
            print(f"             {outcome.status}: {said[:88]}")


def scripted_salesperson(request: ModelRequest) -> AssistantMessage:
    """Stands in for a model, so that the example runs anywhere: fixed moves, real tool results.

    It makes the mistake that models make (a term of 50 months) and reads the refusal.
    """
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return _after_result(last)
    text = last.text.lower()
    if "estate" in text:
        return _calling("search_inventory", body="estate", max_price_eur=20_000)
    if "month" in text:
        return _calling("calculate_loan", stock_number="C-101", down_payment_eur=4000, periods=50)
    if "back" in text:
        return _calling("check_policy", topic="returns")
    return _calling("hand_over_to_person", reason="The customer asks for a discount of 10%.")


def _after_result(last: ToolMessage) -> AssistantMessage:
    if "must be one of" in last.text:  # the refusal names the allowed terms: take the nearest
        return _calling("calculate_loan", stock_number="C-101", down_payment_eur=4000, periods=48)
    match last.name:
        case "search_inventory":
            cars = ", ".join(f"{c['make']} {c['model']}" for c in json.loads(last.text))
            return AssistantMessage(text=f"These would fit: {cars}.")
        case "calculate_loan":
            rate = json.loads(last.text)["monthly_rate_eur"]
            return AssistantMessage(text=f"We offer 48 months, at {rate} euro a month.")
        case _:
            return AssistantMessage(text=last.text)


def _calling(name: str, **arguments: object) -> AssistantMessage:
    return AssistantMessage(tool_calls=(ToolCall(call_id="1", name=name, arguments=arguments),))


def main() -> None:
    """Run the conversation above, or your own with ``--chat``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", help="a model name; without it, a scripted stand-in answers")
    parser.add_argument("--chat", action="store_true", help="type the customer's part yourself")
    options = parser.parse_args()
    model = options.model or FunctionModel(scripted_salesperson, name="scripted")
    with tempfile.TemporaryDirectory() as folder:
        agent = build_agent(model, Path(folder))
        messages = iter(lambda: input("you: "), "") if options.chat else CUSTOMER
        asyncio.run(_main(agent, messages))


async def _main(agent: Agent, messages: Iterable[str]) -> None:
    try:
        await converse(agent, messages)
    finally:
        await agent.close()


if __name__ == "__main__":
    main()
