"""ToolDNA's two case studies on the sales assistant: texts repair themselves from its failures."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from agentkit import open_store
from agentkit.evaluation import episodes_of_run, evaluate, load_tasks, with_tools
from agentkit.evaluation.held_out import HeldOut
from agentkit.evolution import ToolManager
from agentkit.evolution.proposers.streams import FeedbackStream
from agentkit.evolution.round import evolve
from agentkit.library.chain_check import verify_chain
from agentkit.testing import FunctionModel
from agentkit.tools.rules import OneOf

FOLDER = Path(__file__).parents[2] / "examples" / "used_cars"


@pytest.fixture
def example(monkeypatch):
    """The example's module, whose neighbours are importable as for one who runs it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("evolve", "tools", "inventory")
    yield importlib.import_module("evolve")
    for name in names:
        sys.modules.pop(name, None)


async def test_both_texts_are_repaired(example, tmp_path):
    """The refused terms become a rule, the search text is sharpened, and held-out tasks gain."""
    manager, outcome = await example.repair(open_store("memory:"), tmp_path)
    loan = manager.library["calculate_loan"].definition
    search = manager.library["search_inventory"].definition
    assert loan.specification.rules == (OneOf(parameter="periods", values=(36, 48, 60)),)
    assert loan.parameters_schema["properties"]["periods"]["enum"] == [36, 48, 60]
    assert "enum" not in loan.signature.properties["periods"]
    assert "exactly" in search.description.parameters["query"]
    assert [one.record.state for one in outcome.considered] == ["active", "active"]
    for one in outcome.promoted:
        assert one.report.decision == "pass"
        assert one.report.statistics["losses"] == 0


async def test_every_step_is_in_the_chain(example, tmp_path):
    """Who proposed, what the checks and the numbers said, and what became active can be read."""
    store = open_store("memory:")
    manager, _ = await example.repair(store, tmp_path)
    events = store.events()
    told = [event.kind for event in events if event.tool_name == "calculate_loan"]
    assert told == ["proposed", "validated", "assessed", "active"]
    assert not verify_chain(events)
    digest = manager.library["calculate_loan"].definition.digest
    assert next(event.digest_after for event in events if event.kind == "active") == digest


async def test_a_text_that_brings_nothing_is_not_promoted(example, tmp_path):
    """A harmless rewording passes every check, gains nothing on held-out tasks, and stays out."""
    tools = example.sales_tools(example.Inventory(tmp_path / "cars.db"))
    benchmark = load_tasks(FOLDER / "customers.jsonl", tools=tools)
    seen, held_out = example.parts(example.replace(benchmark, environment=with_tools(tools)))
    store = open_store("memory:")
    manager = ToolManager(store, tools=tools)
    manager.register(tools)
    model = FunctionModel(example.salesperson, name="salesperson")
    await evaluate(seen, model=model, store=store, run="seen", library=manager.library)
    answer = (
        '<description>{"tool": "search_inventory", '
        '"parameters": {"query": "Words to search for, such as BMW X3."}}</description>'
    )
    idle = FunctionModel(
        lambda request: answer if '"Search the cars' in request.messages[-1].text else "NOTHING",
        name="idle",
    )
    outcome = await evolve(
        manager,
        [FeedbackStream(idle)],
        episodes=list(episodes_of_run(store, "seen")),
        compare=HeldOut(benchmark=held_out, model=model, store=store),
    )
    [considered] = outcome.considered
    assert considered.report.decision == "wait"
    assert considered.report.statistics["wins"] == 0
    assert considered.record.state == "validated"
    assert outcome.before == outcome.after


async def test_the_same_failures_teach_once(example, tmp_path):
    """A second round over the same episodes proposes nothing that is there already."""
    store = open_store("memory:")
    manager, first = await example.repair(store, tmp_path)
    again = await evolve(
        manager, [example.EvidenceProposer()], episodes=list(episodes_of_run(store, "customers"))
    )
    assert len(first.promoted) == 2
    assert again.promoted == ()
    assert again.before == again.after
