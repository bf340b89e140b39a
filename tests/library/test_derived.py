"""Values worked out from a library are carried from snapshot to snapshot."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition, open_store
from agentkit.library import LibraryChange


class Digests(dict):
    """A dict that can be weakly referenced."""


@dataclass(frozen=True)
class DigestByName:
    """The digest of each tool; remembers how it was asked to work."""

    calls: list = field(default_factory=list, compare=False)

    def build(self, library):
        self.calls.append(("build", len(library.tools)))
        return Digests({name: tool.definition.digest for name, tool in library.tools.items()})

    def update(self, value, library, added, removed):
        self.calls.append(("update", sorted(tool.name for tool in added), sorted(removed)))
        changed = {tool.name: tool.definition.digest for tool in added}
        assert not set(removed) & set(changed)
        return Digests({n: d for n, d in value.items() if n not in removed} | changed)


def tool(name, text=""):
    return ToolDefinition.from_schema(name, text, {})


@pytest.fixture
def library():
    return Library(tool(name) for name in "abcdefgh")


def test_a_value_is_built_once(library):
    """Asking again gives the same object, also under another version and with code bound."""
    kind = DigestByName()
    value = library.derived(kind)
    assert library.derived(DigestByName()) is value
    assert library.at_version(5).derived(kind) is value
    assert library.bind({"a": print}).derived(kind) is value
    assert kind.calls == [("build", 8)]


def test_threads_that_ask_together_work_once(library):
    """All but the first wait for it, and all get the same object."""
    kind = DigestByName()
    assert not library.has_derived(kind)
    together = Barrier(8)

    def ask(_):
        together.wait()
        return library.derived(kind)

    with ThreadPoolExecutor(8) as threads:
        values = list(threads.map(ask, range(8)))
    assert all(value is values[0] for value in values)
    assert kind.calls == [("build", 8)]
    assert library.has_derived(kind)


def test_what_a_bound_library_worked_out_is_known_to_the_first(library):
    """Binding code changes no definition, so both share what either works out."""
    kind = DigestByName()
    value = library.bind({"a": print}).derived(kind)
    assert library.derived(kind) is value
    assert kind.calls == [("build", 8)]


def test_a_change_is_an_update(library):
    """Only what changed is looked at, and the earlier value stays."""
    kind = DigestByName()
    before = library.derived(kind)
    changed = library.with_tools([tool("a", "new"), tool("z")]).without(["b", "unknown"])
    assert changed.derived(kind) == DigestByName().build(changed)
    assert kind.calls == [("build", 8), ("update", ["a", "z"], ["b"])]
    assert library.derived(kind) is before
    assert "b" in before


def test_changes_that_undo_each_other_leave_little_to_do(library):
    """A tool that came and went is not in the update; one that went and came is."""
    kind = DigestByName()
    library.derived(kind)
    changed = library.with_tools([tool("z")]).without(["z", "a"]).with_tools([tool("a")])
    assert changed.derived(kind) == DigestByName().build(changed)
    assert kind.calls == [("build", 8), ("update", ["a"], ["z"])]


def test_the_same_definition_again_is_no_change(library):
    """Replacing a tool by its own definition needs no work."""
    kind = DigestByName()
    value = library.derived(kind)
    assert library.with_tools([library["a"].definition]).derived(kind) is value


def test_a_value_that_fell_far_behind_is_let_go(library):
    """When most of a library has changed, the value is built anew."""
    kind = DigestByName()
    library.derived(kind)
    changed = library
    for number in range(200):
        changed = changed.with_tools([tool(f"t{number}")])
    changed.derived(kind)
    assert kind.calls == [("build", 8), ("build", 208)]


def test_old_snapshots_and_values_are_freed():
    """A library does not live on in those that came after it, and its value until they have one."""
    library = Library(tool(name) for name in "abcdefgh")
    kind = DigestByName()
    value, ghost = weakref.ref(library.derived(kind)), weakref.ref(library)
    changed = library.with_tools([tool("z")])
    del library
    gc.collect()
    assert ghost() is None
    assert value() is not None  # the next value is made from it
    changed.derived(kind)
    gc.collect()
    assert value() is None


def test_a_library_made_in_another_way_can_continue_one_in_use(library):
    """``continuing`` works out the difference by itself."""
    kind = DigestByName()
    library.derived(kind)
    other = Library([*list(library)[2:], tool("a", "new"), tool("z")], version=3)
    continued = other.continuing(library)
    assert continued.derived(kind) == DigestByName().build(other)
    assert continued.version == 3
    assert kind.calls == [("build", 8), ("update", ["a", "z"], ["b"])]


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/library.db"])
def test_a_store_carries_values_to_its_next_version(tmp_path, url):
    """A commit costs an update, not a new build."""
    store = open_store(url.format(tmp_path))
    first = LibraryChange(proposal_id="1", upserts=tuple(tool(name) for name in "abcdefgh"))
    store.commit(first, expected_version=0)
    kind = DigestByName()
    store.load().derived(kind)
    second = LibraryChange(proposal_id="2", upserts=(tool("a", "new"), tool("z")), removals=("b",))
    store.commit(second, expected_version=1)
    newest = store.load()
    assert newest.derived(kind) == DigestByName().build(newest)
    assert kind.calls == [("build", 8), ("update", ["a", "z"], ["b"])]
    assert store.load(1).derived(kind) == DigestByName().build(store.load(1))
    store.close()


names = st.sampled_from("abcdefghij")
steps = st.lists(
    st.one_of(
        st.sets(names, max_size=4),
        st.dictionaries(names, st.sampled_from(["x", "y"]), max_size=4),
    ),
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(steps, st.sets(st.integers(0, 8)))
def test_any_changes_give_the_value_of_a_fresh_library(changes, asked):
    """However changes pile up before somebody asks."""
    library, kind = Library([tool("a")]), DigestByName()
    for place, change in enumerate(changes):
        if place in asked:
            assert library.derived(kind) == DigestByName().build(library)
        if isinstance(change, set):
            library = library.without(change)
        else:
            library = library.with_tools(tool(name, text) for name, text in change.items())
    assert library.derived(kind) == DigestByName().build(library)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_a_sqlite_store_loads_the_same_by_steps_and_at_once(tmp_path_factory, changes):
    """A store that was open all the time and one that was just opened give equal libraries."""
    url = f"sqlite:///{tmp_path_factory.mktemp('steps') / 'library.db'}"
    store, watching = open_store(url), open_store(url)
    for place, change in enumerate(changes):
        known = watching.load() if place % 2 else store.load()
        upserts, removals = (), ()
        if isinstance(change, set):
            removals = tuple(sorted(name for name in change if name in known))
        else:
            upserts = tuple(tool(name, text) for name, text in change.items())
        if upserts or removals:
            step = LibraryChange(proposal_id=f"{place}", upserts=upserts, removals=removals)
            store.commit(step, expected_version=store.load().version)
    at_once = open_store(url)
    assert list(watching.load()) == list(at_once.load()) == list(store.load())
    assert watching.load().digest == at_once.load().digest
    for opened in (store, watching, at_once):
        opened.close()
