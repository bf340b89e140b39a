"""The changes that made a store's versions are told in order, by any store."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.capabilities import ChangeLog, changes_of
from agentkit.testing.histories import BareStore, HistoryStep, write_history

STEPS = st.lists(
    st.builds(
        HistoryStep,
        wishes=st.dictionaries(
            st.sampled_from("abcdeé"),
            st.none() | st.tuples(st.sampled_from(["", "x", "y"]), st.sampled_from(["", "here"])),
            max_size=6,
        ),
    ),
    max_size=8,
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    """An empty store of each kind."""
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'store.db'}"
    store = open_store(url)
    yield store
    store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("is_bare", [False, True])
@given(steps=STEPS, after=st.integers(0, 3))
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_changes_make_the_same_library_again(tmp_path_factory, kind, is_bare, steps, after):
    """Committed into an empty store, changes give the same tools, in order, at each version."""
    folder = tmp_path_factory.mktemp("store")
    source = open_store("memory:" if kind == "memory" else f"sqlite:///{folder / 'store.db'}")
    write_history(source, steps)
    asked = BareStore(source) if is_bare else source
    changes = list(changes_of(asked))
    again = open_store("memory:")
    for one in changes:
        assert again.commit(one.change, expected_version=one.version - 1) == one.version
    for version in (0, *source.versions()):
        ours, theirs = source.load(version), again.load(version)
        assert list(ours.tools) == list(theirs.tools)
        assert ours.definitions == theirs.definitions
        assert [tool.origin for tool in ours.definitions] == [
            tool.origin for tool in theirs.definitions
        ]
    for name in "abcdeé":
        assert list(source.history(name)) == list(again.history(name))
    if after <= len(changes):
        assert list(changes_of(asked, after=after)) == changes[after:]
    source.close()


def test_many_versions_are_read_page_by_page(store):
    """More versions than are read at a time come back complete and in order."""
    for version in range(100):
        change = LibraryChange(
            proposal_id=str(version), upserts=(ToolDefinition(name=f"t{version % 7}"),)
        )
        store.commit(change, expected_version=version)
    assert isinstance(store, ChangeLog)
    assert [one.version for one in store.changes()] == list(range(1, 101))
    assert [one.change.proposal_id for one in store.changes(after=90)] == list(
        map(str, range(90, 100))
    )
    assert list(store.changes(after=100)) == []


def test_changes_carry_no_events(store):
    """What a change tells of itself is its own; events are read from the chain."""
    write_history(store, [HistoryStep(wishes={"a": ("", "")}, events=2)])
    (only,) = store.changes()
    assert only.change.events == ()
    assert len(store.events()) == 2


def test_a_version_without_a_history_is_refused(store):
    """A store whose histories are silent about one of its versions breaks its contract."""
    write_history(store, [HistoryStep(wishes={"a": ("", "")})])
    silent = BareStore(store)
    silent.history = lambda _: ()
    with pytest.raises(StoreFormatError, match="version 1"):
        list(changes_of(silent))
