"""Does a small local model keep a rule that it reads, and one that its grammar knows?

    python tests/benchmarks/bench_rules_local.py [--model local:smollm2-135m] [--out FILE]

A loan tool that takes 36, 48 or 60 months does not say so. Twelve requests, some of which name
other terms, are put to the model with the definition as it is, with the rule in words, and with the
rule as data; a call counts as valid when the tool would take its months. Greedy decoding; the
grammar holds the model to the rest of the schema in all three.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentkit import tool
from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest
from agentkit.models.resolve import resolve_model
from agentkit.tools import Specification, ToolDefinition
from agentkit.tools.rules import OneOf, rule_sentence

RULE = OneOf(parameter="periods", values=(36, 48, 60))
REQUESTS = (
    "I want a loan of 12000 euros over three years.",
    "Finance 20000 euros over 4 years please.",
    "A car loan: 15000 euros, five years.",
    "18000 euros for 40 months.",
    "Borrow 9000 euros and pay back within 30 months.",
    "I need 25000 euros over about 50 months.",
    "Loan for 11000 euros, 2 years.",
    "30000 euros, as long as possible.",
    "14000 euros over 12 months.",
    "Quote 16000 euros over 72 months.",
    "I want to pay 10000 euros back in 36 months.",
    "22000 euros in 55 months.",
)


@tool
def loan_offer(amount: int, periods: int) -> str:
    """Quote a car loan.

    Args:
        amount: The amount in euros.
        periods: How many months.
    """
    return f"{amount} euros over {periods} months"


def variants() -> dict[str, ToolDefinition]:
    """The definition in three states."""
    hidden = loan_offer.definition
    words = replace(hidden.description, usage_rules=(rule_sentence(RULE),))
    return {
        "not stated": hidden,
        "sentence": replace(hidden, description=words),
        "rule as data": replace(hidden, specification=Specification(rules=(RULE,))),
    }


async def months(model: Any, definition: ToolDefinition, request: str) -> Any:
    """The months that the model asks for; None when it calls nothing."""
    asked = ModelRequest(
        messages=(UserMessage(text=request),), tools=(definition,), tool_choice="required"
    )
    calls = (await model.complete(asked)).message.tool_calls
    return calls[0].arguments.get("periods") if calls else None


async def measured(name: str) -> dict[str, list[Any]]:
    """What the model asked for, by variant."""
    model = resolve_model(name)
    return {
        variant: [await months(model, definition, request) for request in REQUESTS]
        for variant, definition in variants().items()
    }


def main() -> None:
    """Ask, print a table, and write the answers if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="local:smollm2-135m")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    answers = asyncio.run(measured(options.model))
    for variant, given in answers.items():
        valid = sum(value in RULE.values for value in given)
        print(f"| {variant} | {valid} of {len(REQUESTS)} | {given} |")
    if options.out:
        options.out.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
