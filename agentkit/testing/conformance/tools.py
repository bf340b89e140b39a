"""The tests that every ``ToolStore`` passes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from agentkit.errors import StaleVersionError, StoreError, ToolNotFoundError
from agentkit.library.changes import rollback_change
from agentkit.library.store import LibraryChange, Store, ToolStore
from agentkit.messages import JsonObject, JsonValue
from agentkit.testing.conformance.fixtures import (
    OpenAgain,
    StoreFixtures,
    a_tool,
    put,
    together,
)
from agentkit.testing.sample_tools import sample_library
from agentkit.tools.definition import (
    Example,
    Origin,
    Signature,
    Specification,
    ToolDefinition,
)

_NOT_JSON = ToolDefinition(name="b", examples=(Example(arguments={"x": float("nan")}),))

_RESULTS: tuple[JsonValue, ...] = ("", [], {}, 0, False, [None, [[]]])

_BOUNDS: JsonObject = {"maximum": 10**30, "minimum": -1e-300, "enum": [0.1, 10**17]}

_ODD = (
    replace(a_tool("bounds"), signature=Signature(parameters={"properties": {"n": _BOUNDS}})),
    replace(a_tool("results"), examples=tuple(Example(arguments={}, result=r) for r in _RESULTS)),
    replace(a_tool("conditions"), specification=Specification(pre=("x > 0 and y != '%s'",))),
)


def _names(store: ToolStore, version: int | None = None) -> list[str]:
    return list(store.load(version).tools)


class ToolStoreConformance(StoreFixtures):
    """Subclass it in a test module, name the class ``Test...`` and override one fixture.

    See ``StoreFixtures`` for the choice; docs/write-a-store.md shows a complete example.
    """

    def test_a_fresh_store_is_empty(self, store: Store) -> None:
        """A fresh store holds version 0, which is the empty library, and no history."""
        assert store.load().version == 0
        assert len(store.load()) == 0
        assert len(store.load(0)) == 0
        assert list(store.versions()) == []
        assert list(store.history("anything")) == []

    def test_what_is_added_is_loaded(self, store: Store) -> None:
        """Definitions come back equal in all four levels, in order, under the new version."""
        given = sample_library().definitions
        assert store.commit(put("add", *given), expected_version=0) == 1
        library = store.load()
        assert library.version == 1
        assert library.definitions == given
        assert [tool.origin for tool in library.definitions] == [tool.origin for tool in given]
        assert library.digest == sample_library().digest

    def test_instructions_are_kept_beside_tools(
        self, store: Store, open_store_again: OpenAgain
    ) -> None:
        """An agent's instructions have versions like a tool, and are none."""
        name, origin = "instructions/support", Origin(kind="instructions")
        old, new = (replace(a_tool("x", said), name=name, origin=origin) for said in ("Be.", "Do."))
        store.commit(put("1", a_tool("a"), old, a_tool("b")), expected_version=0)
        store.commit(put("2", new), expected_version=1)
        for library in (store.load(), open_store_again().load()):
            assert list(library.tools) == ["a", "b"]
            assert library.all_definitions == (a_tool("a"), new, a_tool("b"))
        assert (store.load(1)[name].definition, len(store.history(name))) == (old, 2)
        store.commit(put("3", remove=(name,)), expected_version=2)
        assert not store.load().instructions

    def test_a_replaced_tool_keeps_its_place(self, store: Store) -> None:
        """A definition of a known name takes the place of the old one in the order."""
        store.commit(put("add", a_tool("a"), a_tool("b"), a_tool("c")), expected_version=0)
        store.commit(put("edit", a_tool("new"), a_tool("b", "better")), expected_version=1)
        assert _names(store) == ["a", "b", "c", "new"]
        assert store.load()["b"].definition.description.summary == "better"

    def test_a_removed_tool_is_gone_and_comes_back_last(self, store: Store) -> None:
        """A removed tool is not loaded; added again, it is the last in the order."""
        store.commit(put("add", a_tool("a"), a_tool("b")), expected_version=0)
        store.commit(put("drop", remove=("a",)), expected_version=1)
        assert _names(store) == ["b"]
        store.commit(put("again", a_tool("a")), expected_version=2)
        assert _names(store) == ["b", "a"]

    def test_old_versions_stay(self, store: Store) -> None:
        """Every version loads as it was, whatever was loaded or committed since."""
        store.commit(put("1", a_tool("a", "one"), a_tool("b")), expected_version=0)
        store.commit(put("2", a_tool("a", "two"), remove=("b",)), expected_version=1)
        store.commit(put("3", a_tool("b", "back"), a_tool("c")), expected_version=2)
        assert list(store.versions()) == [1, 2, 3]
        expected = {0: [], 1: ["a", "b"], 2: ["a"], 3: ["a", "b", "c"]}
        for version in (3, 0, 2, 1, 3, 1):
            assert _names(store, version) == expected[version]
            assert store.load(version).version == version
        assert store.load(1)["a"].definition.description.summary == "one"

    @pytest.mark.parametrize("version", [-1, 2, 2**70])
    def test_a_version_that_never_was_is_refused(self, store: Store, version: int) -> None:
        """Loading a version that does not exist raises and names it."""
        store.commit(put("add", a_tool("a")), expected_version=0)
        with pytest.raises(StoreError, match=str(version)):
            store.load(version)

    def test_history_tells_who_what_and_why(self, store: Store) -> None:
        """A tool's history has one entry for each change to it, oldest first, with its reasons."""
        added = LibraryChange(
            proposal_id="p-1",
            upserts=(a_tool("a", "one"), a_tool("b")),
            author="Ada",
            reason="first import",
            evidence=("e1", "e2"),
        )
        store.commit(added, expected_version=0)
        store.commit(put("p-2", a_tool("b", "not a")), expected_version=1)
        store.commit(put("p-3", remove=("a",)), expected_version=2)
        first, last = store.history("a")
        assert (first.version, first.proposal_id, first.definition) == (
            1,
            "p-1",
            a_tool("a", "one"),
        )
        assert (first.author, first.reason, first.evidence) == ("Ada", "first import", ("e1", "e2"))
        assert (last.version, last.proposal_id, last.definition) == (3, "p-3", None)
        assert list(store.history("never seen")) == []

    def test_a_stale_change_is_refused(self, store: Store) -> None:
        """A change that was built on another version than the newest changes nothing."""
        store.commit(put("1", a_tool("a")), expected_version=0)
        for expected in (0, 2):
            with pytest.raises(StaleVersionError) as caught:
                store.commit(put("late", a_tool("b")), expected_version=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 1)
        assert (list(store.versions()), _names(store)) == ([1], ["a"])

    def test_one_writer_wins_each_version(self, store: Store) -> None:
        """Exactly one of several writers that build on the same version at once succeeds."""
        for version in range(5):
            changes = [put(f"{version}-{i}", a_tool(f"t{i}", str(version))) for i in range(6)]
            outcomes = together(
                [partial(store.commit, one, expected_version=version) for one in changes]
            )
            assert [one for one in outcomes if isinstance(one, int)] == [version + 1]
            assert sum(isinstance(one, StaleVersionError) for one in outcomes) == 5
        assert list(store.versions()) == [1, 2, 3, 4, 5]

    def test_a_proposal_is_applied_exactly_once(self, store: Store) -> None:
        """A repeated proposal id answers with its version and changes nothing."""
        change = put("same", a_tool("a", "first"))
        assert store.commit(change, expected_version=0) == 1
        assert store.commit(change, expected_version=1) == 1
        store.commit(put("other", a_tool("a", "second")), expected_version=1)
        assert store.commit(change, expected_version=0) == 1
        assert store.commit(change, expected_version=99) == 1
        assert store.load()["a"].definition.description.summary == "second"
        assert [revision.proposal_id for revision in store.history("a")] == ["same", "other"]

    def test_a_proposal_sent_twice_at_once_is_applied_once(self, store: Store) -> None:
        """Retries that race each other all get the one version."""
        change = put("same", a_tool("a"))
        assert together([lambda: store.commit(change, expected_version=0)] * 6) == [1] * 6
        assert list(store.versions()) == [1]

    @pytest.mark.parametrize(
        "change",
        [
            put("empty"),
            put(" ", a_tool("no_id")),
            put("twice", a_tool("a", "1"), a_tool("a", "2")),
            put("both", a_tool("kept"), remove=("kept",)),
            put("removed twice", remove=("kept", "kept")),
            put("nan", a_tool("a"), _NOT_JSON),
        ],
        ids=lambda change: change.proposal_id,
    )
    def test_a_change_that_makes_no_sense_is_refused(
        self, store: Store, change: LibraryChange
    ) -> None:
        """An empty or contradictory change, or one JSON cannot hold, raises; nothing changes."""
        store.commit(put("add", a_tool("kept")), expected_version=0)
        with pytest.raises(StoreError):
            store.commit(change, expected_version=1)
        assert (list(store.versions()), _names(store)) == ([1], ["kept"])

    def test_removing_an_unknown_tool_changes_nothing(self, store: Store) -> None:
        """A removal that names no tool fails the whole change and suggests a name."""
        store.commit(put("add", a_tool("weather")), expected_version=0)
        with pytest.raises(ToolNotFoundError) as caught:
            store.commit(put("bad", a_tool("new"), remove=("wether",)), expected_version=1)
        assert (caught.value.tool_name, caught.value.nearest) == ("wether", ("weather",))
        assert (list(store.versions()), _names(store)) == ([1], ["weather"])
        assert store.commit(put("bad", a_tool("new")), expected_version=1) == 2

    @pytest.mark.parametrize("tool", _ODD, ids=lambda tool: tool.name[:10])
    def test_odd_definitions_come_back_equal(self, store: Store, tool: ToolDefinition) -> None:
        """Whatever JSON can hold survives: any script, quotes, long texts, big numbers."""
        store.commit(put("odd", tool), expected_version=0)
        (loaded,) = store.load().definitions
        assert loaded == tool
        assert loaded.digest == tool.digest
        assert store.history(tool.name)[0].definition == tool

    def test_every_origin_is_kept(self, store: Store) -> None:
        """Importing an unchanged tool from elsewhere keeps both origins, each with its version."""
        mine = replace(a_tool("a"), origin=Origin(kind="function", reference="shop.py:a"))
        theirs = replace(
            a_tool("a"),
            origin=Origin(kind="openapi", original={"type": "dict"}, licence="MIT"),
        )
        assert mine.digest == theirs.digest
        store.commit(put("1", mine), expected_version=0)
        store.commit(put("2", theirs), expected_version=1)
        assert store.load(1)["a"].definition.origin == mine.origin
        assert store.load(2)["a"].definition.origin == theirs.origin
        kept = [revision.definition for revision in store.history("a")]
        assert [tool.origin for tool in kept if tool] == [mine.origin, theirs.origin]

    def test_a_tool_is_rolled_back(self, store: Store) -> None:
        """Rolling back restores the old definition in a new version and deletes nothing."""
        store.commit(put("1", a_tool("a", "good"), a_tool("b")), expected_version=0)
        store.commit(put("2", a_tool("a", "bad")), expected_version=1)
        change = rollback_change(store, "a", to_version=1, proposal_id="undo", author="Ada")
        assert store.commit(change, expected_version=2) == 3
        assert store.load()["a"].definition == a_tool("a", "good")
        assert [revision.version for revision in store.history("a")] == [1, 2, 3]
        assert store.load(2)["a"].definition == a_tool("a", "bad")

    def test_a_commit_is_seen_by_another_replica(
        self, store: Store, open_store_again: OpenAgain
    ) -> None:
        """A second connection sees a commit at its next load, and cannot build on the past."""
        replica = open_store_again()
        assert replica.load().version == 0
        store.commit(put("1", a_tool("a", "one"), a_tool("b")), expected_version=0)
        assert replica.load().definitions == store.load().definitions
        with pytest.raises(StaleVersionError):
            replica.commit(put("2", a_tool("c")), expected_version=0)
        replica.commit(put("2", a_tool("a", "two"), remove=("b",)), expected_version=1)
        assert store.load().version == 2
        assert store.load().definitions == (a_tool("a", "two"),)

    def test_everything_is_there_after_opening_again(
        self, store: Store, open_store_again: OpenAgain
    ) -> None:
        """Closing loses nothing: versions, definitions and history are there when opened again."""
        store.commit(put("1", *sample_library().definitions), expected_version=0)
        store.commit(put("2", remove=("bill_split",)), expected_version=1)
        before, history = store.load(), store.history("bill_split")
        store.close()
        again = open_store_again()
        assert again.load().definitions == before.definitions
        assert list(again.versions()) == [1, 2]
        assert again.history("bill_split") == history
        assert again.commit(put("1", a_tool("x")), expected_version=2) == 1

    def test_a_closed_store_says_so(self, store: Store) -> None:
        """Closing twice is fine; using a closed store raises."""
        store.close()
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.load()
