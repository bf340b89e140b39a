"""Tests of time and of shapes: clocks that are wrong, stores of older and of newer releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pytest

from agentkit.episodes import Episode
from agentkit.errors import StoreError, StoreFormatError
from agentkit.library.chain import verify_chain
from agentkit.library.events import LibraryEvent
from agentkit.library.opening import open_store
from agentkit.library.store import LibraryChange, Store
from agentkit.testing.conformance.fixtures import StoreFixtures, a_tool, put
from agentkit.testing.conformance.writer import with_event
from agentkit.tools.definition import ToolDefinition

_HOUR = timedelta(hours=1)

EditDefinitions: TypeAlias = Callable[[str, Callable[[str], str]], None]
"""Called with a store's URL and a function that edits the JSON of each definition."""


class StoreFormatConformance(StoreFixtures):
    """Stores work when clocks and releases differ.

    Three more fixtures may be overridden. A plugin that was never released in an older shape has
    no use for the first two, and their tests are skipped.
    """

    @pytest.fixture
    def oldest_store_url(self) -> str:
        """URL of a store in the oldest released shape, made by hand.

        It holds the tool ``ping``, added at version 1 by the proposal ``first`` of ``Ada`` for the
        reason ``import`` with the evidence ``e1``, and nothing else.
        """
        pytest.skip("this store has no older shape (fixture oldest_store_url)")

    @pytest.fixture
    def newer_store_url(self) -> str:
        """URL of a store of a release to come, made by hand."""
        pytest.skip("no store of a newer release was made (fixture newer_store_url)")

    @pytest.fixture
    def raw_contents(self) -> Callable[[str], object]:
        """Read the data behind a URL without the store: bytes of a file, rows of tables.

        Override it together with ``newer_store_url``: what it gives before and after is compared.
        """
        return lambda _: None

    @pytest.fixture
    def edit_definitions(self) -> EditDefinitions:
        """Changes all definitions that a store holds, without the store and its digests."""
        pytest.skip("nobody edits this store behind its back (fixture edit_definitions)")

    @pytest.mark.parametrize(
        "edit",
        [
            lambda text: text.replace("its number", "nothing"),
            lambda _: "[" * 100_000,
            lambda text: text[:-1] + ',"x":' + "[" * 400 + "]" * 400 + "}",
            lambda _: "[" + "[]," * 1_000_000 + "[]]",
        ],
        ids=["other words", "no end", "deep", "wide"],
    )
    def test_a_definition_that_was_edited_where_it_lies_is_refused(
        self,
        store_url: str,
        open_store_again: Callable[[], Store],
        edit_definitions: EditDefinitions,
        edit: Callable[[str], str],
    ) -> None:
        """Write access to a store's server or files gets no text past the digests."""
        tools = [a_tool(name, "Look up a record by its number.") for name in ("ping", "pong")]
        store = open_store_again()
        for place, one in enumerate(tools):
            store.commit(put(one.name, one), expected_version=place)
        assert open_store_again().load()["ping"].definition == tools[0]
        edit_definitions(store_url, edit)
        reads: tuple[Callable[[Store], object], ...] = (
            lambda one: one.load(),
            lambda one: one.load(1),
            lambda one: one.history("ping"),
        )
        for read in reads:
            with pytest.raises(StoreFormatError, match=r"changed|damaged|cannot be read"):
                read(open_store_again())

    def test_the_time_of_a_copied_change_is_kept(self, store: Store) -> None:
        """A change that says when it was made is noted with that time, to the letter."""
        times = ("2020-02-29T23:59:59.123456+00:00", "1999-01-01T00:00:00Z", "")
        for place, time in enumerate(times):
            store.commit(_edit(place, created_at=time), expected_version=place)
        kept = [one.created_at for one in store.history("ping")]
        assert kept[:2] == list(times[:2])
        assert abs(datetime.now(UTC) - datetime.fromisoformat(kept[2])) < timedelta(days=1)

    @pytest.mark.parametrize("time", ["yesterday", "2026-11-21T10:00:00", "12:00", " "])
    def test_a_time_that_is_none_is_refused(self, store: Store, time: str) -> None:
        """A change that says when in words that are not a time changes nothing."""
        with pytest.raises(StoreError, match="ISO 8601"):
            store.commit(_edit(0, created_at=time), expected_version=0)
        assert list(store.versions()) == []

    def test_clocks_that_are_wrong_change_no_order(self, store: Store) -> None:
        """Writers whose clocks are an hour ahead or behind leave versions and events in order."""
        last: LibraryEvent | None = None
        for place, offset in enumerate((_HOUR, -_HOUR, timedelta(), -2 * _HOUR, _HOUR)):
            at = (datetime.now(UTC) + offset).isoformat()
            change = with_event(_edit(place, created_at=at), last, version=place + 1)
            assert store.commit(change, expected_version=place) == place + 1
            last = change.events[-1]
        assert list(store.versions()) == [1, 2, 3, 4, 5]
        assert store.load()["ping"].definition == _ping(4)
        assert [store.load(one)["ping"].definition for one in (1, 4)] == [_ping(0), _ping(3)]
        assert [one.version for one in store.history("ping")] == [1, 2, 3, 4, 5]
        assert [event.library_version for event in store.events()] == [1, 2, 3, 4, 5]
        assert [event.sequence for event in store.events(after=2)] == [3, 4, 5]
        assert {fault.code for fault in verify_chain(store.events())} == {"clock"}

    def test_episodes_of_wrong_clocks_keep_their_order(self, store: Store) -> None:
        """Episodes come in the order in which they were kept, whatever they say when it was."""
        for name, offset in (("a", _HOUR), ("b", -_HOUR), ("c", timedelta())):
            at = (datetime.now(UTC) + offset).isoformat()
            store.append(Episode(episode_id=name, request="?", started_at=at))
        assert [episode.episode_id for episode in store.select()] == ["c", "b", "a"]

    def test_the_oldest_shape_is_brought_up_to_date(self, oldest_store_url: str) -> None:
        """A store of the first release keeps all that it holds, and takes all that is new."""
        for _ in range(2):  # the second time it is up to date already
            store = open_store(oldest_store_url)
            assert list(store.load(1).definitions) == [ToolDefinition(name="ping")]
            first = store.history("ping")[0]
            assert (first.version, first.proposal_id, first.author) == (1, "first", "Ada")
            assert (first.reason, first.evidence) == ("import", ("e1",))
            store.close()
        store = open_store(oldest_store_url)
        assert (list(store.versions()), list(store.events())) == ([1], [])
        change = with_event(_edit(1, created_at="2030-01-01T00:00:00+00:00"), None, version=2)
        assert store.commit(change, expected_version=1) == 2
        store.append(Episode(episode_id="e1", request="?"))
        store.close()
        again = open_store(oldest_store_url)
        assert again.load()["ping"].definition == _ping(1)
        assert [one.version for one in again.history("ping")] == [1, 2]
        assert tuple(again.events()) == change.events
        assert again.get("e1") == Episode(episode_id="e1", request="?")
        again.close()

    def test_a_newer_shape_is_refused_and_left_alone(
        self, newer_store_url: str, raw_contents: Callable[[str], object]
    ) -> None:
        """A store of a release to come is refused with a way out, and nothing in it is changed."""
        before = raw_contents(newer_store_url)
        with pytest.raises(StoreFormatError, match=r"newer|upgrade"):
            open_store(newer_store_url)
        assert raw_contents(newer_store_url) == before


def _ping(number: int) -> ToolDefinition:
    return a_tool("ping", f"text {number}")


def _edit(number: int, *, created_at: str = "") -> LibraryChange:
    """A change of the tool ``ping``."""
    return replace(put(f"edit-{number}", _ping(number)), created_at=created_at)
