"""The sales assistant's tool texts repair themselves from its own failures.

Two flaws that ToolDNA reports from real shops (case studies 1 and 2). The loan tool does not say
which terms the bank takes, so the assistant asks for what the customer said and is refused. The
search tool does not say how exact a search term must be, so "Passat 380" finds every Passat.

The first flaw is repaired without a model, from the bank's own refusals; the second through a
feedback model, which sees what would have been right. Both models are scripts here, so that it runs
anywhere; the assistant does read the tools' texts, and acts on nothing else.

Run it: python examples/used_cars/evolve.py
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from inventory import Inventory
from tools import sales_tools

from agentkit import open_store
from agentkit.evaluation import Benchmark, episodes_of_run, evaluate, load_tasks, with_tools
from agentkit.evaluation.held_out import HeldOut
from agentkit.evolution import (
    EvidenceProposer,
    EvolutionReport,
    FeedbackStream,
    ToolManager,
    ValidationPolicy,
    evolve,
    validate,
)
from agentkit.library import Store
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import FunctionModel
from agentkit.tools import ToolDefinition

HERE = Path(__file__).parent

LOAN = re.compile(r"(C-\d+).*?([\d,]+) euro|([\d,]+) euro down on (C-\d+)")
MONTHS = re.compile(r"(\d+) months")
MODEL = re.compile(r"[Aa]n? ([A-Z]\w*(?: [A-Z]?[\w-]+)?)(?=[?.,]| on )")


def salesperson(request: ModelRequest) -> AssistantMessage | list[ToolCall]:
    """Does what the customer said and the tools' texts allow; gives up when a tool refuses."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return AssistantMessage(text=last.text)
    offered = {definition.name: definition for definition in request.tools}
    months = MONTHS.search(last.text)
    if months is None:
        query = MODEL.search(last.text)
        wanted = query[1] if query else last.text
        return _call("search_inventory", query=_search_term(wanted, offered["search_inventory"]))
    first, down, other_down, other = LOAN.search(last.text).groups()  # type: ignore[union-attr]
    return _call(
        "calculate_loan",
        stock_number=first or other,
        down_payment_eur=int((down or other_down).replace(",", "")),
        periods=_term(int(months[1]), offered["calculate_loan"]),
    )


def _term(months: int, loan: ToolDefinition) -> int:
    """What the customer said, or the nearest term where the schema says which there are."""
    allowed = loan.parameters_schema["properties"]["periods"].get("enum")
    return min(allowed, key=lambda one: abs(one - months)) if allowed else months


def _search_term(wanted: str, search: ToolDefinition) -> str:
    """The first word, which is what most people type; all of it where the text asks for it."""
    text = search.description.parameters["query"]
    return wanted if "exactly" in text else wanted.split(maxsplit=1)[0]


def _call(name: str, **arguments: object) -> list[ToolCall]:
    return [ToolCall(call_id="1", name=name, arguments=arguments)]


def critic(request: ModelRequest) -> str:
    """Stands in for the feedback model: knows a remedy for the search tool, and for no other."""
    if '{"tool": "search_inventory", "summary": "S' not in request.messages[-1].text:
        return "NOTHING"
    return (
        "The search term was too wide.\n<description>\n"
        '{"tool": "search_inventory", "parameters": {"query": "Search term, such as BMW X3. When '
        'the customer names a model, the term must match it exactly."}}\n'
        "</description>"
    )


def parts(benchmark: Benchmark) -> tuple[Benchmark, Benchmark]:
    """What the assistant learns from, and what it is tested on."""
    seen = tuple(task for task in benchmark.tasks if task.task_id.startswith("seen"))
    held_out = tuple(task for task in benchmark.tasks if task.task_id.startswith("test"))
    return replace(benchmark, tasks=seen), replace(benchmark, tasks=held_out)


async def repair(store: Store, folder: Path) -> tuple[ToolManager, EvolutionReport]:
    """Serve customers, look at what went wrong, and let the numbers decide what is changed."""
    tools = sales_tools(Inventory(folder / "cars.db"))
    benchmark = load_tasks(HERE / "customers.jsonl", tools=tools)
    seen, held_out = parts(replace(benchmark, environment=with_tools(tools)))
    by_numbers = partial(validate, policy=ValidationPolicy(model_texts=()))
    manager = ToolManager(store, tools=tools, validate=by_numbers)
    manager.register(tools, reason="the assistant's tools")
    model = FunctionModel(salesperson, name="salesperson")
    await evaluate(seen, model=model, store=store, run="customers", library=manager.library)
    outcome = await evolve(
        manager,
        [EvidenceProposer(), FeedbackStream(FunctionModel(critic, name="critic"))],
        episodes=list(episodes_of_run(store, "customers")),
        compare=HeldOut(benchmark=held_out, model=model, store=store),
    )
    return manager, outcome


async def main() -> None:
    """Run one round and tell what it changed."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store("memory:")
        manager, outcome = await repair(store, Path(folder))
    for one in outcome.considered:
        print(f"{one.record.tool_name} ({one.record.stream}): {one.record.state}")
        print(f"  {one.why}")
    print()
    print(manager.library["calculate_loan"].definition.text.splitlines()[-1])
    print(manager.library["search_inventory"].definition.description.parameters["query"])
    print()
    for event in store.events():
        print(f"{event.sequence} {event.kind}: {event.tool_name} {event.reason[:80]!r}")


if __name__ == "__main__":
    asyncio.run(main())
