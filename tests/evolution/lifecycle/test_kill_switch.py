"""A pin lets runs use one version whatever happens to the library."""

from __future__ import annotations

import pytest

from agentkit.errors import StoreError, ToolNotFoundError, UsageError
from agentkit.library import LibraryChange
from agentkit.library.pins import pin_faults

TOTAL = '''
@composite(examples=[{"arguments": {"a": 1, "b": 2}, "result": 4}])
def one_more(a: float, b: float) -> float:
    """One more than a sum."""
    return add(add(a, b), 1)
'''


@pytest.fixture
def promote(manager, propose):
    """Promotes a summary of a tool."""

    def make(summary, name="add"):
        manager.submit(propose(manager, name, summary))
        return manager.advance()

    return make


def summary(library, name="add"):
    """What a library says of a tool."""
    return library[name].definition.description.summary


def test_the_whole_library_is_pinned(manager, store, promote):
    """Runs use that version, with its code, until it is unpinned; the library goes on."""
    original = summary(manager.library)
    promote("Add two numbers, once.")
    served = manager.pin(1, reason="complaints")
    assert (served.version, summary(served)) == (1, original)
    assert served["add"](a=1, b=2) == 3
    assert manager.library.version == 2
    assert summary(manager.unpin()) == "Add two numbers, once."
    assert [event.kind for event in store.events()][-2:] == ["pinned", "unpinned"]


def test_one_tool_is_pinned(manager, promote):
    """The pinned tool has its old words; others go on; composites above run on it."""
    original = summary(manager.library)
    manager.insert(TOTAL)
    promote("Add two numbers, once.")
    served = manager.pin(2, "add")
    promote("Multiply two numbers, and no more.", "mul")
    served = manager.served
    assert summary(served) == original
    assert summary(served, "mul") == "Multiply two numbers, and no more."
    assert not pin_faults(served)
    assert served["one_more"](a=1, b=2) == 4


def test_what_is_pinned_is_not_brought_on(manager, propose):
    """A proposal for a pinned tool waits, and goes on after."""
    manager.pin(1, "add")
    manager.submit(propose(manager))
    (advance,) = manager.advance()
    assert (advance.after, advance.why) == ("validated", "'add' is pinned to library version 1")
    manager.unpin("add")
    assert manager.advance()[0].after == "active"


def test_a_pin_of_the_library_goes_before_one_of_a_tool(manager, promote):
    """With both the whole library is the one that was pinned."""
    promote("Add two numbers, once.")
    manager.pin(2, "add")
    assert manager.pin(1).version == 1
    assert manager.ledger.pinned_version("add") == 1
    with pytest.raises(UsageError, match="whole library is pinned"):
        manager.unpin("mul")


def test_what_can_not_be_pinned(manager):
    """A version or a tool that is not there is refused, and nothing is written."""
    with pytest.raises(StoreError, match="no library version 9"):
        manager.pin(9)
    with pytest.raises(ToolNotFoundError):
        manager.pin(1, "ghost")
    with pytest.raises(ToolNotFoundError):
        manager.pin(0, "add")
    assert not manager.ledger.pins


def test_a_pinned_tool_that_goes_stays_gone(manager, store, promote):
    """A removed tool is not served, pinned or not."""
    promote("Add two numbers, once.")
    manager.pin(1, "add")
    store.commit(LibraryChange(proposal_id="drop", removals=("add",)), expected_version=2)
    manager.refresh()
    assert "add" not in manager.served
    manager.pin(1)
    assert "add" in manager.served  # the whole library as it was
