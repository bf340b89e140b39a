"""ToolDNA's two case studies on the sales assistant: texts repair themselves from its failures."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from agentkit import open_store
from agentkit.library.chain import verify_chain
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
