"""Tests that a store's whole history can be copied into it and out of it."""

from __future__ import annotations

from agentkit.library.checking import check_store
from agentkit.library.comparing import compare_stores
from agentkit.library.copying import Amount, copy_store
from agentkit.library.memory import MemoryStore
from agentkit.library.store import Store
from agentkit.testing.histories import HistoryStep, write_history
from agentkit.testing.store_fixtures import StoreFixtures

_FIRST = (
    HistoryStep(events=1, episodes=1),
    HistoryStep(wishes={"a": ("one", "here"), "b": ("two", ""), "天気": ("", "")}, events=2),
    HistoryStep(wishes={"b": None}, episodes=3),
    HistoryStep(wishes={"a": ("one", "elsewhere")}, reason='"quoted"; --\n🌦️', events=1),
    HistoryStep(events=3),
)
_SECOND = (
    HistoryStep(wishes={"a": None, "天気": None, "z": ("", "")}, episodes=1),
    HistoryStep(wishes={"b": ("two", ""), "a": ("back", "")}, events=2, episodes=1),
    HistoryStep(events=1),
)
_ALL = Amount(versions=5, events=10, episodes=6)


class StoreCopyConformance(StoreFixtures):
    """Definitions with their order and origins, times, events, signatures, episodes: all survive.

    See ``StoreFixtures`` for what to override.
    """

    def test_a_history_is_copied_into_it(self, store: Store) -> None:
        """A copy from another store is the same in every version, event and episode, and sound."""
        source = MemoryStore()
        write_history(source, (*_FIRST, *_SECOND))
        assert copy_store(source, store).copied == _ALL
        for version in source.versions():
            ours, theirs = source.load(version), store.load(version)
            assert list(theirs.tools) == list(ours.tools)
            assert theirs.digest == ours.digest
        assert check_store(store).faults == ()

    def test_its_history_is_copied_out_of_it(self, store: Store) -> None:
        """A copy into another store holds all that this one holds."""
        write_history(store, (*_FIRST, *_SECOND))
        target = MemoryStore()
        assert copy_store(store, target).copied == _ALL
        assert compare_stores(store, target).is_equal

    def test_a_copy_is_continued(self, store: Store) -> None:
        """A second copy brings what came since the first, and a third one nothing."""
        source = MemoryStore()
        write_history(source, _FIRST, name="first")
        copy_store(source, store)
        write_history(source, _SECOND, name="second")
        assert copy_store(source, store).copied == Amount(versions=2, events=3, episodes=2)
        assert copy_store(source, store).copied == Amount()
        assert compare_stores(source, store).is_equal
