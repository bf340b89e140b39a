"""Rolling a tool back makes a new version that restores an old definition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError, ToolNotFoundError
from agentkit.library import LibraryChange
from agentkit.library.changes import rollback_change
from agentkit.tools.definition import Description, Origin


def tool(name: str, summary: str) -> ToolDefinition:
    """A tool with one text."""
    return ToolDefinition(name=name, description=Description(summary=summary))


@pytest.fixture
def store():
    """Tool a: good in 1, bad in 3, removed in 4. Tool b: new in 2."""
    store = open_store("memory:")
    steps = [
        LibraryChange(proposal_id="1", upserts=(tool("a", "good"),)),
        LibraryChange(proposal_id="2", upserts=(tool("b", "b"),)),
        LibraryChange(proposal_id="3", upserts=(tool("a", "bad"),)),
        LibraryChange(proposal_id="4", removals=("a",)),
    ]
    for version, step in enumerate(steps):
        store.commit(step, expected_version=version)
    return store


def test_the_definition_of_that_version_is_restored(store):
    """The change holds the definition that the tool had at that version, with its reason."""
    change = rollback_change(store, "a", to_version=2, proposal_id="undo", author="Ada")
    assert change.upserts == (tool("a", "good"),)
    assert (change.proposal_id, change.author, change.removals) == ("undo", "Ada", ())
    assert "version 2" in change.reason


def test_a_removed_tool_comes_back(store):
    """A tool that was removed since is in the library again, and its history only grows."""
    change = rollback_change(store, "a", to_version=3, proposal_id="undo")
    assert store.commit(change, expected_version=4) == 5
    assert store.load()["a"].definition == tool("a", "bad")
    assert [revision.version for revision in store.history("a")] == [1, 3, 4, 5]


def test_nothing_to_do_says_so(store):
    """A tool that already is as it was then raises and shows its history."""
    with pytest.raises(StoreError, match=r"nothing to roll back") as caught:
        rollback_change(store, "b", to_version=3, proposal_id="undo")
    assert "2 changed" in str(caught.value)


def test_another_origin_is_something_to_restore(store):
    """A revision that differs in its origin alone can be rolled back."""
    moved = replace(tool("b", "b"), origin=Origin(kind="mcp", reference="elsewhere"))
    store.commit(LibraryChange(proposal_id="5", upserts=(moved,)), expected_version=4)
    change = rollback_change(store, "b", to_version=2, proposal_id="undo")
    assert change.upserts[0].origin == Origin()


@pytest.mark.parametrize(("name", "version"), [("b", 1), ("a", 0), ("a", 4)])
def test_a_version_without_the_tool_is_refused(store, name, version):
    """Rolling back to a version that lacked the tool raises: it never removes."""
    with pytest.raises(StoreError, match="never removes"):
        rollback_change(store, name, to_version=version, proposal_id="undo")


@pytest.mark.parametrize("version", [-1, 5])
def test_a_version_that_never_was_is_refused(store, version):
    """An unknown version raises and says which there are."""
    with pytest.raises(StoreError, match="versions 1 to 4"):
        rollback_change(store, "a", to_version=version, proposal_id="undo")


def test_an_unknown_tool_is_refused_with_a_suggestion(store):
    """A name that the store never held raises and suggests one that it has."""
    with pytest.raises(ToolNotFoundError) as caught:
        rollback_change(store, "B", to_version=1, proposal_id="undo")
    assert caught.value.nearest == ("b",)


def test_a_fresh_store_has_no_versions_to_go_back_to():
    """An empty store says that it holds no version."""
    with pytest.raises(StoreError, match="no version yet"):
        rollback_change(open_store("memory:"), "a", to_version=1, proposal_id="undo")
