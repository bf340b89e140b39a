"""Composites that a change of a child marked are tried again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentkit import open_store
from agentkit.evolution import ToolManager
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.validation.report import ValidationReport
from agentkit.library import Author, LibraryChange
from agentkit.testing import primitive_library
from agentkit.tools.definition import Specification

TOTAL = '''
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)
'''


def change(store_url, *pre):
    """Give ``mul`` preconditions where its code is not at hand, so that nothing can be tried."""
    store = open_store(store_url)
    manager = ToolManager(
        store,
        lifecycle=LifecyclePolicy(evidence="none"),
        validate=lambda _change: ValidationReport(),
    )
    base = manager.library["mul"].definition
    candidate = replace(base, specification=Specification(pre=pre))
    author = Author(kind="program", name="evidence")
    manager.submit(Proposal.of(base, candidate, stream="evidence", author=author))
    assert [one.after for one in manager.advance()] == ["active"]
    store.close()


@pytest.fixture
def library(store_url, tmp_path):
    """A composite over primitives, and a file that leads to their code."""
    store = open_store(store_url)
    manager = ToolManager(store, tools=primitive_library())
    manager.register(primitive_library())
    assert manager.insert(TOTAL).to_json()["outcome"] == "added"
    store.close()
    code = "from agentkit.testing import primitive_library\ntools = list(primitive_library())\n"
    (tmp_path / "code.py").write_text(code)
    return store_url


def test_a_composite_that_holds_waits_no_more(invoke, library):
    """Without code it waits, with status 1 and the next command; with code the mark goes."""
    assert invoke("check").exit_code == 0
    change(library, "a < 100")
    assert "order_total waits to be validated again" in invoke("review").stderr
    waits = invoke("check", "--json")
    assert waits.exit_code == 1
    (fault,) = json.loads(waits.stdout)["faults"]
    assert (fault["place"], fault["code"]) == ("order_total", "unvalidated")
    assert "agentkit check --tools" in fault["advice"]
    held = invoke("check", "--tools", "code.py:tools")
    assert held.exit_code == 0
    assert "validated again: order_total" in held.stderr
    assert "validated again" not in invoke("review").stderr


def test_a_composite_that_breaks_stays_marked(invoke, library):
    """What breaks is told with how, once, and stays marked."""
    change(library, "a < 100")
    store = open_store(library)
    total = store.load()["order_total"].definition
    wrong = replace(total, examples=(replace(total.examples[0], result=99),))
    wrongly = LibraryChange(proposal_id="wrong", upserts=(wrong,))
    store.commit(wrongly, expected_version=store.load().version)
    store.close()
    result = invoke("check", "--tools", "code.py:tools")
    assert result.exit_code == 1
    assert "gave 14, not 99" in " ".join(result.stdout.split())
    assert result.stdout.endswith("\n1 fault\n")
    assert "order_total waits to be validated again" in invoke("review").stderr
