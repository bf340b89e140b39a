"""Texts that PostgreSQL can not hold as they are."""

from __future__ import annotations

from contextlib import closing

from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit_postgres import PostgresStore
from agentkit_postgres.texts import is_cut, key, restored, storable

ODD = st.text(st.sampled_from("\0\u24000#a\u0102"), max_size=12)


@settings(deadline=None)
@given(ODD)
def test_texts_come_back(text: str) -> None:
    """Any text without surrogates is stored without NUL and comes back as it was."""
    assert "\0" not in storable(text)
    assert restored(storable(text)) == text
    assert not is_cut(key(text))


@settings(deadline=None)
@given(st.text(), st.text())
def test_two_texts_never_become_one(one: str, other: str) -> None:
    """Different texts are stored as different ones, and have different keys."""
    assert (storable(one) == storable(other)) == (one == other)
    assert (key(one * 500) == key(other * 500)) == (one * 500 == other * 500)


def test_long_names_are_names(store_url: str) -> None:
    """Names and ids that no index takes are kept whole, found, changed and removed."""
    name, other = "x" * 5000, "x" * 4999 + "\u2400"
    tools = tuple(ToolDefinition(name=one) for one in (name, other))
    with closing(PostgresStore(store_url)) as store, closing(PostgresStore(store_url)) as replica:
        added = LibraryChange(proposal_id="p" * 5000, upserts=tools)
        assert store.commit(added, expected_version=0) == 1
        assert replica.load().definitions == tools
        assert store.commit(added, expected_version=0) == 1
        gone = LibraryChange(proposal_id="p" * 4999, removals=(name,))
        assert store.commit(gone, expected_version=1) == 2
        assert list(replica.load().tools) == [other]
        assert [one.change.removals for one in store.changes()] == [(), (name,)]
        assert [one.version for one in store.history(name)] == [1, 2]
        assert store.history(name)[0].proposal_id == "p" * 5000
