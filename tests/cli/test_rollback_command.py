"""``agentkit rollback`` takes back every kind of change, whoever made it."""

from __future__ import annotations

import pytest

from agentkit import open_store
from agentkit.library.chain_check import verify_chain, verify_library

TOOLS = '''
from agentkit import tool


@tool(effects=[])
def price(article: str) -> float:
    """Price of an article."""
    return 1.0


@tool(effects=[])
def stock(article: str) -> int:
    """How many are left."""
    return 1
'''


@pytest.fixture
def added(invoke, tmp_path):
    """A library to which a command added two tools."""
    file = tmp_path / "shop.py"
    file.write_text(TOOLS)
    assert invoke("tools", "add", str(file)).exit_code == 0
    return file


def names(store_url):
    """The tools of the library, which is as its events say."""
    store = open_store(store_url)
    library = store.load()
    assert not verify_chain(store.events())
    assert not [one for one in verify_library(store, store.events()) if not one.is_note]
    store.close()
    return {one.name: one.description.summary for one in library.definitions}


def test_added_tools_go(invoke, added, store_url):
    """What tools add wrote is taken back as one change."""
    assert set(names(store_url)) == {"price", "stock"}
    done = invoke("rollback", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "taken back: library version 1 (price, stock)" in done.stderr
    assert names(store_url) == {}
    assert "nothing is left to take back" in invoke("rollback").stderr


def test_a_change_under_a_later_one_waits(invoke, added, store_url):
    """An older change is refused by its id while a later one stands on the same tool."""
    added.write_text(TOOLS.replace("Price of an article.", "What it costs."))
    assert invoke("tools", "add", str(added), "--on-conflict", "replace").exit_code == 0
    store = open_store(store_url)
    first = store.events()[0].facts["change"]
    store.close()
    refused = invoke("rollback", first)
    assert refused.exit_code == 2
    assert "changed again by library version 2" in refused.stderr
    assert names(store_url)["price"] == "What it costs."
